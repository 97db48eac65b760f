/** Chooses the log: Kafka if its brokers are configured, otherwise a table in Postgres. */
import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import { openEmbeddedLog } from './embedded/embedded.ts';
import type { KafkaConnection } from './kafka/client.ts';
import { createLayoutReader } from './kafka/layout.ts';
import type { EventLog } from './log.ts';
import { traceLog } from './traced-log.ts';

/** Default number of partitions of a new topic: enough for a dozen workers, and no burden for one. */
const KAFKA_PARTITIONS = 12;

/**
 * Default time after which a slice ends on an embedded log. With more partitions a slice takes longer to fill, because events are spread
 * over them.
 */
const EMBEDDED_WAIT_MS = 250;
const KAFKA_WAIT_MS = 1_000;

type LogParts = { readonly postgres: Knex; readonly logger: Logger };

export async function openLog(config: Config, parts: LogParts): Promise<EventLog> {
  return traceLog(await openUntraced(config, parts));
}

async function openUntraced(config: Config, { postgres, logger }: LogParts): Promise<EventLog> {
  const partitions = config.LOG_PARTITIONS;
  if (config.KAFKA_BROKERS === undefined) {
    // The lock on the data directory ensures that no other process uses an embedded Postgres.
    const isAlone = config.DATABASE_URL === undefined;
    return openEmbeddedLog(postgres, {
      partition_count: partitions ?? 1,
      append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
      batch_events_max: config.SLICE_EVENTS_MAX,
      linger_ms: config.SLICE_WAIT_MS ?? EMBEDDED_WAIT_MS,
      sole_owner: isAlone,
      ...(isAlone ? { directory: join(config.DATA_DIR, 'log') } : {}),
    });
  }
  // Without brokers, the client of Kafka is not loaded: it takes a twentieth of the CPU of a start.
  const { openKafkaLog } = await import('./kafka/kafka.ts');
  return openKafkaLog({
    ...buildKafkaConnection(config, config.KAFKA_BROKERS),
    logger: logger.child({ part: 'kafka' }),
    topic_prefix: config.KAFKA_TOPIC_PREFIX,
    partition_count: partitions ?? KAFKA_PARTITIONS,
    replication: config.KAFKA_REPLICATION,
    retention_hours: config.KAFKA_RETENTION_HOURS,
    ...(config.KAFKA_DEAD_LETTER_TOPIC === undefined ? {} : { dead_letter_topic: config.KAFKA_DEAD_LETTER_TOPIC }),
    dead_letter_retention_hours: config.KAFKA_DEAD_LETTER_RETENTION_HOURS,
    ...(config.KAFKA_SYSTEM_EVENT_TOPIC === undefined ? {} : { system_event_topic: config.KAFKA_SYSTEM_EVENT_TOPIC }),
    system_event_retention_hours: config.KAFKA_SYSTEM_EVENT_RETENTION_HOURS,
    append_timeout_ms: config.LOG_APPEND_TIMEOUT_MS,
    linger_ms: config.SLICE_WAIT_MS ?? KAFKA_WAIT_MS,
    layout: createLayoutReader(postgres),
  });
}

export function buildKafkaConnection(config: Config, brokers: string): KafkaConnection {
  return {
    brokers: brokers.split(',').map((broker) => broker.trim()),
    ssl: config.KAFKA_SSL,
    sasl: buildSasl(config),
  };
}

function buildSasl(config: Config) {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config;
  if (mechanism === undefined) return undefined;
  if (username === undefined || password === undefined)
    throw new Error('configuration: KAFKA_SASL_MECHANISM needs KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD');
  return { mechanism, username, password };
}
