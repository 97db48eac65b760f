/**
 * Audit of tasks: the files of a schedule are contiguous, and the counts and reports of tasks equal those of their ended runs. Stored files
 * are unchanged since they were written; files in S3 are read only on request (docs/rules/exports.md, docs/rules/imports.md).
 */
import { createHash } from 'node:crypto';
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import { sampleIds } from '../../../storage/audit/questions.ts';
import {
  findTaskFaults,
  listCompletedExports,
  loadTaskSums,
  type TaskFault,
  type TaskSums,
} from '../../../storage/audit/tasks.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ExportSettings } from '../../reporting/exports/destinations.ts';
import { listStoredFiles, type StoredFile } from '../../reporting/exports/download.ts';
import type { Finding, OnFinding } from './findings.ts';

type TaskAuditCounts = TaskSums & {
  readonly files: number;
  readonly files_gone: number;
  readonly files_unread: number;
};

type TaskAuditInput = {
  readonly settings: ExportSettings;
  /** Whether files in S3 are read, too, which costs traffic. Files in the export directory of this machine are always read. */
  readonly reads_stores: boolean;
  readonly found: OnFinding;
};

const FAULTS_MAX = 1_000;
const SAMPLE = 200;
const PAGE = 500;

export async function auditTasks(stores: Postgres, input: TaskAuditInput): Promise<TaskAuditCounts> {
  const { postgres } = stores;
  for (const fault of await findTaskFaults(postgres, { ids: null, limit: FAULTS_MAX }))
    input.found(toTaskFinding(fault));
  return { ...(await loadTaskSums(postgres)), ...(await auditFiles(stores, input)) };
}

/** Audits the newest and some random tasks, for the continuous audit; reads no file. */
export async function sampleTasks({ postgres }: Postgres, found: OnFinding): Promise<void> {
  const ids = await sampleIds(postgres, 'tasks', SAMPLE);
  for (const fault of await findTaskFaults(postgres, { ids, limit: FAULTS_MAX })) found(toTaskFinding(fault));
}

function toTaskFinding({ kind, id, stored, found }: TaskFault): Finding {
  return { kind, count: 1, what: `${id} says ${stored}, and ${found}` };
}

type FileAuditCounts = Pick<TaskAuditCounts, 'files' | 'files_gone' | 'files_unread'>;

/**
 * Audits files. The owner of the directory or bucket may have removed files or revoked access; such files are counted and not reported as
 * differences.
 */
async function auditFiles(stores: Postgres, input: TaskAuditInput): Promise<FileAuditCounts> {
  const counts: Record<FileAuditState, number> = { there: 0, gone: 0, unread: 0, elsewhere: 0 };
  for (let after = ''; ; ) {
    const page = await listCompletedExports(stores.postgres, after, PAGE);
    for (const { id, ...scope } of page)
      for (const file of await listStoredFiles(stores, scope, { id, settings: input.settings }))
        counts[await auditFile(file, { ...input, id })]++;
    if (page.length < PAGE) return { files: counts.there, files_gone: counts.gone, files_unread: counts.unread };
    after = page.at(-1)!.id;
  }
}

type FileAuditState = 'there' | 'gone' | 'unread' | 'elsewhere';

async function auditFile(
  file: StoredFile,
  { id, settings, reads_stores, found }: TaskAuditInput & { id: string },
): Promise<FileAuditState> {
  if (file.is_local ? settings.EXPORT_DIRECTORY === undefined : !reads_stores) return 'elsewhere';
  const { size_bytes, sha256, file_name } = file;
  try {
    const stored = await computeFileDigest(file);
    if (stored.size_bytes === size_bytes && stored.sha256 === sha256) return 'there';
    const what = `${id} says ${size_bytes} bytes, ${sha256}, and ${file_name} has ${stored.size_bytes}, ${stored.sha256}`;
    found({ kind: 'export_file_differs', count: 1, what });
    return 'there';
  } catch (error) {
    if (!(error instanceof FarthingError)) throw error;
    if (error.code === 'not_found') return 'gone';
    if (file.is_local) throw error;
    return 'unread';
  }
}

/** A read may take this long, plus the time for the size of the file at the minimum speed. */
const WAIT_MS = 30_000;
const BYTES_PER_MS_MIN = 70;

/** Stops reading just after the expected size, because a longer file differs anyway. */
async function computeFileDigest(file: StoredFile): Promise<{ size_bytes: number; sha256: string }> {
  const expected = file.size_bytes ?? 0;
  const signal = AbortSignal.timeout(WAIT_MS + Math.ceil(expected / BYTES_PER_MS_MIN));
  const hash = createHash('sha256');
  let size_bytes = 0;
  try {
    for await (const piece of await file.read(signal)) {
      signal.throwIfAborted();
      hash.update(piece);
      size_bytes += piece.length;
      if (size_bytes > expected) break;
    }
  } catch (error) {
    if (error instanceof FarthingError || file.is_local) throw error;
    throw unavailable('a file in S3', error);
  }
  return { size_bytes, sha256: hash.digest('hex') };
}
