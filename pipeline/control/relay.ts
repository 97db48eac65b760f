/**
 * Moves control messages from the outbox into every partition of the log, or into the partition of their shard. Delivery is at least once:
 * the pipeline applies the first copy.
 */

import { type Milliseconds, toUs } from '../../core/foundation/time/instant.ts';
import { toPartition } from '../../core/metering/event/identity.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { LogEntry } from '../../storage/log/log.ts';
import { hasMessages, removeMessages, takeMessages } from '../../storage/progress/outbox.ts';

const MESSAGES_PER_ROUND = 100;

/** Runs one round; returns the number of messages moved. */
export async function relayControlMessages({ postgres, log }: Stores, nowMs: Milliseconds): Promise<number> {
  if (!(await hasMessages(postgres))) return 0;
  return postgres.transaction(async (transaction) => {
    const messages = await takeMessages(transaction, MESSAGES_PER_ROUND);
    if (messages.length === 0) return 0;
    const entries: LogEntry[] = [];
    for (const { tenant_id, environment_id, body, shard } of messages) {
      for (const partition of partitionsFor(shard, log.partition_count)) {
        entries.push({
          partition,
          kind: 'control',
          tenant_id,
          environment_id,
          received_at_us: toUs(nowMs),
          generated_ids: null,
          event_count: 0,
          body: Buffer.from(JSON.stringify(body)),
        });
      }
    }
    await log.append(entries);
    await removeMessages(transaction, messages);
    return messages.length;
  });
}

function partitionsFor(shard: number | null, partitionCount: number): number[] {
  if (shard !== null) return [toPartition(shard, partitionCount)];
  return Array.from({ length: partitionCount }, (_, partition) => partition);
}
