/**
 * Tables `import_chunks` and `import_files`: the bytes of an imported file, in chunks, until all its rows are imported
 * (docs/decisions/0019-imports.md).
 */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import type { FileEncoding, UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import type { Database } from '../../foundation/stores.ts';

type ImportFileKey = Scope & { readonly task_id: string; readonly file_id: string };

const CHUNK_BYTES = 262_144;

/** Stores pieces of any length, in order. */
export async function writeChunks(
  { tenant_id, environment_id, task_id, file_id }: ImportFileKey,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
  database: Database,
): Promise<void> {
  let seq = 0;
  for await (const bytes of splitIntoChunks(pieces))
    await database('import_chunks').insert({ tenant_id, environment_id, task_id, file_id, seq: seq++, bytes });
}

/** Splits bytes into chunks of equal length, except the last. */
async function* splitIntoChunks(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    for (let from = 0; from < piece.length; ) {
      const part = piece.subarray(from, from + CHUNK_BYTES - length);
      waiting.push(part);
      length += part.length;
      from += part.length;
      if (length < CHUNK_BYTES) continue;
      yield Buffer.concat(waiting);
      waiting = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(waiting);
}

/** Marks the file as complete. If two attempts fetched the file of a task, the first mark counts. */
export async function createFile(key: ImportFileKey, database: Database): Promise<void> {
  const { tenant_id, environment_id, task_id, file_id } = key;
  await database('import_files').insert({ tenant_id, environment_id, task_id, file_id }).onConflict('task_id').ignore();
}

export type StoredImportFile = ImportFileKey & {
  readonly size_bytes: number;
  readonly encoding: FileEncoding;
  readonly mapping: UsedMapping | null;
};

/** Finds the stored file; undefined if there is none. A file with missing chunks is deleted and counts as none. */
export async function findStoredFile(
  { tenant_id, environment_id }: Scope,
  task_id: string,
  database: Database,
): Promise<StoredImportFile | undefined> {
  const [row] = await database('import_files as kept')
    .join('tasks', { 'tasks.id': 'kept.task_id' })
    .where({ 'kept.tenant_id': tenant_id, 'kept.environment_id': environment_id, 'kept.task_id': task_id })
    .where({ 'tasks.tenant_id': tenant_id, 'tasks.environment_id': environment_id })
    .select('kept.file_id', 'tasks.size_bytes', 'tasks.encoding', 'tasks.mapping_terms');
  if (!row) return undefined;
  const place = { tenant_id, environment_id, task_id, file_id: row.file_id };
  const size_bytes = Number(row.size_bytes);
  // An earlier version accepted UTF-8 only, and stored no encoding.
  const read = { encoding: row.encoding ?? 'UTF-8', mapping: row.mapping_terms };
  if ((await bytesThere(place, database)) === size_bytes) return { ...place, size_bytes, ...read };
  await database('import_files').where(place).del();
  await database('import_chunks').where(place).del();
  return undefined;
}

/** Counts the bytes up to the first missing chunk. */
async function bytesThere({ tenant_id, environment_id, task_id, file_id }: ImportFileKey, database: Database) {
  const pieces = database('import_chunks')
    .where({ tenant_id, environment_id, task_id, file_id })
    .select(database.raw('octet_length(bytes) as length, seq, row_number() over (order by seq) - 1 as place'));
  const [row] = await database(pieces.as('pieces')).whereRaw('seq = place').sum('length as bytes');
  return Number(row?.bytes ?? 0);
}

/** Marks the file as in use, so that it is not deleted for a week. */
export async function useFile({ tenant_id, environment_id }: Scope, task_id: string, database: Database) {
  await database('import_files')
    .where({ tenant_id, environment_id, task_id })
    .update({ used_at: database.raw('now()') });
}

/** Throws if a chunk is missing, so that its position is not taken for the end of the file. */
export async function* readChunks(
  { tenant_id, environment_id, task_id, file_id, size_bytes }: StoredImportFile,
  database: Database,
): AsyncGenerator<Buffer> {
  let read = 0;
  for (let seq = 0; read < size_bytes; seq++) {
    const [row] = await database('import_chunks')
      .where({ tenant_id, environment_id, task_id, file_id, seq })
      .select('bytes');
    if (!row) throw invalid('file', `is not kept whole any more: ${read} of ${size_bytes} bytes are there`);
    read += row.bytes.length;
    yield row.bytes;
  }
}

/** Deletes everything that was fetched for the task. */
export async function deleteFile({ tenant_id, environment_id }: Scope, task_id: string, database: Database) {
  await database('import_files').where({ tenant_id, environment_id, task_id }).del();
  await database('import_chunks').where({ tenant_id, environment_id, task_id }).del();
}

/** Maximum total size of the files of completed imports of an environment, which its files of refused rows are read from. */
const COMPLETED_BYTES_MAX = 1024 ** 3;

/** Deletes the files of completed imports that were used longest ago, until the rest has at most `bytes_max`. */
export async function trimCompletedFiles(
  { tenant_id, environment_id }: Scope,
  database: Database,
  bytes_max = COMPLETED_BYTES_MAX,
): Promise<void> {
  await database.raw(
    `with sized as (
       select task_id, sum(tasks.size_bytes) over (order by kept.used_at desc, task_id desc) as bytes
         from import_files as kept join tasks on tasks.id = kept.task_id
        where kept.tenant_id = :tenant_id and kept.environment_id = :environment_id
          and tasks.tenant_id = :tenant_id and tasks.environment_id = :environment_id
          and tasks.task_status = 'COMPLETED'
     ), over as (
       select task_id from sized where bytes > :bytes_max
     ), files as (
       delete from import_files
        where tenant_id = :tenant_id and environment_id = :environment_id and task_id in (select task_id from over)
     )
     delete from import_chunks
      where tenant_id = :tenant_id and environment_id = :environment_id and task_id in (select task_id from over)`,
    { tenant_id, environment_id, bytes_max },
  );
}

const RETENTION_DAYS = 7;

/**
 * Deletes files of ended imports that were not read recently. The tasks are locked meanwhile, so that none is resumed with half a file.
 * Returns the number of deleted chunks.
 */
export async function purgeImportFiles(database: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - RETENTION_DAYS * DAY_MS);
  const answer = await database.raw(
    `with left_over as (
       select task_id from import_files where used_at < :before
        union select task_id from import_chunks where created_at < :before
     ), over as (
       select id from tasks
        where id in (select task_id from left_over) and task_status in ('COMPLETED', 'FAILED')
          and not exists (select from import_files as kept where kept.task_id = tasks.id and kept.used_at >= :before)
          for update skip locked
     ), files as (
       delete from import_files where task_id in (select id from over)
     )
     delete from import_chunks where task_id in (select id from over)`,
    { before },
  );
  return answer.rowCount ?? 0;
}
