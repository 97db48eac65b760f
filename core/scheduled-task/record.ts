/** A scheduled task: what is exported again and again, whereto, and how (docs/rules/exports.md, "Scheduled exports"). */
import { z } from 'zod';
import type { ProviderType } from '../connection/record.ts';
import { invalid } from '../error.ts';
import { METADATA_FIELDS_MAX, metadataField } from '../export/metadata-field.ts';
import { compression, EXPORT_ENTITY_TYPES, exportFormat } from '../export/record.ts';
import { isSpecialHost } from '../network/special-addresses.ts';
import { anyCase, baseFields, orDefault, orNull } from '../record.ts';
import { INTERVALS } from './interval.ts';

export const ENCRYPTIONS = ['AES256', 'aws:kms', 'aws:kms:dsse'] as const;

const KEY_PREFIX_MAX = 500;
const FILE_SIZE_MB_MAX = 1_000_000;
/** Names of folders, one after the other; none leads out of where they are. */
const KEY_PREFIX = /^(?!.*(?:^|\/)\.{0,2}(?:\/|$))[\w .=@()+-]+(?:\/[\w .=@()+-]+)*$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

const keyPrefix = z
  .string()
  .transform((text) => text.replace(/^\/+|\/+$/g, ''))
  .pipe(z.string().max(KEY_PREFIX_MAX))
  .refine((text) => text === '' || KEY_PREFIX.test(text), {
    error: 'must be names of folders such as farthing/exports, without . and ..',
  });

export const jobConfig = z.object({
  bucket: orNull(z.string().regex(BUCKET, { error: 'must be the name of a bucket' })).meta({
    description: 'Of S3: the bucket.',
  }),
  region: orNull(z.string().regex(/^[a-z0-9-]{1,50}$/, { error: 'must be a region such as eu-central-1' })).meta({
    description: 'Of S3: its region; us-east-1 when absent.',
  }),
  key_prefix: orDefault(keyPrefix, '').meta({ description: 'The folder in which files are written.' }),
  format: orDefault(exportFormat, 'CSV').meta({ description: 'CSV or PARQUET; CSV when absent.' }),
  compression: orDefault(compression, 'none').meta({ description: 'Whether files are packed.' }),
  bom: orDefault(z.boolean(), false).meta({
    description: 'Of CSV: whether a file begins with a byte order mark, by which Excel knows UTF-8; not when absent.',
  }),
  max_file_size_mb: orNull(z.int().min(1).max(FILE_SIZE_MB_MAX)).meta({
    description: 'Cuts a file into parts of at most so many MiB before they are packed; one file when absent.',
  }),
  encryption: orNull(anyCase(ENCRYPTIONS)).meta({
    description: 'Of S3: how files are encrypted there; as the bucket has it when absent.',
  }),
  endpoint_url: orNull(z.url({ protocol: /^https?$/, error: 'must be an https URL' }).max(2_048)).meta({
    description: 'Where S3 is; that of AWS when absent.',
  }),
  use_path_style: orNull(z.boolean()).meta({
    description:
      'Whether the bucket stands in the path of an address, and not in its host; where `endpoint_url` is, it does.',
  }),
  virtual_host_style: orNull(z.boolean()).meta({ description: 'The opposite of `use_path_style`, in other words.' }),
  export_metadata_fields: orDefault(z.array(metadataField).max(METADATA_FIELDS_MAX), []).meta({
    description: 'Columns that are made of metadata, behind the others.',
  }),
});
export type JobConfig = z.output<typeof jobConfig>;

export const scheduledTaskShape = z.object({
  id: z.string(),
  connection_id: z.string().meta({ description: 'Whereto the files are written.' }),
  entity_type: anyCase(EXPORT_ENTITY_TYPES).meta({ description: 'What the records of a file are.' }),
  interval: anyCase(INTERVALS).meta({
    description: 'How long the time of a file is: 15MIN, 30MIN, hourly or daily, by the clock of UTC.',
  }),
  enabled: z.boolean().meta({ description: 'Whether files are written by themselves.' }),
  job_config: jobConfig.meta({ description: 'Where in the connection, and in which form.' }),
  ...baseFields,
});
export type ScheduledTask = z.output<typeof scheduledTaskShape>;

type ScheduledTaskInput = Pick<ScheduledTask, 'interval' | 'job_config'> & {
  provider_type: ProviderType;
  may_be_private: boolean;
};

/** What goes together: an interval that there is, a bucket where files go to S3 and none where they do not, https to others. */
export function checkScheduledTask({ interval, job_config, provider_type, may_be_private }: ScheduledTaskInput): void {
  if (interval === 'custom') throw invalid('interval', 'custom is not allowed', { allowed: INTERVALS.slice(0, -1) });
  const { bucket, endpoint_url, use_path_style, virtual_host_style } = job_config;
  if (job_config.bom && job_config.format !== 'CSV') throw invalid('job_config.bom', 'is of CSV alone');
  if (provider_type === 'directory') return checkForDirectory(job_config);
  if (bucket === null) throw invalid('job_config.bucket', 'is required');
  if (endpoint_url !== null) checkEndpoint(endpoint_url, may_be_private);
  if (use_path_style !== null && use_path_style === virtual_host_style)
    throw invalid('job_config.virtual_host_style', 'is the opposite of use_path_style');
}

/** An address alone, of a host whose own address is public; where a name leads is seen when it is connected to. Nothing of it is said again. */
function checkEndpoint(endpoint_url: string, may_be_private: boolean): void {
  const field = 'job_config.endpoint_url';
  const { protocol, hostname, username, password, pathname, search, hash } = new URL(endpoint_url);
  if (protocol !== 'https:' && !may_be_private) throw invalid(field, 'must be an https URL');
  if (username !== '' || password !== '') throw invalid(field, 'must not hold a user or a password');
  if (pathname !== '/' || search !== '' || hash !== '')
    throw invalid(field, 'must be a host alone, without a path, a query or a fragment');
  if (isSpecialHost(hostname) && !may_be_private) throw invalid(field, 'must be of a host with a public address');
}

const S3_FIELDS = ['bucket', 'region', 'encryption', 'endpoint_url', 'use_path_style', 'virtual_host_style'] as const;

/** Of a folder, where file systems end it. */
const FOLDER_NAME_MAX = 255;

function checkForDirectory(job_config: JobConfig): void {
  const tooLong = job_config.key_prefix.split('/').some((name) => name.length > FOLDER_NAME_MAX);
  if (tooLong)
    throw invalid('job_config.key_prefix', `must not hold a name of more than ${FOLDER_NAME_MAX} characters`);
  const unexpected = S3_FIELDS.find((field) => job_config[field] !== null);
  if (unexpected) throw invalid(`job_config.${unexpected}`, 'is of S3, and the connection is a directory');
}

/** Whether the bucket stands in the path. */
export function hasPathStyle({ use_path_style, virtual_host_style, endpoint_url }: JobConfig): boolean {
  if (use_path_style !== null) return use_path_style;
  if (virtual_host_style !== null) return !virtual_host_style;
  return endpoint_url !== null;
}
