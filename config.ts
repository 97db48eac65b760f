/**
 * Every setting, parsed once; the only reader of `process.env`. `.env.example` lists them with their defaults.
 * A setting that cannot be used is one clear line at start-up, never a surprise later.
 */
import { homedir } from 'node:os';
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { parseEventName, SYSTEM_EVENT_NAMES } from './core/system-event/catalogue.ts';
import { explainInvalid } from './core/why-invalid.ts';

const port = z.coerce.number().int().min(0).max(65535);
const positive = z.coerce.number().int().positive();
const whole = z.coerce.number().int().min(0);
const shown = z.enum(['public', 'internal', 'off']);
const optionalText = z
  .string()
  .trim()
  .transform((text) => (text === '' ? undefined : text))
  .optional();

/** `~` and `~/…` are in the home directory of who runs the process; that of another, as a shell knows it, would be a folder of that name here. */
const directory = z
  .string()
  .refine((path) => !/^~[^/]/.test(path), { error: 'must be written in full: ~ alone is a home directory, your own' })
  .transform(fromHome);
const optionalDirectory = optionalText.pipe(directory.optional());

/** `a,b`: none when absent. */
const listOfTexts = z
  .string()
  .default('')
  .transform((text) => text.split(',').flatMap((item) => item.trim() || []));

/** `name=value,…`: what cannot be read is refused here, for the library would leave it out. */
const pairs = optionalText.refine((text) => text === undefined || text.split(',').every(isPair), {
  error: 'must be name=value,… with percent-encoded values',
});

const collector = optionalText.pipe(z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).optional());

const Settings = z.object({
  /** Port of the HTTP interface; 0 takes a free one. */
  PORT: port.default(8080),
  /** Interface to listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** A second port, not for the world: everything that PORT serves, and what is `internal`. */
  INTERNAL_PORT: port.optional(),
  /** Who sees /metrics: everybody who reaches PORT, or INTERNAL_PORT alone, or nobody. */
  METRICS: shown.default('public'),
  /** Who sees /docs and the OpenAPI document. */
  DOCS: shown.default('public'),
  /** Requests of one API key in a minute, in each process of the API, before it is answered 429; 0 is no limit. */
  RATE_LIMIT_REQUESTS: whole.default(300_000),
  /** Wrong API keys from one address in a minute, before keys that are not known are answered 429; 0 is no limit. */
  RATE_LIMIT_WRONG_KEYS: whole.default(100),
  /** How many proxies of ours stand before the API, whose X-Forwarded-For is believed. */
  TRUSTED_PROXIES: whole.default(0),
  /** Keys of a request body that the service does not know: refused, or left out and named in a header of the answer. */
  UNKNOWN_BODY_KEYS: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Where the embedded stores keep their data. */
  DATA_DIR: directory.default('.farthing'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('warn'),
  /** First API key, for scripts, tests and containers; made at random on the first start when absent. */
  BOOTSTRAP_API_KEY: optionalText,
  /** Signs the tokens of people who sign in, at least 32 characters; a random key kept in Postgres when absent. */
  JWT_SECRET: optionalText.pipe(z.string().min(32, { error: 'must have at least 32 characters' }).optional()),
  /** Seal the secrets of webhooks in Postgres: keys of at least 32 characters, separated by commas; the first seals, each opens. Kept as they are when absent. */
  SECRETS_KEYS: listOfTexts.refine((keys) => keys.every((key) => key.length >= 32), {
    error: 'must be keys of at least 32 characters, separated by commas',
  }),
  /** From it come the secrets with which the sandbox signs what it tells, at least 16 characters; without, nothing is believed. */
  PAYMENT_SANDBOX_SECRET: optionalText.pipe(
    z.string().min(16, { error: 'must have at least 16 characters' }).optional(),
  ),
  /** Whether anybody who reaches the interface may make a tenant: open or closed. */
  SIGN_UP: z.enum(['open', 'closed']).default('open'),
  /** postgres://… ; the embedded Postgres when absent. */
  DATABASE_URL: optionalText,
  /** http(s)://user:password@host:8123/database ; the embedded engine when absent. */
  CLICKHOUSE_URL: optionalText,
  /** Experimental (docs/operations.md, "A cluster of replicas"). Name of the ClickHouse cluster; a single server when absent. */
  CLICKHOUSE_CLUSTER: optionalText,
  /** host:port,… ; the embedded event log (a table in Postgres) when absent. */
  KAFKA_BROKERS: optionalText,
  KAFKA_TOPIC_PREFIX: z.string().default('farthing'),
  KAFKA_REPLICATION: positive.default(1),
  KAFKA_RETENTION_HOURS: positive.default(168),
  /** The topic that tells of dead letters; `<KAFKA_TOPIC_PREFIX>.dead-letters` when absent. */
  KAFKA_DEAD_LETTER_TOPIC: optionalText,
  KAFKA_DEAD_LETTER_RETENTION_HOURS: positive.default(720),
  /** The topic of system events; `<KAFKA_TOPIC_PREFIX>.system-events` when absent. */
  KAFKA_SYSTEM_EVENT_TOPIC: optionalText,
  KAFKA_SYSTEM_EVENT_RETENTION_HOURS: positive.default(720),
  KAFKA_SSL: z.stringbool().default(false),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: optionalText,
  KAFKA_SASL_PASSWORD: optionalText,
  /** Partitions of the event log when it is made (12 on Kafka, 1 embedded, when absent): more of them let more workers share the load. */
  LOG_PARTITIONS: positive.max(4096).optional(),
  /** How long an accept waits for the log before it answers 503. */
  LOG_APPEND_TIMEOUT_MS: positive.default(5000),
  /** A slice is cut at this many events, or after this time (1 s on Kafka, 250 ms embedded, when absent), whichever comes first. */
  SLICE_EVENTS_MAX: positive.default(50_000),
  SLICE_WAIT_MS: whole.optional(),
  /** Ids of events that a partition keeps exactly, at most 16 bytes each; older ones are in filters on the disk. */
  IDENTITY_HOT_IDS: positive.default(4_000_000),
  /** How much of these filters a partition keeps in memory. */
  IDENTITY_FILTER_MB: whole.default(256),
  /** A drafted invoice is finalized this long after its last computation. */
  FINALIZATION_DELAY_SECONDS: whole.default(7200),
  /** Scheduler: how often it looks for due periods. */
  BILLING_INTERVAL_SECONDS: positive.default(120),
  /** Usage of a UTC day is summed up in daily rollups, "day rows" before, when the day has been over for so many days. */
  DAY_ROWS_AFTER_DAYS: whole.default(2),
  /** http(s)://… of an endpoint that speaks OpenAI's chat completions, for `POST /ai/pricing/parse`; rules alone when absent. */
  LLM_BASE_URL: collector,
  LLM_API_KEY: optionalText,
  /** The model that is asked; needed with LLM_BASE_URL. */
  LLM_MODEL: optionalText,
  /** After this time rules answer in its place. */
  LLM_TIMEOUT_MS: positive.default(20_000),
  /** So often a tenant may have it asked in an hour, per process. */
  LLM_REQUESTS_PER_HOUR: whole.default(60),
  /** A folder with fonts (.ttf, .otf) for invoices in scripts that those of the service lack, such as Chinese. */
  PDF_FONTS_DIR: optionalDirectory,
  /** smtp://user:password@host:587, or smtps:// : invoices are sent by e-mail; nothing is sent when absent. */
  SMTP_URL: optionalText.pipe(z.url({ protocol: /^smtps?$/, error: 'must be an smtp(s) URL' }).optional()),
  /** Who sends them: `billing@example.com`, or `Acme <billing@example.com>`; needed with SMTP_URL. */
  MAIL_FROM: optionalText,
  /** Where exports to a directory are written, and read again, by every process; such connections are refused when absent. */
  EXPORT_DIRECTORY: optionalDirectory,
  /** A scheduled export begins so long after the end of its time, so that what was late is in it. */
  EXPORT_DELAY_SECONDS: whole.default(300),
  /** What speaks S3 may be at a private address, and without TLS: for a store of your own network. */
  EXPORT_ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
  /** Webhooks may go to private addresses, such as 127.0.0.1: for development. */
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
  /** Whether webhooks that failed are sent again by themselves. */
  WEBHOOK_RETRY_ENABLED: z.stringbool().default(true),
  /** So many a second, in each run. */
  WEBHOOK_RETRY_RATE_LIMIT: positive.default(5),
  /** One that failed so often is given up. */
  WEBHOOK_RETRY_MAX_ATTEMPTS: positive.default(5),
  /** Ids of tenants, separated by commas, whose webhooks are not sent again. */
  WEBHOOK_RETRY_EXCLUDED_TENANTS: listOfTexts,
  /** Names of events, separated by commas, that alone are sent again; all of them when absent. */
  WEBHOOK_RETRY_ALLOWED_EVENT_TYPES: listOfTexts
    .transform((names) => names.map(parseEventName))
    .pipe(
      z.array(
        z.enum(SYSTEM_EVENT_NAMES, {
          error: ({ input }) => `${String(input)} is no system event (docs/rules/webhooks.md has them all)`,
        }),
      ),
    ),
  /** System events, and how they were delivered, are kept for so many days. */
  SYSTEM_EVENT_RETENTION_DAYS: positive.default(30),
  /** Where the events of reservations stand in the log is kept for so many days behind their being counted. */
  RESERVATION_EVENT_RETENTION_DAYS: positive.default(30),
  /** Entries of the audit log are kept for so many days; for ever when absent. */
  AUDIT_LOG_RETENTION_DAYS: optionalText.pipe(z.coerce.number<string | undefined>().int().positive().optional()),
  /** A file that is imported has at most so many MiB; one that is uploaded 32. */
  IMPORT_FILE_MAX_MB: positive.default(1024),
  /** Private addresses, separated by commas, from which files are fetched all the same, over http too; none when absent. */
  IMPORT_ALLOWED_ADDRESSES: listOfTexts,
  /** The token of Svix: it has the endpoints and delivers then; our own delivery when absent. */
  SVIX_TOKEN: optionalText,
  /** Where Svix is; its own service, by the region in the token, when absent. */
  SVIX_SERVER_URL: optionalText.pipe(z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).optional()),
  /** http(s)://host:4318 of an OpenTelemetry collector; no traces when absent. `/v1/traces` is put behind it. */
  OTEL_EXPORTER_OTLP_ENDPOINT: collector,
  /** The same for traces alone, taken as it is. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector,
  /** What the collector wants to see: name=value,…, percent-encoded. */
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  /** The name of the process (farthing, farthing-api, …) when absent. */
  OTEL_SERVICE_NAME: optionalText,
  OTEL_RESOURCE_ATTRIBUTES: pairs,
  /** Which traces are kept; parentbased_always_on when absent. */
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .optional(),
  /** How many of them, for the two samplers by ratio: 0.1 is every tenth; all when absent. */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).optional(),
});

export type Config = Readonly<z.infer<typeof Settings>>;

/** Throws one line that names every wrong setting. */
export function readConfig(environment: Record<string, string | undefined> = process.env): Config {
  const known = Object.fromEntries(
    Object.keys(Settings.shape)
      .filter((name) => environment[name] !== undefined && environment[name] !== '')
      .map((name) => [name, environment[name]]),
  );
  refuseMistyped(environment);
  const parsed = Settings.safeParse(known, { error: explainInvalid });
  if (parsed.success) {
    const { METRICS, DOCS, INTERNAL_PORT } = parsed.data;
    if (INTERNAL_PORT === undefined && [METRICS, DOCS].includes('internal'))
      throw new Error('configuration: INTERNAL_PORT: is required where METRICS or DOCS is internal');
    if ((parsed.data.SMTP_URL === undefined) !== (parsed.data.MAIL_FROM === undefined))
      throw new Error('configuration: SMTP_URL and MAIL_FROM go together');
    if ((parsed.data.LLM_BASE_URL === undefined) !== (parsed.data.LLM_MODEL === undefined))
      throw new Error('configuration: LLM_BASE_URL and LLM_MODEL go together');
    refuseUntraced(parsed.data, environment);
    return parsed.data;
  }
  const faults = parsed.error.issues.map((issue) => `${String(issue.path[0])}: ${describeIssue(issue, known)}`);
  throw new Error(`configuration: ${faults.join('; ')}`);
}

/** A text that is no number was made NaN before it was looked at. Numbers are no secrets. */
function describeIssue(issue: z.core.$ZodIssue, given: Record<string, string | undefined>): string {
  const isNumber = issue.code === 'invalid_type' && (issue.expected === 'number' || issue.expected === 'int');
  if (!isNumber) return issue.message;
  return `must be a ${issue.expected === 'int' ? 'whole ' : ''}number, and is ${given[String(issue.path[0])]}`;
}

function isPair(entry: string): boolean {
  return /^\s*[^=;\s]+=(?:[^%;]|%[0-9a-f]{2})+$/i.test(entry);
}

/** Shells replace `~` in some places, and `.env` files nowhere. */
function fromHome(path: string): string {
  return path === '~' || path.startsWith('~/') ? homedir() + path.slice(1) : path;
}

/** Names of OpenTelemetry that are about something else than traces. */
const OTHER_SIGNALS = /^OTEL_(?:EXPORTER_OTLP_)?(?:METRICS?|LOGS?|LOGRECORD|BLRP|PROFILES?)_/;

/** Who sets how traces are made wants them made so: a setting that would do nothing is refused. */
function refuseUntraced(config: Config, environment: Record<string, string | undefined>): void {
  const settingError = (name: string, why: string) => new Error(`configuration: ${name}: ${why}`);
  const isOn = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (config.OTEL_TRACES_SAMPLER_ARG !== undefined && !config.OTEL_TRACES_SAMPLER?.endsWith('traceidratio'))
    throw settingError('OTEL_TRACES_SAMPLER_ARG', 'is for an OTEL_TRACES_SAMPLER by ratio (parentbased_traceidratio)');
  if (isOn === undefined) {
    const unused = (['OTEL_TRACES_SAMPLER', 'OTEL_EXPORTER_OTLP_HEADERS'] as const).find((name) => config[name]);
    if (unused) throw settingError(unused, 'does nothing without OTEL_EXPORTER_OTLP_ENDPOINT');
    return;
  }
  const unknown = Object.keys(environment).find(
    (name) =>
      name.startsWith('OTEL_') &&
      environment[name] &&
      !Object.hasOwn(Settings.shape, name) &&
      !OTHER_SIGNALS.test(name),
  );
  if (unknown)
    throw settingError(unknown, 'is no setting: traces go as OTLP over HTTP in JSON (.env.example lists the others)');
}

/** Short names are near to too many others. */
const COMPARED_FROM = 6;
const TYPO_MAX = 2;

/** The environment is full of what is none of ours, but a name that is nearly that of a setting which is not set is a mistake. */
function refuseMistyped(environment: Record<string, string | undefined>): void {
  const settings = Object.keys(Settings.shape).filter((name) => name.length >= COMPARED_FROM);
  const unset = settings.filter((name) => environment[name] === undefined);
  for (const name of Object.keys(environment)) {
    if (Object.hasOwn(Settings.shape, name)) continue;
    const meant = unset.find((setting) => distance(name.toUpperCase(), setting) <= TYPO_MAX);
    if (meant) throw new Error(`configuration: ${name}: is no setting; ${meant} is (.env.example lists them all)`);
  }
}
