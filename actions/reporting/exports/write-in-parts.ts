/**
 * Writes a file in parts (docs/rules/exports.md, "In parts"). Each part is written like a file, and all parts become visible at the same
 * time. The parts that an attempt began are recorded, so that the next attempt can remove those that it does not overwrite.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import { CONTENT_TYPES } from '../../../core/platform/export/record.ts';
import type { JobConfig } from '../../../core/platform/scheduled-task/record.ts';
import type { FilePart, Task } from '../../../core/platform/task/record.ts';
import type { ExportDestination, WrittenFile } from '../../../integrations/export-destination.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import {
  type BegunPart,
  loadRemainingParts,
  markPartsNamed,
  recordPart,
} from '../../../storage/models/reporting/export-parts.ts';
import type { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import type { TaskModel } from '../../../storage/models/reporting/task.ts';
import type { RunAttempt } from '../../foundation/workflows/run.ts';
import { formatFileKey, formatFileName, PARTS_MAX, type PartSelector } from './destinations.ts';
import { type BuildExportFileInput, buildExportFiles } from './export-file.ts';
import { EXPORT_KINDS } from './kinds.ts';

export type ExportWriting = {
  readonly task: TaskModel;
  readonly scheduled: ScheduledTaskModel;
  readonly connection: ConnectionModel;
  readonly input: BuildExportFileInput;
  readonly destination: ExportDestination;
};

/** A written file or its parts, not visible yet; `commit` makes them visible. */
export type WrittenExport = Pick<WrittenFile, 'commit' | 'discard'> & {
  readonly facts: Pick<Task, 'file_url' | 'file_name' | 'size_bytes' | 'sha256' | 'files'> & { records: number };
};

const MIB = 1_048_576;
/** Maximum number of parts that are committed, discarded or removed at a time. */
const AT_ONCE = 8;

export async function writeInParts(stores: Stores, writing: ExportWriting, how: RunAttempt): Promise<WrittenExport> {
  const { task, scheduled, input } = writing;
  const bytes_max = scheduled.job_config.max_file_size_mb! * MIB;
  const left = await loadRemainingParts(stores.postgres, task);
  const written: WrittenFile[] = [];
  const files: FilePart[] = [];
  const discard = () => forEachChunked(written, (one) => one.discard());
  try {
    for await (const { bytes, total } of buildExportFiles(stores, task, EXPORT_KINDS[scheduled.entity_type], {
      ...input,
      bytes_max,
    })) {
      const part = files.length + 1;
      if (part > PARTS_MAX) throw notAllowed(`with this max_file_size_mb the file has more than ${PARTS_MAX} parts`);
      const one = await writeFilePart(stores, writing, { part, bytes, how, begun: left.get(part)?.upload_id ?? null });
      written.push(one);
      files.push({ part, file_name: formatPartName(writing, part), file_url: one.url, ...total() });
    }
  } catch (error) {
    await discard();
    throw error;
  }
  await markPartsNamed(stores.postgres, task, files.length);
  const more = [...left.values()].filter(({ part }) => part > files.length);
  return {
    facts: buildFacts(writing, files),
    discard,
    commit: async () => {
      await forEachChunked(written, (one) => one.commit());
      await forEachChunked(more, (one) => takeAway(writing, one));
    },
  };
}

type FilePartInput = { part: number; bytes: AsyncIterable<Uint8Array>; begun: string | null; how: RunAttempt };

function writeFilePart(
  { postgres }: Stores,
  writing: ExportWriting,
  { part, bytes, begun, how }: FilePartInput,
): Promise<WrittenFile> {
  return writing.destination.write({
    key: formatPartKey(writing, part),
    content_type: toContentType(writing.scheduled.job_config),
    bytes,
    signal: how.signal,
    begun,
    onBegin: (upload_id) => recordPart(postgres, writing.task, { part, upload_id }),
  });
}

/** Removes a part of an earlier attempt that had more parts. */
function takeAway(writing: ExportWriting, { part, upload_id, is_named }: BegunPart): Promise<void> {
  return writing.destination.takeAway(formatPartKey(writing, part), { begun: upload_id, is_named });
}

function buildFacts(writing: ExportWriting, files: FilePart[]): WrittenExport['facts'] {
  const sum = (of: (file: FilePart) => number) => files.reduce((all, file) => all + of(file), 0);
  const [first] = files;
  const file_name = formatPartName(writing, '*');
  return {
    records: sum(({ records }) => records),
    size_bytes: sum(({ size_bytes }) => size_bytes),
    sha256: null,
    file_url: first!.file_url.replace(first!.file_name, file_name),
    file_name,
    files,
  };
}

function formatPartKey({ task, connection, scheduled: { job_config } }: ExportWriting, which: PartSelector): string {
  return formatFileKey(task, connection, { job_config, which });
}

function formatPartName({ task, scheduled }: ExportWriting, which: PartSelector): string {
  return formatFileName(task, scheduled.job_config, which);
}

export function toContentType({ format, compression }: JobConfig): string {
  return compression === 'gzip' ? 'application/gzip' : CONTENT_TYPES[format];
}

/** Runs the work in chunks. If one element fails, the rest of its chunk is awaited before the error is thrown. */
async function forEachChunked<One>(all: readonly One[], work: (one: One) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) {
    const ends = await Promise.allSettled(all.slice(from, from + AT_ONCE).map(work));
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }
}
