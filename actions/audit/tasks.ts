/**
 * Audit of tasks: the files of a schedule follow each other without a gap, counts and reports are what was told when they ended, and the
 * files in the directory of this machine are those that were written (docs/rules/exports.md, docs/rules/imports.md).
 */
import { createHash } from 'node:crypto';
import { FarthingError } from '../../core/error.ts';
import { someOf } from '../../storage/audit/questions.ts';
import {
  type TaskFault,
  type TaskSums,
  taskFaults,
  taskSums,
  type WholeExport,
  wholeExports,
} from '../../storage/audit/tasks.ts';
import type { Stores } from '../../storage/stores.ts';
import { type DirectoryFile, directoryFileOf } from '../exports/download.ts';
import type { Finding, Found } from './findings.ts';

type Postgres = Pick<Stores, 'postgres'>;
type Looked = TaskSums & { readonly files: number; readonly files_gone: number };

const FAULTS_MAX = 1_000;
const SAMPLE = 200;
const PAGE = 500;

/** `directory`: that of exports, where this machine has one. */
export async function auditTasks(
  stores: Postgres,
  { directory, found }: { directory: string | null; found: Found },
): Promise<Looked> {
  const { postgres } = stores;
  for (const fault of await taskFaults(postgres, { ids: null, limit: FAULTS_MAX })) found(findingOf(fault));
  const files = directory === null ? { files: 0, files_gone: 0 } : await auditFiles(stores, { directory, found });
  return { ...(await taskSums(postgres)), ...files };
}

/** Of those made last and of some by chance, all the time; no file is read. */
export async function sampleTasks({ postgres }: Postgres, found: Found): Promise<void> {
  const ids = await someOf(postgres, 'tasks', SAMPLE);
  for (const fault of await taskFaults(postgres, { ids, limit: FAULTS_MAX })) found(findingOf(fault));
}

function findingOf({ kind, id, stated, found }: TaskFault): Finding {
  return { kind, count: 1, what: `${id} says ${stated}, and ${found}` };
}

/** Whoever owns the directory may have taken files away: that is told as a number, and is no difference. */
async function auditFiles(stores: Postgres, { directory, found }: { directory: string; found: Found }) {
  let [files, files_gone] = [0, 0];
  for (let after = ''; ; ) {
    const page = await wholeExports(stores.postgres, after, PAGE);
    for (const task of page) {
      const looked = await auditFile(stores, task, { directory, found });
      if (looked === 'gone') files_gone++;
      else if (looked === 'there') files++;
    }
    if (page.length < PAGE) return { files, files_gone };
    after = page.at(-1)!.id;
  }
}

async function auditFile(
  stores: Postgres,
  { id, ...scope }: WholeExport,
  { directory, found }: { directory: string; found: Found },
): Promise<'there' | 'gone' | 'elsewhere'> {
  try {
    const file = await directoryFileOf(stores, scope, { id, directory });
    if (file === null) return 'elsewhere';
    const stored = await digestOf(file);
    const { size_bytes, sha256 } = file.task;
    if (stored.size_bytes === size_bytes && stored.sha256 === sha256) return 'there';
    const what = `${id} says ${size_bytes} bytes, ${sha256}, and its file has ${stored.size_bytes}, ${stored.sha256}`;
    found({ kind: 'export_file_differs', count: 1, what });
    return 'there';
  } catch (error) {
    if (error instanceof FarthingError && error.code === 'not_found') return 'gone';
    throw error;
  }
}

async function digestOf({ bytes }: DirectoryFile): Promise<{ size_bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let size_bytes = 0;
  for await (const piece of bytes as AsyncIterable<Buffer>) {
    hash.update(piece);
    size_bytes += piece.length;
  }
  return { size_bytes, sha256: hash.digest('hex') };
}
