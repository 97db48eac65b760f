/**
 * Imports the rows of a file in batches (docs/rules/imports.md, docs/decisions/0019-imports.md). The progress commits with the created
 * records, so a process that takes over continues after the last row that is done.
 */
import { createHash } from 'node:crypto';
import { requireWrite } from '../../../core/foundation/access/role.ts';
import { FarthingError, invalid, notAllowed, unavailable } from '../../../core/foundation/error.ts';
import { SentContents } from '../../../core/metering/event/sent-contents.ts';
import type { RowFault } from '../../../core/platform/import/row.ts';
import { moveTask } from '../../../core/platform/task/record.ts';
import { downloadFile } from '../../../integrations/downloads/https-file.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { runAs } from '../../../storage/foundation/request-context.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { addFaults, readFaults } from '../../../storage/models/operations/import-faults.ts';
import {
  createFile,
  deleteFile,
  findStoredFile,
  readChunks,
  type StoredImportFile,
  trimCompletedFiles,
  useFile,
  writeChunks,
} from '../../../storage/models/operations/import-files.ts';
import { findSameFile, TaskModel } from '../../../storage/models/reporting/task.ts';
import { loadNow } from '../../../storage/models/schedule/environment-clock.ts';
import { runBounded } from '../../../storage/postgres/pool/bounded.ts';
import {
  completeRun,
  lockRun,
  type RunAttempt,
  type RunReference,
  requeueRun,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { EncodingDetector } from './encoding.ts';
import { listImportColumns } from './import-columns.ts';
import { getImportedEntity, IMPORT_JOB, IMPORTED, type ImportedEntity } from './import-later.ts';
import { computeRowLength, type FileRow, readRows } from './rows.ts';
import { appendEventRows, readEventRows } from './take-events.ts';
import { createRecord } from './take-records.ts';

export type ImportSettings = {
  readonly IMPORT_FILE_MAX_MB: number;
  readonly IMPORT_ALLOWED_ADDRESSES: readonly string[];
};

type ImportRun = {
  readonly stores: Stores;
  readonly place: RunReference;
  readonly task_id: string;
  /** User who requested this run, by the import or by its resumption. */
  readonly requested_by: string;
  readonly settings: ImportSettings;
  /** The machine's clock. */
  readonly clock: () => Date;
  readonly signal: AbortSignal;
  /** Contents of the events of this run, which the pipeline may not have stored yet. */
  readonly sent: SentContents;
  /** Absent for a fetched file: such an import does not yield, because it uses separate slots. */
  readonly mayGoOn: RunAttempt['mayGoOn'];
};

/** Runs an import. `overtaken` means that other jobs waited for the slot, and another job continues the import. */
export function tryImport(
  stores: Stores,
  place: RunReference,
  { settings, ...attempt }: RunAttempt & { settings: ImportSettings },
): Promise<'completed' | 'failed' | 'overtaken'> {
  return tryRun(stores, place, attempt, async () => {
    const { run, ended } = await stores.postgres.transaction((transaction) => lockRun(transaction, place));
    if (ended) return ended;
    const { clock, signal, mayGoOn } = attempt;
    const requested_by = run.created_by;
    const importing = {
      stores,
      place,
      task_id: run.entity_id,
      requested_by,
      settings,
      clock,
      signal,
      mayGoOn,
      sent: new SentContents(),
    };
    const caller = { scope: place, user_id: run.created_by, secret_id: null, request_id: null };
    return runAs(caller, () => importFile(importing));
  });
}

async function importFile(importing: ImportRun): Promise<'completed' | 'overtaken'> {
  const { stores, place, task_id, signal, mayGoOn } = importing;
  const task = await startImport(importing);
  const file = (await findStoredFile(place, task_id, stores.postgres)) ?? (await fetchFile(task, importing));
  const pieces = readChunks(file, stores.postgres);
  const { encoding, mapping } = file;
  const entity_type = getImportedEntity(task);
  const known = listImportColumns(entity_type);
  const file_type = task.file_type === 'CSV' ? 'CSV' : 'JSON';
  const rows_max = entity_type === 'EVENTS' ? BATCH_ROWS : RECORDS_PER_TRANSACTION;
  let done = task.processed_records;
  for await (const rows of readBatches(readRows({ file_type, encoding, mapping, known, pieces }), { done, rows_max })) {
    signal.throwIfAborted();
    if ((await mayGoOn?.()) === false) {
      await stores.postgres.transaction((transaction) => requeueRun(transaction, place, IMPORT_JOB));
      return 'overtaken';
    }
    const batch = { task, rows, before: done };
    await (entity_type === 'EVENTS' ? importEvents(batch, importing) : importRecords(batch, importing));
    done += rows.length;
  }
  return completeImport(importing, done);
}

/** Sets the task to PROCESSING, if the user may still write such records. */
async function startImport({ stores, place, task_id, requested_by, clock }: ImportRun): Promise<TaskModel> {
  return stores.postgres.transaction(async (database) => {
    const task = await TaskModel.fetch(place, task_id, { database, lock: true });
    await useFile(place, task_id, database);
    await checkMayWrite(database, {
      tenant_id: place.tenant_id,
      user_id: requested_by,
      entity_type: getImportedEntity(task),
    });
    checkOwnsTask(task, place);
    if (task.task_status === 'PROCESSING') return task;
    if (task.task_status !== 'PENDING') throw buildStoppedError(task);
    const now = clock();
    const by = { user_id: task.created_by, now };
    return TaskModel.change(task, moveTask(task, 'PROCESSING', { now }), { by, database });
  });
}

type ImportPermission = { tenant_id: string; user_id: string; entity_type: ImportedEntity };

/** Checks that the user still has a role that may write such records: the role may have been removed since the request. */
async function checkMayWrite(
  database: Transaction,
  { tenant_id, user_id, entity_type }: ImportPermission,
): Promise<void> {
  const [user] = await UserModel.ofTenant(tenant_id, database).where({ id: user_id, status: 'published' });
  requireWrite({ roles: user?.roles ?? [] }, IMPORTED[entity_type], `an import of ${entity_type}`);
}

/** Checks that the run owns the task. If the task was stopped and resumed, only the run of the resumption continues it. */
function checkOwnsTask({ workflow_id }: TaskModel, place: RunReference): void {
  if (workflow_id !== place.workflow_id) throw notAllowed('the import was resumed: another run continues it');
}

const buildStoppedError = ({ task_status }: TaskModel) =>
  notAllowed(`the task is ${task_status}: somebody has moved it by hand`);

/** Downloads the file and stores it. Each attempt stores a file of its own, so that an incomplete one is never read. */
async function fetchFile(
  task: TaskModel,
  { stores, place, settings, clock, signal }: ImportRun,
): Promise<StoredImportFile> {
  if (task.file_url === '') throw invalid('file', 'is no longer stored: upload it again');
  const file_id = newId('run', clock().getTime());
  const hash = createHash('sha256');
  let size_bytes = 0;
  const file_type = task.file_type === 'CSV' ? 'CSV' : 'JSON';
  const detector = new EncodingDetector(file_type);
  const options = {
    bytes_max: settings.IMPORT_FILE_MAX_MB * 1_048_576,
    allowed_addresses: settings.IMPORT_ALLOWED_ADDRESSES,
    signal,
  };
  async function* counted() {
    for await (const piece of downloadFile(task.file_url, options)) {
      hash.update(piece);
      detector.add(piece);
      size_bytes += piece.length;
      yield piece;
    }
  }
  const file = { ...place, task_id: task.id, file_id };
  await writeChunks(file, counted(), stores.postgres);
  const sha256 = hash.digest('hex');
  return stores.postgres.transaction(async (database) => {
    const locked = await TaskModel.fetch(place, task.id, { database, lock: true });
    if (locked.sha256 !== null && locked.sha256 !== sha256)
      throw invalid('file_url', 'gives another file than before: its first rows are imported already');
    const same_file_as = await findSameFile(database, place, { ...task, sha256 });
    const encoding = detector.choose(task.mapping_terms?.encoding ?? null);
    const by = { user_id: task.created_by, now: clock() };
    await TaskModel.change(locked, { sha256, size_bytes, encoding, same_file_as }, { by, database });
    await createFile(file, database);
    return (await findStoredFile(place, task.id, database))!;
  });
}

const BATCH_ROWS = 1_000;
/** Maximum number of records per transaction, which locks the rows that it writes; others may wait for them. */
const RECORDS_PER_TRANSACTION = 50;
/**
 * Maximum length of a batch in characters, so that it fits into a log entry of 8 MiB: an escaped character has at most six bytes. One row
 * may fill a whole batch.
 */
const BATCH_LENGTH = 1_048_576;

/**
 * Yields batches of rows, without the first `done` rows, which are imported already. An error that ends the file is thrown after the rows
 * before it.
 */
async function* readBatches(
  rows: AsyncGenerator<FileRow>,
  { done, rows_max }: { done: number; rows_max: number },
): AsyncGenerator<FileRow[]> {
  let batch: FileRow[] = [];
  let [seen, length] = [0, 0];
  let broken: { error: unknown } | null = null;
  const next = async () => {
    try {
      return await rows.next();
    } catch (error) {
      broken = { error };
      return { done: true } as const;
    }
  };
  try {
    for (let row = await next(); !row.done; row = await next()) {
      if (++seen <= done) continue;
      const row_length = computeRowLength(row.value);
      if (batch.length === rows_max || (batch.length > 0 && length + row_length > BATCH_LENGTH)) {
        yield batch;
        batch = [];
        length = 0;
      }
      batch.push(row.value);
      length += row_length;
    }
    if (batch.length > 0) yield batch;
    if (broken !== null) throw (broken as { error: unknown }).error;
  } finally {
    await rows.return(undefined);
  }
}

type ImportBatch = { readonly task: TaskModel; readonly rows: readonly FileRow[]; readonly before: number };

/** Longest time for which the task is locked while the log accepts a batch. */
const APPEND_MS = 60_000;

/**
 * Appends the events before the progress is recorded. After a crash in between, the batch is repeated with the same event ids, so that
 * nothing counts twice. The task is locked meanwhile, so that nothing is appended for a stopped import or one that another worker
 * continues.
 */
async function importEvents({ task, rows, before }: ImportBatch, importing: ImportRun): Promise<void> {
  const { stores, place, clock, sent, signal } = importing;
  const read = await readEventRows(stores, place, { rows, sent, signal });
  await stores.postgres.transaction(async (transaction) => {
    const locked = await lockTask(transaction, importing, before);
    const batch = { task_id: task.id, read, before, now: clock() };
    await runBounded({ postgres: stores.postgres, transaction }, { signal, timeout_ms: APPEND_MS }, () =>
      appendEventRows(stores, place, batch),
    );
    const faults = read.map((row) => ('text' in row ? undefined : row.fault));
    await recordProgress(transaction, importing, { task: locked, rows, faults });
  });
}

async function importRecords({ task, rows, before }: ImportBatch, importing: ImportRun): Promise<void> {
  const { stores, place, clock } = importing;
  const entity_type = getImportedEntity(task);
  if (entity_type === 'EVENTS') throw new FarthingError('system_error', 'events are no records');
  const at = await loadNow(stores.postgres, place, clock);
  await stores.postgres.transaction(async (database) => {
    const locked = await lockTask(database, importing, before);
    const author = { user_id: task.created_by, now: at() };
    const faults: (RowFault | undefined)[] = [];
    for (const row of rows)
      faults.push(await createRecord(entity_type, row, { stores: { postgres: database }, scope: place, author }));
    await recordProgress(database, importing, { task: locked, rows, faults });
  });
}

/** Locks the task; throws if it was stopped or another worker continues it. */
async function lockTask(database: Transaction, { place, task_id }: ImportRun, before: number): Promise<TaskModel> {
  const task = await TaskModel.fetch(place, task_id, { database, lock: true });
  checkOwnsTask(task, place);
  if (task.task_status !== 'PROCESSING') throw buildStoppedError(task);
  if (task.processed_records !== before) throw unavailable('the import, which another worker continues,');
  return task;
}

type ImportedBatch = Pick<ImportBatch, 'task' | 'rows'> & { readonly faults: readonly (RowFault | undefined)[] };

/** Records the progress of the task, which this transaction has locked. */
async function recordProgress(
  database: Transaction,
  { place, clock }: ImportRun,
  { task, rows, faults }: ImportedBatch,
): Promise<void> {
  const { id, processed_records: before } = task;
  const found = faults.flatMap((fault, index) => (fault ? { ...fault, row_number: rows[index]!.number } : []));
  await addFaults(place, { task_id: id, faults: found }, database);
  const good = faults.length - found.length;
  const far = {
    processed_records: before + faults.length,
    successful_records: task.successful_records + good,
    failed_records: task.failed_records + found.length,
  };
  await TaskModel.change(task, far, { by: { user_id: task.created_by, now: clock() }, database });
}

async function completeImport(importing: ImportRun, total: number): Promise<'completed'> {
  const { stores, place, task_id, clock } = importing;
  if (total === 0) throw invalid('file', 'holds no records');
  return stores.postgres.transaction(async (database) => {
    const task = await lockTask(database, importing, total);
    const now = clock();
    const { successful_records, failed_records } = task;
    const moved = moveTask(task, 'COMPLETED', { now });
    const by = { user_id: task.created_by, now };
    const error_summary = failed_records === 0 ? null : await buildSummary(database, task, total);
    await TaskModel.change(task, { ...moved, total_records: total, error_summary }, { by, database });
    // The file of refused rows is read from it (docs/rules/imports.md, "Refused rows").
    if (failed_records === 0) await deleteFile(place, task_id, database);
    else await trimCompletedFiles(place, database);
    const result = { task_id, total_records: total, successful_records, failed_records };
    return completeRun(database, place, { result, now });
  });
}

const SUMMARIZED_MAX = 3;

/** Summarizes the first faults; the report contains all. */
async function buildSummary(database: Transaction, task: TaskModel, total: number): Promise<string> {
  const summarized: string[] = [];
  for await (const { row_number, message } of readFaults(task, task.id, database)) {
    summarized.push(`row ${row_number}: ${message.slice(0, 200)}`);
    if (summarized.length === SUMMARIZED_MAX) break;
  }
  const more = task.failed_records > summarized.length ? '; the report has all' : '';
  return `${task.failed_records} of ${total} records were refused: ${summarized.join('; ')}${more}`;
}
