/** A scheduled task exports records regularly to a destination in a format (docs/rules/exports.md, "Scheduled exports"). */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { isSpecialHost } from '../../foundation/network/special-addresses.ts';
import { anyCase, baseFields, orDefault, orNull } from '../../foundation/record.ts';
import { METADATA_FIELDS_MAX, metadataField } from '../export/metadata-field.ts';
import { compression, EXPORT_ENTITY_TYPES, exportFormat, instantFormat } from '../export/record.ts';
import { INTERVALS } from './interval.ts';

const ENCRYPTIONS = ['AES256', 'aws:kms', 'aws:kms:dsse'] as const;

const KEY_PREFIX_MAX = 500;
const FILE_SIZE_MB_MAX = 1_000_000;
/** Folder names separated by slashes; none leads out of its parent. */
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
    description: 'Bucket of S3; required for S3, refused for a directory.',
  }),
  region: orNull(z.string().regex(/^[a-z0-9-]{1,50}$/, { error: 'must be a region such as eu-central-1' })).meta({
    description: 'Region of S3. Default: us-east-1. Refused for a directory.',
  }),
  key_prefix: orDefault(keyPrefix, '').meta({
    description: 'Folder of the files, at most 500 characters; `.` and `..` are refused. Default: none.',
  }),
  format: orDefault(exportFormat, 'CSV').meta({ description: 'Format of the files: CSV or PARQUET. Default: CSV.' }),
  compression: orDefault(compression, 'none').meta({
    description: 'Compression of the files: none or gzip. Default: none.',
  }),
  bom: orDefault(z.boolean(), false).meta({
    description:
      'Whether a CSV file begins with a byte order mark, by which Excel recognizes UTF-8. Default: false. Refused for PARQUET.',
  }),
  instant_format: orDefault(instantFormat, 'rfc3339').meta({
    description:
      'Format of instants in a CSV file: rfc3339, or spreadsheet (`2026-03-01 10:00:00` in UTC, read as a date). Default: rfc3339. `spreadsheet` is refused for PARQUET.',
  }),
  max_file_size_mb: orNull(z.int().min(1).max(FILE_SIZE_MB_MAX)).meta({
    description: 'Maximum size of a part of a file in MiB before compression, from 1 to 1,000,000. Default: one file.',
  }),
  encryption: orNull(anyCase(ENCRYPTIONS)).meta({
    description: 'Server-side encryption of S3. Default: that of the bucket. Refused for a directory.',
  }),
  endpoint_url: orNull(z.url({ protocol: /^https?$/, error: 'must be an https URL' }).max(2_048)).meta({
    description:
      'URL of the S3 service: a public https host without path, query or fragment. Default: that of AWS. Refused for a directory.',
  }),
  use_path_style: orNull(z.boolean()).meta({
    description:
      'Whether the bucket is in the path of the URL instead of the host. Default: true if `endpoint_url` is set, else false. Refused for a directory.',
  }),
  virtual_host_style: orNull(z.boolean()).meta({
    description: 'The opposite of `use_path_style`; equal values of both are refused. Refused for a directory.',
  }),
  export_metadata_fields: orDefault(z.array(metadataField).max(METADATA_FIELDS_MAX), []).meta({
    description: 'Columns from metadata, after the other columns; at most 50.',
  }),
});
export type JobConfig = z.output<typeof jobConfig>;

export const scheduledTaskShape = z.object({
  id: z.string(),
  connection_id: z.string().meta({ description: 'Connection that the files are written to.' }),
  entity_type: anyCase(EXPORT_ENTITY_TYPES).meta({ description: 'Type of the exported records.' }),
  interval: anyCase(INTERVALS).meta({
    description: 'Interval of each file, aligned to UTC: 15MIN, 30MIN, hourly or daily; `custom` is refused.',
  }),
  enabled: z.boolean().meta({ description: 'Whether files are written automatically.' }),
  job_config: jobConfig.meta({ description: 'Destination within the connection, and format of the files.' }),
  ...baseFields,
});
export type ScheduledTask = z.output<typeof scheduledTaskShape>;

type ScheduledTaskInput = Pick<ScheduledTask, 'interval' | 'job_config'> & {
  provider_type: string;
  may_be_private: boolean;
};

/** Rules across fields: the interval is supported, S3 has a bucket and a directory has none, and an endpoint uses https. */
export function checkScheduledTask({ interval, job_config, provider_type, may_be_private }: ScheduledTaskInput): void {
  if (interval === 'custom') throw invalid('interval', 'custom is not allowed', { allowed: INTERVALS.slice(0, -1) });
  const { bucket, endpoint_url, use_path_style, virtual_host_style } = job_config;
  if (job_config.bom && job_config.format !== 'CSV') throw invalid('job_config.bom', 'is of CSV alone');
  if (job_config.instant_format !== 'rfc3339' && job_config.format !== 'CSV')
    throw invalid('job_config.instant_format', 'is of CSV alone');
  if (provider_type === 'directory') return checkForDirectory(job_config);
  if (bucket === null) throw invalid('job_config.bucket', 'is required');
  if (endpoint_url !== null) checkEndpoint(endpoint_url, may_be_private);
  if (use_path_style !== null && use_path_style === virtual_host_style)
    throw invalid('job_config.virtual_host_style', 'is the opposite of use_path_style');
}

/**
 * Accepts only a host with a public address. The address to which a host name resolves is checked when connecting. Error messages leave the
 * URL out, because it may contain a password.
 */
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

/** Limit of file systems for the name of a folder. */
const FOLDER_NAME_MAX = 255;

function checkForDirectory(job_config: JobConfig): void {
  const tooLong = job_config.key_prefix.split('/').some((name) => name.length > FOLDER_NAME_MAX);
  if (tooLong)
    throw invalid('job_config.key_prefix', `must not hold a name of more than ${FOLDER_NAME_MAX} characters`);
  const unexpected = S3_FIELDS.find((field) => job_config[field] !== null);
  if (unexpected) throw invalid(`job_config.${unexpected}`, 'is of S3, and the connection is a directory');
}

export function hasPathStyle({ use_path_style, virtual_host_style, endpoint_url }: JobConfig): boolean {
  if (use_path_style !== null) return use_path_style;
  if (virtual_host_style !== null) return !virtual_host_style;
  return endpoint_url !== null;
}
