/**
 * Tables `import_chunks` and `import_files`: the bytes of a file that is imported, in pieces, until all its rows are done
 * (docs/decisions/0028-imports.md).
 */
import type { Scope } from '../../core/scope.ts';
import type { Database } from '../stores.ts';

export type FilePlace = Scope & { readonly task_id: string; readonly file_id: string };

const CHUNK_BYTES = 262_144;

/** Pieces of whatever length, one after another; answers how many bytes they were. */
export async function writeChunks(
  { tenant_id, environment_id, task_id, file_id }: FilePlace,
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
  database: Database,
): Promise<void> {
  let seq = 0;
  for await (const bytes of chunksOf(pieces))
    await database('import_chunks').insert({ tenant_id, environment_id, task_id, file_id, seq: seq++, bytes });
}

/** Of one length, but for the last. */
async function* chunksOf(pieces: AsyncIterable<Buffer> | Iterable<Buffer>): AsyncGenerator<Buffer> {
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

/** The one that is whole from here on; the first that says so, where two were fetched. */
export async function keepFile(place: FilePlace, database: Database): Promise<void> {
  const { tenant_id, environment_id, task_id, file_id } = place;
  await database('import_files').insert({ tenant_id, environment_id, task_id, file_id }).onConflict('task_id').ignore();
}

/** Undefined where none is there. */
export async function keptFile(
  { tenant_id, environment_id }: Scope,
  task_id: string,
  database: Database,
): Promise<string | undefined> {
  const [row] = await database('import_files').where({ tenant_id, environment_id, task_id }).select('file_id');
  return row?.file_id;
}

export async function* readChunks(
  { tenant_id, environment_id, task_id, file_id }: FilePlace,
  database: Database,
): AsyncGenerator<Buffer> {
  for (let seq = 0; ; seq++) {
    const [row] = await database('import_chunks')
      .where({ tenant_id, environment_id, task_id, file_id, seq })
      .select('bytes');
    if (!row) return;
    yield row.bytes;
  }
}

/** All that was fetched for the task. */
export async function forgetFile({ tenant_id, environment_id }: Scope, task_id: string, database: Database) {
  await database('import_files').where({ tenant_id, environment_id, task_id }).del();
  await database('import_chunks').where({ tenant_id, environment_id, task_id }).del();
}

const KEPT_DAYS = 7;

/** For the scheduler: files of imports that failed, or were broken off, and that nobody has resumed. Resolves with how many pieces went. */
export async function purgeImportFiles(database: Database, now: Date): Promise<number> {
  const before = new Date(now.getTime() - KEPT_DAYS * 86_400_000);
  await database.raw('delete from import_files where created_at < ?', [before]);
  const answer = await database.raw('delete from import_chunks where created_at < ?', [before]);
  return answer.rowCount ?? 0;
}
