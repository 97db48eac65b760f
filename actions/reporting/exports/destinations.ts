/** Destinations of exports: the destination of a connection, and the file names there. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { EXTENSIONS } from '../../../core/platform/export/record.ts';
import { hasPathStyle, type JobConfig } from '../../../core/platform/scheduled-task/record.ts';
import type { Task } from '../../../core/platform/task/record.ts';
import type { ExportDestination } from '../../../integrations/export-destinations/destination.ts';
import { createDirectoryDestination } from '../../../integrations/export-destinations/directory.ts';
import { createS3Destination } from '../../../integrations/export-destinations/s3.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { ConnectionModel } from '../../../storage/models/reporting/connection.ts';
import { openConnectionSecrets } from './connections.ts';

export type ExportSettings = {
  readonly EXPORT_DIRECTORY?: string | undefined;
  readonly EXPORT_ALLOW_PRIVATE_ADDRESSES: boolean;
  readonly SECRETS_KEYS: readonly string[];
};

const FIRST_REGION = 'us-east-1';

export function createDestination(
  connection: ConnectionModel,
  job_config: JobConfig,
  settings: ExportSettings,
): ExportDestination {
  if (connection.status !== 'published') throw notAllowed(`the connection ${connection.id} is ${connection.status}`);
  if (connection.provider_type === 'directory') return createDirectoryDestination(getExportDirectory(settings));
  const { s3 } = openConnectionSecrets(connection, createSealer(settings.SECRETS_KEYS));
  if (s3 === null || job_config.bucket === null) throw notAllowed(`the connection ${connection.id} is not one to S3`);
  return createS3Destination({
    bucket: job_config.bucket,
    region: job_config.region ?? FIRST_REGION,
    endpoint: job_config.endpoint_url,
    path_style: hasPathStyle(job_config),
    encryption: job_config.encryption,
    credentials: {
      access_key_id: s3.aws_access_key_id,
      secret_access_key: s3.aws_secret_access_key,
      session_token: s3.aws_session_token,
    },
    allow_private_addresses: settings.EXPORT_ALLOW_PRIVATE_ADDRESSES,
  });
}

export function getExportDirectory({ EXPORT_DIRECTORY }: ExportSettings): string {
  if (EXPORT_DIRECTORY === undefined)
    throw notAllowed('this service has no directory for exports any more (EXPORT_DIRECTORY)');
  return EXPORT_DIRECTORY;
}

type NamedExport = Pick<Task, 'id' | 'entity_type' | 'range_start' | 'range_end'>;

/** A part of a file by its number, or all parts; null for a file without parts. */
export type PartSelector = number | '*' | null;

const PART_DIGITS = 4;
/** Four digits, so that the alphabetical order of the names is the order of the parts. */
export const PARTS_MAX = 10 ** PART_DIGITS - 1;

/**
 * `prefix/invoice/20260301T000000Z_20260302T000000Z.task_….csv.gz`, or `….task_….part-0001.csv.gz`. A task has one file name, however often
 * the file is written.
 */
export function formatFileName(task: NamedExport, { format, compression }: JobConfig, which: PartSelector): string {
  const range = [task.range_start, task.range_end].map((instant) => formatCompactInstant(instant!)).join('_');
  const number = typeof which === 'number' ? String(which).padStart(PART_DIGITS, '0') : which;
  const part = number === null ? '' : `.part-${number}`;
  return `${range}.${task.id}${part}.${EXTENSIONS[format]}${compression === 'gzip' ? '.gz' : ''}`;
}

/** All tenants share the directory, so its keys begin with the tenant and the environment. */
export function formatFileKey(
  task: NamedExport & Scope,
  { provider_type }: Pick<ConnectionModel, 'provider_type'>,
  { job_config, which }: { job_config: JobConfig; which: PartSelector },
): string {
  const owner = provider_type === 'directory' ? [task.tenant_id, task.environment_id] : [];
  const folder = [...owner, job_config.key_prefix, task.entity_type.toLowerCase()].filter((part) => part !== '');
  return [...folder, formatFileName(task, job_config, which)].join('/');
}

function formatCompactInstant(instant: string): string {
  return new Date(instant)
    .toISOString()
    .replaceAll(/[-:]/g, '')
    .replace(/\.000Z$/, 'Z');
}
