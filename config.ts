/**
 * Every setting, parsed once; the only reader of `process.env`. `.env.example` lists them with their defaults. An unusable setting is one
 * clear line at start-up, never a surprise later.
 */
import { homedir } from 'node:os';
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { explainInvalid } from './core/foundation/why-invalid.ts';
import { parseEventName, SYSTEM_EVENT_NAMES } from './core/platform/system-event/catalogue.ts';

const port = z.coerce.number().int().min(0).max(65535);
const positive = z.coerce.number().int().positive();
const whole = z.coerce.number().int().min(0);
const shown = z.enum(['public', 'internal', 'off']);
const optionalText = z
  .string()
  .trim()
  .transform((text) => (text === '' ? undefined : text))
  .optional();

/**
 * `~` and `~/…` are in the home directory of the user who runs the process. `~name` is refused: a shell expands it, but here it would be a
 * folder of that name.
 */
const directory = z
  .string()
  .refine((path) => !/^~[^/]/.test(path), { error: 'must be written in full: ~ alone is a home directory, your own' })
  .transform(fromHome);
const optionalDirectory = optionalText.pipe(directory.optional());

/** `a,b`; an empty list if absent. */
const listOfTexts = z
  .string()
  .default('')
  .transform((text) => text.split(',').flatMap((item) => item.trim() || []));

/** `name=value,…`: an unreadable entry is refused here, because the library would ignore it. */
const pairs = optionalText.refine((text) => text === undefined || text.split(',').every(isPair), {
  error: 'must be name=value,… with percent-encoded values',
});

const collector = optionalText.pipe(z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).optional());

const Settings = z.object({
  /** Port of the HTTP API; 0 takes a free one. */
  PORT: port.default(8080),
  /** Interface to listen on. */
  HOST: z.string().default('127.0.0.1'),
  /** A second port, not public: it serves everything that PORT serves, and everything set to `internal`. */
  INTERNAL_PORT: port.optional(),
  /** Access to /metrics: every client of PORT, only clients of INTERNAL_PORT, or none. */
  METRICS: shown.default('public'),
  /** Access to /docs and the OpenAPI document. */
  DOCS: shown.default('public'),
  /** Access to the console in the browser, whose pages are at `/`. */
  CONSOLE: shown.default('public'),
  /** Requests per minute and API key, in each API process, before the answer is 429; 0 is no limit. */
  RATE_LIMIT_REQUESTS: whole.default(300_000),
  /** Wrong API keys per minute and address before unknown keys are answered 429; 0 is no limit. */
  RATE_LIMIT_WRONG_KEYS: whole.default(100),
  /** Number of trusted proxies in front of the API, whose X-Forwarded-For is believed. */
  TRUSTED_PROXIES: whole.default(0),
  /** https://… under which providers reach the API; the protocol and host of each request if absent. */
  PUBLIC_URL: optionalText
    .pipe(z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).optional())
    .transform((url) => url?.replace(/\/+$/, '')),
  /** Unknown keys of a request body: refused, or ignored and listed in a header of the answer. */
  UNKNOWN_BODY_KEYS: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Directory for the data of the embedded stores. */
  DATA_DIR: directory.default('.farthing'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('warn'),
  /** First API key, for scripts, tests and containers; if absent, the first start creates a random one. */
  BOOTSTRAP_API_KEY: optionalText,
  /** Signs the tokens of signed-in users, at least 32 characters; if absent, a random key stored in Postgres. */
  JWT_SECRET: optionalText.pipe(z.string().min(32, { error: 'must have at least 32 characters' }).optional()),
  /**
   * Keys that seal the secrets of webhooks and connections in Postgres, each of at least 32 characters, separated by commas. The first one
   * seals, each one opens. If absent, these secrets are stored unsealed, and connections to accounts at providers are refused.
   */
  SECRETS_KEYS: listOfTexts.refine((keys) => keys.every((key) => key.length >= 32), {
    error: 'must be keys of at least 32 characters, separated by commas',
  }),
  /** Source of the secrets that sign the sandbox's notifications, at least 16 characters; if absent, every notification is rejected. */
  PAYMENT_SANDBOX_SECRET: optionalText.pipe(
    z.string().min(16, { error: 'must have at least 16 characters' }).optional(),
  ),
  /** Whether any client of the API may create a tenant: open or closed. */
  SIGN_UP: z.enum(['open', 'closed']).default('open'),
  /** postgres://… ; the embedded Postgres if absent. */
  DATABASE_URL: optionalText,
  /** http(s)://user:password@host:8123/database ; the embedded engine if absent. */
  CLICKHOUSE_URL: optionalText,
  /** Experimental (docs/operations.md, "A cluster of replicas"). Name of the ClickHouse cluster; a single server if absent. */
  CLICKHOUSE_CLUSTER: optionalText,
  /** host:port,… ; the embedded event log (a table in Postgres) if absent. */
  KAFKA_BROKERS: optionalText,
  KAFKA_TOPIC_PREFIX: z.string().default('farthing'),
  KAFKA_REPLICATION: positive.default(1),
  KAFKA_RETENTION_HOURS: positive.default(168),
  /** Topic of dead letters; `<KAFKA_TOPIC_PREFIX>.dead-letters` if absent. */
  KAFKA_DEAD_LETTER_TOPIC: optionalText,
  KAFKA_DEAD_LETTER_RETENTION_HOURS: positive.default(720),
  /** Topic of system events; `<KAFKA_TOPIC_PREFIX>.system-events` if absent. */
  KAFKA_SYSTEM_EVENT_TOPIC: optionalText,
  KAFKA_SYSTEM_EVENT_RETENTION_HOURS: positive.default(720),
  KAFKA_SSL: z.stringbool().default(false),
  KAFKA_SASL_MECHANISM: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).optional(),
  KAFKA_SASL_USERNAME: optionalText,
  KAFKA_SASL_PASSWORD: optionalText,
  /** Partitions of a new event log (if absent, 12 on Kafka, 1 embedded): more of them let more workers share the load. */
  LOG_PARTITIONS: positive.max(4096).optional(),
  /** How long an accept waits for the log before it answers 503. */
  LOG_APPEND_TIMEOUT_MS: positive.default(5000),
  /** A slice ends at this many events, or after this time (if absent, 1 s on Kafka, 250 ms embedded), whichever comes first. */
  SLICE_EVENTS_MAX: positive.default(50_000),
  SLICE_WAIT_MS: whole.optional(),
  /** Event ids that a partition holds exactly, at most 16 bytes each; older ones are in filters on the disk. */
  IDENTITY_HOT_IDS: positive.default(4_000_000),
  /** Memory per partition for these filters. */
  IDENTITY_FILTER_MB: whole.default(256),
  /** Time between the last computation of a drafted invoice and its finalization. */
  FINALIZATION_DELAY_SECONDS: whole.default(7200),
  /** Interval at which the scheduler checks for due periods. */
  BILLING_INTERVAL_SECONDS: positive.default(120),
  /** Usage of a UTC day is aggregated into daily rollups (formerly "day rows") so many days after its end. */
  DAY_ROWS_AFTER_DAYS: whole.default(2),
  /** http(s)://… of an endpoint with OpenAI's chat completions API, for `POST /ai/pricing/parse`; only rules if absent. */
  LLM_BASE_URL: collector,
  LLM_API_KEY: optionalText,
  /** Name of the model; required with LLM_BASE_URL. */
  LLM_MODEL: optionalText,
  /** After this time, rules answer instead. */
  LLM_TIMEOUT_MS: positive.default(20_000),
  /** Requests to the model per tenant and hour, in each process. */
  LLM_REQUESTS_PER_HOUR: whole.default(60),
  /** Folder of fonts (.ttf, .otf) for invoices in scripts that the bundled ones lack, such as Chinese. */
  PDF_FONTS_DIR: optionalDirectory,
  /** smtp://user:password@host:587, or smtps:// : the server for e-mailed invoices; if absent, none is sent. */
  SMTP_URL: optionalText.pipe(z.url({ protocol: /^smtps?$/, error: 'must be an smtp(s) URL' }).optional()),
  /** Sender of invoices: `billing@example.com`, or `Acme <billing@example.com>`; required with SMTP_URL. */
  MAIL_FROM: optionalText,
  /** Addresses of providers in place of their public ones, for tests and proxies: name=http(s)://…, separated by commas. */
  PROVIDER_ADDRESSES: listOfTexts.refine((entries) => entries.every((entry) => /^\w+=https?:\/\/[^\s/]/.test(entry)), {
    error: 'must be name=http(s)://…, separated by commas',
  }),
  /** Directory of exports, written and read by every process; if absent, connections to a directory are refused. */
  EXPORT_DIRECTORY: optionalDirectory,
  /** Delay of a scheduled export after the end of its range, so that it includes late records. */
  EXPORT_DELAY_SECONDS: whole.default(300),
  /** Allows an S3-compatible store at a private address and without TLS: for a store in your own network. */
  EXPORT_ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
  /** Allows webhooks to private addresses, such as 127.0.0.1: for development. */
  WEBHOOK_ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
  /** Whether failed webhooks are resent automatically. */
  WEBHOOK_RETRY_ENABLED: z.stringbool().default(true),
  /** Resends per second, in each run. */
  WEBHOOK_RETRY_RATE_LIMIT: positive.default(5),
  /** After so many failures a delivery is given up. */
  WEBHOOK_RETRY_MAX_ATTEMPTS: positive.default(5),
  /** Ids of tenants, separated by commas, whose webhooks are not resent. */
  WEBHOOK_RETRY_EXCLUDED_TENANTS: listOfTexts,
  /** Names of events, separated by commas: only these are resent; all of them if absent. */
  WEBHOOK_RETRY_ALLOWED_EVENT_TYPES: listOfTexts
    .transform((names) => names.map(parseEventName))
    .pipe(
      z.array(
        z.enum(SYSTEM_EVENT_NAMES, {
          error: ({ input }) => `${String(input)} is no system event (docs/rules/webhooks.md has them all)`,
        }),
      ),
    ),
  /** Retention of system events and their deliveries, in days. */
  SYSTEM_EVENT_RETENTION_DAYS: positive.default(30),
  /** Retention of the log offsets of reservation events, in days after they were counted. */
  RESERVATION_EVENT_RETENTION_DAYS: positive.default(30),
  /** Retention of audit log entries, in days; for ever if absent. */
  AUDIT_LOG_RETENTION_DAYS: optionalText.pipe(z.coerce.number<string | undefined>().int().positive().optional()),
  /** Largest imported file in MiB; an uploaded file has at most 32. */
  IMPORT_FILE_MAX_MB: positive.default(1024),
  /** Private addresses, separated by commas, from which files may be fetched, over http too; none if absent. */
  IMPORT_ALLOWED_ADDRESSES: listOfTexts,
  /** Token of Svix, which then stores the endpoints and delivers; the built-in delivery if absent. */
  SVIX_TOKEN: optionalText,
  /** URL of the Svix server; if absent, the service of Svix in the region of the token. */
  SVIX_SERVER_URL: optionalText.pipe(z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }).optional()),
  /** http(s)://host:4318 of an OpenTelemetry collector; no traces if absent. `/v1/traces` is appended. */
  OTEL_EXPORTER_OTLP_ENDPOINT: collector,
  /** Endpoint for traces alone, used unchanged. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector,
  /** Headers for the collector: name=value,…, percent-encoded. */
  OTEL_EXPORTER_OTLP_HEADERS: pairs,
  /** If absent, the name of the process (farthing, farthing-api, …). */
  OTEL_SERVICE_NAME: optionalText,
  OTEL_RESOURCE_ATTRIBUTES: pairs,
  /** Sampler of traces; parentbased_always_on if absent. */
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
  /** Share of traces for the two ratio samplers: 0.1 is every tenth; all if absent. */
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
    const { METRICS, DOCS, CONSOLE, INTERNAL_PORT } = parsed.data;
    if (INTERNAL_PORT === undefined && [METRICS, DOCS, CONSOLE].includes('internal'))
      throw new Error('configuration: INTERNAL_PORT: is required where METRICS, DOCS or CONSOLE is internal');
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

/** The schema has coerced a text that is no number to NaN, so the message quotes the input. Numbers are not secret. */
function describeIssue(issue: z.core.$ZodIssue, given: Record<string, string | undefined>): string {
  const isNumber = issue.code === 'invalid_type' && (issue.expected === 'number' || issue.expected === 'int');
  if (!isNumber) return issue.message;
  return `must be a ${issue.expected === 'int' ? 'whole ' : ''}number, and is ${given[String(issue.path[0])]}`;
}

function isPair(entry: string): boolean {
  return /^\s*[^=;\s]+=(?:[^%;]|%[0-9a-f]{2})+$/i.test(entry);
}

/** Expands `~` here, because shells expand it only in some places, and `.env` files never. */
function fromHome(path: string): string {
  return path === '~' || path.startsWith('~/') ? homedir() + path.slice(1) : path;
}

/** OpenTelemetry names for other signals than traces. */
const OTHER_SIGNALS = /^OTEL_(?:EXPORTER_OTLP_)?(?:METRICS?|LOGS?|LOGRECORD|BLRP|PROFILES?)_/;

/** A tracing setting without effect is refused, because its author expects an effect. */
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

/** Minimum length of a name that is compared: shorter names resemble too many others. */
const COMPARED_FROM = 6;
const TYPO_MAX = 2;

/** The environment has many unrelated names. A name that nearly equals an unset setting is a mistake. */
function refuseMistyped(environment: Record<string, string | undefined>): void {
  const settings = Object.keys(Settings.shape).filter((name) => name.length >= COMPARED_FROM);
  const unset = settings.filter((name) => environment[name] === undefined);
  for (const name of Object.keys(environment)) {
    if (Object.hasOwn(Settings.shape, name)) continue;
    const meant = unset.find((setting) => distance(name.toUpperCase(), setting) <= TYPO_MAX);
    if (meant) throw new Error(`configuration: ${name}: is no setting; ${meant} is (.env.example lists them all)`);
  }
}
