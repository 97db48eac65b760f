/**
 * Accepts a file for import. One transaction adds the task, its run and, if the request contained it, the file (docs/rules/imports.md). The
 * kind of records is decided here, once.
 */
import { createHash } from 'node:crypto';
import type { PermissionEntity } from '../../../core/foundation/access/role.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import type { Task } from '../../../core/platform/task/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { createFile, writeChunks } from '../../../storage/models/operations/import-files.ts';
import { findSameFile, sumWaitingUploadBytes, TaskModel } from '../../../storage/models/reporting/task.ts';
import { addRun } from '../../foundation/workflows/run.ts';
import { chooseEncoding } from './encoding.ts';

/** Job that imports an uploaded file. Fetched files have a separate job, because a slow sender would hold a slot. */
export const IMPORT_JOB = { task: 'import-records', time_sliced: true, in_order: true } as const;
/**
 * Job that imports a file from a URL. It shares the queue of `IMPORT_JOB`, so a tenant's imports of both kinds run one
 * after the other.
 */
export const FETCHED_IMPORT_JOB = { task: 'import-fetched', queue: IMPORT_JOB.task, time_sliced: true } as const;

/**
 * Maximum total size of the uploads of an environment that wait for their import. It is approximate, because concurrent uploads do not
 * count each other. Postgres stores these uploads and needs the disk space.
 */
const UPLOADS_BYTES_MAX = 1024 ** 3;
const UPLOADS_RETRY_SECONDS = 60;

/** Entities that can be imported, with their names in permissions. */
export const IMPORTED = {
  EVENTS: 'event',
  CUSTOMERS: 'customer',
  FEATURES: 'feature',
  PRICES: 'price',
} as const satisfies Partial<Record<Task['entity_type'], PermissionEntity>>;
export type ImportedEntity = keyof typeof IMPORTED;

export type NewImport = Pick<Task, 'file_name' | 'metadata'> & {
  /** Id of the task, chosen by the caller: a repeated request with it gets the task of the first one. */
  readonly id: string | undefined;
  readonly entity_type: ImportedEntity;
  readonly file_type: 'CSV' | 'JSON';
  readonly mapping: UsedMapping | null;
  readonly file: { readonly url: string } | { readonly bytes: Buffer };
  readonly author: Author;
};

export async function enqueueImport(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { file, author, mapping, ...fields }: NewImport,
): Promise<TaskModel> {
  const id = fields.id ?? newId('task', author.now.getTime());
  const required = mapping?.encoding ?? null;
  // The transaction does not wait for it: it reads all bytes of a large file.
  const encoding = 'bytes' in file ? chooseEncoding(file.bytes, { file_type: fields.file_type, required }) : null;
  return postgres.transaction(async (transaction) => {
    if (fields.id !== undefined) {
      const [known] = await TaskModel.in(scope, transaction).where({ id });
      if (known) return known;
    }
    if ('bytes' in file && (await sumWaitingUploadBytes(transaction, scope)) >= UPLOADS_BYTES_MAX)
      throw new FarthingError('too_many_requests', 'uploads of a gigabyte wait: send more when some are done', {
        details: { retry_after_seconds: UPLOADS_RETRY_SECONDS },
      });
    const file_url = 'url' in file ? file.url : '';
    const { id: workflow_id } = await addImportRun(transaction, scope, { task: { id, file_url }, author });
    const bytes = 'bytes' in file ? file.bytes : null;
    const sha256 = bytes && createHash('sha256').update(bytes).digest('hex');
    const task = {
      ...fields,
      mapping: mapping?.name ?? null,
      mapping_terms: mapping,
      id,
      task_type: 'IMPORT',
      task_status: 'PENDING',
      workflow_id,
      file_url,
      ...(bytes && sha256
        ? {
            sha256,
            size_bytes: bytes.length,
            encoding,
            same_file_as: await findSameFile(transaction, scope, { id, sha256, entity_type: fields.entity_type }),
          }
        : {}),
      ...createdBy(author),
    };
    const added = await TaskModel.add(scope, task, { database: transaction });
    if (bytes) {
      const place = { ...scope, task_id: id, file_id: workflow_id };
      await writeChunks(place, [bytes], transaction);
      await createFile(place, transaction);
    }
    return added;
  });
}

export function addImportRun(
  transaction: Transaction,
  scope: Scope,
  { task, author }: { task: Pick<Task, 'id' | 'file_url'>; author: Author },
) {
  return addRun(transaction, scope, {
    job: task.file_url === '' ? IMPORT_JOB : FETCHED_IMPORT_JOB,
    workflow_type: 'ImportWorkflow',
    task_queue: 'import',
    entity: 'task',
    entity_id: task.id,
    author,
  });
}

export function getImportedEntity(task: Pick<Task, 'id' | 'entity_type'>): ImportedEntity {
  if (Object.hasOwn(IMPORTED, task.entity_type)) return task.entity_type as ImportedEntity;
  throw new FarthingError('system_error', `task ${task.id} imports ${task.entity_type}`);
}
