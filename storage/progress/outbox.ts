/**
 * Table `log_outbox`: messages that are sent to the log if and only if a transaction commits. A record and its message are written in one
 * transaction. The relay appends the messages to the log and removes them in its own transaction, so each message is sent at least once.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';

/** A message for the log. It goes to the partition of its `shard`; null sends it to all partitions. */
type OutboxMessage = Scope & { readonly id: string; readonly body: unknown; readonly shard: number | null };

/** Channel on which Postgres notifies the relays when a transaction with a message commits. */
export const OUTBOX_CHANNEL = 'log_outbox';

export async function enqueueMessage(
  transaction: Database,
  scope: Scope,
  body: unknown,
  shard: number | null = null,
): Promise<void> {
  await transaction.raw(
    `insert into log_outbox (tenant_id, environment_id, body, shard)
     select ?, ?, ?::jsonb, ?::int from pg_notify('${OUTBOX_CHANNEL}', '')`,
    [scope.tenant_id, scope.environment_id, JSON.stringify(body), shard],
  );
}

/** Whether the outbox has messages. It is mostly empty, so this check spares the relay most transactions. */
export async function hasMessages(postgres: Database): Promise<boolean> {
  const { rows } = await postgres.raw(`select exists (select from log_outbox) as has`);
  return rows[0].has;
}

/** Takes the oldest messages that no other relay has taken, and locks them until the transaction ends. */
export async function takeMessages(transaction: Database, limit: number): Promise<OutboxMessage[]> {
  const { rows } = await transaction.raw(`select * from log_outbox order by id limit ? for update skip locked`, [
    limit,
  ]);
  return rows;
}

export async function removeMessages(transaction: Database, messages: readonly OutboxMessage[]): Promise<void> {
  await transaction.raw(`delete from log_outbox where id = any(?)`, [messages.map(({ id }) => id)]);
}
