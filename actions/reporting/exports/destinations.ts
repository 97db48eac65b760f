/** Derives the destination of an export from its connection, and the names of the export's files. */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { EXTENSIONS } from '../../../core/platform/export/record.ts';
import type { JobConfig } from '../../../core/platform/scheduled-task/record.ts';
import type { Task } from '../../../core/platform/task/record.ts';
import type { ExportDestination } from '../../../integrations/export-destination.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { ExportCapability, ExportProviderSettings } from '../../../integrations/provider.ts';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { openConnectionSecrets } from '../../foundation/connections/connection-secrets.ts';

export type ExportSettings = ExportProviderSettings & { readonly SECRETS_KEYS: readonly string[] };

export function createDestination(
  connection: ConnectionModel,
  job_config: JobConfig,
  settings: ExportSettings,
): ExportDestination {
  if (connection.status !== 'published') throw notAllowed(`the connection ${connection.id} is ${connection.status}`);
  const openSecrets = () => openConnectionSecrets(connection, createSealer(settings.SECRETS_KEYS));
  return findExportCapability(connection).create({ id: connection.id, job_config, settings, openSecrets });
}

export function findExportCapability({ provider_type }: Pick<ConnectionModel, 'provider_type'>): ExportCapability {
  const capability = listCapable('export_destination')[provider_type];
  if (!capability) throw notAllowed(`${provider_type} is no destination of exports`);
  return capability;
}

type NamedExport = Pick<Task, 'id' | 'entity_type' | 'range_start' | 'range_end'>;

/** A part of a file by its number, or all parts; null for a file without parts. */
export type PartSelector = number | '*' | null;

const PART_DIGITS = 4;
/** Maximum number of parts: the number of a part has four digits, so that the alphabetical order of the names is the order of the parts. */
export const PARTS_MAX = 10 ** PART_DIGITS - 1;

/**
 * Formats a file name, e.g. `prefix/invoice/20260301T000000Z_20260302T000000Z.task_….csv.gz`, or
 * `….task_….part-0001.csv.gz`. Each attempt of a task uses the same name.
 */
export function formatFileName(task: NamedExport, { format, compression }: JobConfig, which: PartSelector): string {
  const range = [task.range_start, task.range_end].map((instant) => formatCompactInstant(instant!)).join('_');
  const number = typeof which === 'number' ? String(which).padStart(PART_DIGITS, '0') : which;
  const part = number === null ? '' : `.part-${number}`;
  return `${range}.${task.id}${part}.${EXTENSIONS[format]}${compression === 'gzip' ? '.gz' : ''}`;
}

/** Formats the key of a file. In a shared destination it begins with the tenant and the environment. */
export function formatFileKey(
  task: NamedExport & Scope,
  connection: Pick<ConnectionModel, 'provider_type'>,
  { job_config, which }: { job_config: JobConfig; which: PartSelector },
): string {
  const owner = findExportCapability(connection).is_shared ? [task.tenant_id, task.environment_id] : [];
  const folder = [...owner, job_config.key_prefix, task.entity_type.toLowerCase()].filter((part) => part !== '');
  return [...folder, formatFileName(task, job_config, which)].join('/');
}

function formatCompactInstant(instant: string): string {
  return new Date(instant)
    .toISOString()
    .replaceAll(/[-:]/g, '')
    .replace(/\.000Z$/, 'Z');
}
