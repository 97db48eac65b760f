/** Publishes system events on their own Kafka topic if the log is Kafka: at least once, in order per record. */

import type { Stores } from '../../../storage/foundation/stores.ts';
import { markStreamed, takeUnstreamed } from '../../../storage/queue/unstreamed-events.ts';

const EVENTS_AT_ONCE = 500;

/** Returns the number of published events. */
export async function streamEvents({ postgres, log }: Pick<Stores, 'postgres' | 'log'>, now: Date): Promise<number> {
  if (log.publishSystemEvents === undefined) return 0;
  for (let streamed = 0; ; ) {
    const count = await postgres.transaction(async (transaction) => {
      const events = await takeUnstreamed(transaction, EVENTS_AT_ONCE);
      if (events.length === 0) return 0;
      await log.publishSystemEvents!(events);
      const ids = events.map(({ id }) => id);
      await markStreamed(transaction, ids, now);
      return events.length;
    });
    streamed += count;
    if (count < EVENTS_AT_ONCE) return streamed;
  }
}
