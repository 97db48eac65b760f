/**
 * A pipeline on databases of its own, without HTTP. Tests append events to the log, announce meters and query usage.
 */
import { type Logger, pino } from 'pino';
import { appendEvents } from '../../actions/metering/events/append-events.ts';
import { elementSpans } from '../../core/metering/event-text.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import { type RunningPipeline, startPipeline } from '../../pipeline/pipeline.ts';
import type { ClickHouseClient } from '../../storage/clickhouse/clickhouse.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import { growLog } from '../../storage/log/grow.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import { announceMeterVersion } from '../../storage/progress/meter-versions.ts';
import { readUsageReport } from '../../storage/usage/usage.ts';
import type { UsageCache } from '../../storage/usage/usage-cache.ts';
import { isLogProcessed, isSettled } from './settled.ts';
import { type FreshDatabase, freshDatabase } from './stores.ts';
import { until } from './until.ts';

export const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };

export type SentEvent = { event_id: string; [field: string]: unknown };

export type Metering = {
  readonly stores: Stores;
  readonly postgres_url: string;
  readonly clickhouse_url: string;
  send(events: readonly SentEvent[]): Promise<void>;
  /** Announces the next version of a meter; null stops it. */
  announce(meter_id: string, definition: Omit<MeterDefinition, 'id' | 'reset_usage'> | null): Promise<void>;
  /** Waits until all events, announcements and requests have taken effect. */
  waitForPipeline(): Promise<void>;
  /** Usage of a meter by a customer in a range of instants, as text. */
  usage(meter_id: string, customer: string, range: readonly [string, string]): Promise<string>;
  /** Requests the daily rollups of all days before this one. */
  requestDailyRollups(before: string): Promise<void>;
  rows<Row>(query: string): Promise<Row[]>;
  /** Adds partitions to the log, as `npm run partitions` does while the service is stopped. */
  grow(partitions: number): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
};

/** Maximum wait for the pipeline. It is long because each correction needs a rebuild, which takes longer on a busy machine. */
const SETTLED_WITHIN_MS = 90_000;

type MeteringOptions = {
  partitions?: number;
  slice_events_max?: number;
  /** Directory for files of the log. If set, all records are in these files instead of in Postgres. */
  log_directory?: string;
  logger?: Logger;
  /** Client of ClickHouse in place of the default one, for tests that disturb its connection. */
  clickhouse?: (url: string) => Promise<ClickHouseClient>;
  /** Migrated database; by default a new one. It is closed at the end. */
  database?: FreshDatabase;
  /** Usage cache, as in a process that runs both API and pipeline. */
  usage_cache?: UsageCache;
  /** Opens another log in place of the embedded one. */
  open_log?: (postgres: Stores['postgres'], partition_count: number) => Promise<EventLog>;
};

export async function startMetering({
  partitions = 3,
  slice_events_max = 500,
  log_directory,
  clickhouse: connect,
  logger = pino({ level: process.env.TEST_LOG_LEVEL ?? 'fatal' }),
  ...given
}: MeteringOptions = {}): Promise<Metering> {
  const database = given.database ?? (await freshDatabase());
  const openEmbedded = (postgres: Stores['postgres'], partition_count: number) =>
    openEmbeddedLog(postgres, {
      partition_count,
      append_timeout_ms: 5000,
      linger_ms: 20,
      lease_ms: 2_000,
      ...(log_directory ? { directory: log_directory, inline_bytes_max: 0 } : {}),
    });
  const open = given.open_log ?? openEmbedded;
  const log = await open(database.postgres, partitions);
  const clickhouse = connect ? await connect(database.clickhouse_url) : database.clickhouse;
  const stores = { postgres: database.postgres, clickhouse, log, usage_cache: given.usage_cache };
  const versions = new Map<string, number>();
  let pipeline: RunningPipeline | null = null;
  const resume = async () => {
    const options = {
      owner: 'test',
      slice_events_max,
      logger,
      clock: () => new Date(),
    };
    pipeline ??= await startPipeline(stores, options);
  };
  const pause = async () => {
    const running = pipeline;
    pipeline = null;
    await running?.stop();
  };
  await resume();
  return {
    stores,
    postgres_url: database.postgres_url,
    clickhouse_url: database.clickhouse_url,
    pause,
    resume,
    grow: async (to) => {
      await pause();
      await growLog(stores, to);
      await stores.log.close();
      stores.log = await open(database.postgres, to);
      await resume();
    },
    send: async (events) => {
      const body = Buffer.from(JSON.stringify(events));
      const spans = elementSpans(body.toString('latin1'));
      const incoming = events.map(({ event_id }, index) => ({ span: spans[index]!, event_id }));
      await appendEvents(stores.log, SCOPE, { body, events: incoming, contiguous: true, now: new Date() });
    },
    announce: async (meter_id, given) => {
      const version = (versions.get(meter_id) ?? 0) + 1;
      versions.set(meter_id, version);
      const definition = given && { ...given, id: meter_id, reset_usage: 'BILLING_PERIOD' as const };
      await stores.postgres.transaction((transaction) =>
        announceMeterVersion(transaction, SCOPE, { meter_id, version, definition }),
      );
    },
    waitForPipeline: async () => {
      const isIdle = () => isSettled(stores.postgres, () => isLogProcessed(stores.log));
      await until('the pipeline is idle', isIdle, SETTLED_WITHIN_MS);
    },
    usage: async (meter_id, customer, [start, end]) => {
      const report = await readUsageReport(stores, SCOPE, {
        meter: { id: meter_id },
        external_customer_ids: [customer],
        start_us: Date.parse(start) * 1000,
        end_us: Date.parse(end) * 1000,
      });
      return report.usage[0]!.total.value.toFixed();
    },
    requestDailyRollups: async (before) => {
      await requestDailyRollups(stores.postgres, Math.floor(Date.parse(before) / 86_400_000));
    },
    rows: async <Row>(query: string) =>
      (await (await stores.clickhouse.query({ query, format: 'JSONEachRow' })).json<Row>()) as Row[],
    stop: async () => {
      await pause();
      await stores.log.close();
      if (clickhouse !== database.clickhouse) await clickhouse.close();
      await database.close();
    },
  };
}
