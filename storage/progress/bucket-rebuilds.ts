/** Table `bucket_rebuilds`: requested rebuilds of bucket rows. The pipeline runs each when it reads its message. */
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';
import { enqueueMessage } from './outbox.ts';

export type RebuildKeys = {
  readonly meter_id: string;
  readonly day: number;
  /** Absent: all customers of the day. */
  readonly external_customer_ids?: readonly string[];
};

/** A version of a meter that goes live with the rebuild. */
export type SettlingVersion = { readonly meter_id: string; readonly version: number };

/** Body of the control message. */
export type RebuildMessage = { readonly type: 'rebuild'; readonly rebuild_id: string };

/** Shard whose partition runs all rebuilds, one after the other. */
const SHARD = 0;

export async function requestRebuild(
  database: Database,
  scope: Scope,
  {
    targets,
    reason,
    settles = null,
  }: { targets: readonly RebuildKeys[]; reason: string; settles?: SettlingVersion | null },
): Promise<string> {
  return database.transaction(async (transaction) => {
    const { rows } = await transaction.raw(
      `insert into bucket_rebuilds (tenant_id, environment_id, targets, reason, settles)
       values (?, ?, ?::jsonb, ?, ?::jsonb) returning id`,
      [
        scope.tenant_id,
        scope.environment_id,
        JSON.stringify(targets),
        reason,
        settles === null ? null : JSON.stringify(settles),
      ],
    );
    const message: RebuildMessage = { type: 'rebuild', rebuild_id: rows[0].id };
    await enqueueMessage(transaction, scope, message, SHARD);
    return rows[0].id;
  });
}

type BucketRebuild = Scope & {
  readonly id: string;
  readonly targets: readonly RebuildKeys[];
  readonly settles: SettlingVersion | null;
  readonly done: boolean;
};

export async function findRebuild(database: Database, id: string): Promise<BucketRebuild | undefined> {
  const { rows } = await database.raw(`select *, done_at is not null as done from bucket_rebuilds where id = ?`, [id]);
  return rows[0];
}

export async function finishRebuild(transaction: Database, id: string): Promise<void> {
  await transaction.raw(`update bucket_rebuilds set done_at = now() where id = ?`, [id]);
}
