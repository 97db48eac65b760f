/** Carries control messages from the outbox into every partition of the log. At least once: the pipeline takes the first. */
import type { LogEntry } from '../storage/log/log.ts';
import type { Stores } from '../storage/stores.ts';

const MESSAGES_PER_ROUND = 100;

/** One round; answers how many messages were carried. */
export async function relayControlMessages({ postgres, log }: Stores, nowMs: number): Promise<number> {
  return postgres.transaction(async (transaction) => {
    const { rows } = await transaction.raw(
      `select * from log_outbox order by id limit ${MESSAGES_PER_ROUND} for update skip locked`,
    );
    if (rows.length === 0) return 0;
    const entries: LogEntry[] = [];
    for (const row of rows) {
      for (let partition = 0; partition < log.partition_count; partition++) {
        entries.push({
          partition,
          kind: 'control',
          tenant_id: row.tenant_id,
          environment_id: row.environment_id,
          received_at_us: nowMs * 1000,
          made_ids: null,
          event_count: 0,
          body: Buffer.from(JSON.stringify(row.body)),
        });
      }
    }
    await log.append(entries);
    await transaction.raw(`delete from log_outbox where id = any(?)`, [rows.map((row: { id: string }) => row.id)]);
    return rows.length;
  });
}
