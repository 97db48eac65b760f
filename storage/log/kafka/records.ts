/** Converts Kafka messages to records: a fetch from an offset on, in order and without a gap. */
import type { KafkaMessage } from 'kafkajs';
import { checkContinues, takeUntilHole } from '../continuity.ts';
import type { LogRecord } from '../log.ts';

type FetchedRange = {
  readonly partition: number;
  readonly partition_count: number;
  readonly from: bigint;
  /** Records before this offset are checked and not processed: they may date from a time with fewer partitions. */
  readonly processed_from: bigint;
};

/** Returns the records up to the first gap; none if the fetch was for an earlier offset. Throws if the record at `from` is missing. */
export function parseRecords(
  messages: readonly KafkaMessage[],
  { partition, partition_count, from, processed_from }: FetchedRange,
): LogRecord[] {
  const wanted = messages.filter(({ offset }) => BigInt(offset) >= from);
  const stray = wanted.find(
    (message) => BigInt(message.offset) >= processed_from && !hasSamePartitionCount(message, partition_count),
  );
  if (stray) throw strayError(stray, { partition, partition_count });
  const records = wanted.map((message) => parseRecord(partition, message));
  checkContinues(partition, from, records.slice(0, 1));
  return takeUntilHole(records);
}

/**
 * Whether the message was sent for the same number of partitions. Otherwise its ids would be checked on the wrong partition, and could
 * count twice.
 */
function hasSamePartitionCount({ headers }: KafkaMessage, partition_count: number): boolean {
  const count = headers?.partitions?.toString();
  return count === undefined || Number(count) === partition_count;
}

function strayError(
  { offset, headers }: KafkaMessage,
  { partition, partition_count }: Pick<FetchedRange, 'partition' | 'partition_count'>,
): Error {
  return new Error(
    `partition ${partition}: the record at offset ${offset} was spread over ${String(headers!.partitions)} partitions, but ${partition_count} are in use (docs/operations.md)`,
  );
}

function parseRecord(partition: number, { offset, value, headers }: KafkaMessage): LogRecord {
  const header = (name: string) => headers?.[name]?.toString() ?? '';
  const generated_ids = header('made_ids');
  const record: LogRecord = {
    partition,
    offset: BigInt(offset),
    kind: header('kind') as LogRecord['kind'],
    tenant_id: header('tenant_id'),
    environment_id: header('environment_id'),
    received_at_us: Number(header('received_at_us')),
    generated_ids: generated_ids === '' ? null : JSON.parse(generated_ids),
    event_count: Number(header('event_count')),
    body: value ?? Buffer.alloc(0),
  };
  return headers?.traceparent === undefined ? record : { ...record, traceparent: header('traceparent') };
}
