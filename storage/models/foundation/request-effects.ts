/**
 * Table `request_effects`: the committed changes of a request with an Idempotency-Key. They are written with the audit
 * entries (statements.ts) in the same transaction, so no action can omit them. A key has one row, so if two processes
 * held the key one after the other, only one can commit.
 */
import { FarthingError } from '../../../core/foundation/error.ts';
import { currentRequestContext, type RequestKey, runAsSystem } from '../../foundation/request-context.ts';
import type { Database } from '../../foundation/stores.ts';

export type RequestEffect = readonly [entity_type: string, id: string, deed: RequestEffectKind];
type RequestEffectKind = 'made' | 'changed' | 'removed';

export type RequestEffects = { readonly records: readonly RequestEffect[]; readonly answer: unknown };

/** A record before and after a change; `before` is null if the change created the record, `after` is null if it deleted the record. */
type EffectChange = { readonly before: object | null; readonly after: object | null };

const recordedEffects = new WeakMap<Database, Set<string>>();

/** Records the changes of `transaction`, if they belong to a request with a key. */
export async function recordEffects(
  changes: readonly EffectChange[],
  entity_type: string,
  transaction: Database,
): Promise<void> {
  const key = currentRequestContext()?.key;
  if (!key || key.goes_on || changes.length === 0) return;
  const known = recordedEffects.get(transaction) ?? new Set();
  const records = changes.map((change) => toEffect(change, entity_type)).filter((one) => !known.has(one.join()));
  if (records.length === 0) return;
  const { rows } = await runAsSystem(async () => transaction.raw(RECORD_SQL, toBindings(key, records)));
  if (rows.length === 0)
    throw new FarthingError('version_conflict', 'a request with this Idempotency-Key is being handled');
  key.has_effects = true;
  recordedEffects.set(transaction, new Set([...known, ...records.map((one) => one.join())]));
}

/**
 * SQL that records an effect. It succeeds only for the current holder of the key, and only if this holder recorded all
 * earlier effects. It waits for a concurrent transaction that recorded one.
 */
const RECORD_SQL = `
  insert into request_effects as kept (tenant_id, environment_id, key_id, holder, records, expires_at)
  select tenant_id, environment_id, id, holder, ?::jsonb, expires_at from idempotency_keys
   where tenant_id = ? and environment_id = ? and id = ? and holder = ?
      on conflict (tenant_id, environment_id, key_id) do update set records = kept.records || excluded.records
   where kept.holder = excluded.holder
  returning key_id`;

function toBindings({ id, holder, tenant_id, environment_id }: RequestKey, records: readonly RequestEffect[]) {
  return [JSON.stringify(records), tenant_id, environment_id, id, holder];
}

function toEffect({ before, after }: EffectChange, entity_type: string): RequestEffect {
  const { id } = (after ?? before) as { id: string };
  return [entity_type, id, before === null ? 'made' : after === null ? 'removed' : 'changed'];
}

type RequestKeyScope = Pick<RequestKey, 'id' | 'tenant_id' | 'environment_id'>;

/** Records the answer of a request. Called in the transaction that made the result and recorded its effects. */
export async function recordRequestAnswer(made: unknown, transaction: Database): Promise<void> {
  const key = currentRequestContext()?.key;
  if (!key?.shows || key.goes_on) return;
  const { tenant_id, environment_id, id: key_id, holder } = key;
  const answer = JSON.stringify(key.shows(made as never));
  await runAsSystem(async () =>
    transaction('request_effects').where({ tenant_id, environment_id, key_id, holder }).update({ answer }),
  );
}

/**
 * Runs `work` and stores the result of its billing transaction, in the form that `shows` returns, for a repeated
 * request.
 */
export function runWithAnswer<Made, Result>(
  shows: (made: Made) => unknown,
  work: () => Promise<Result>,
): Promise<Result> {
  const key = currentRequestContext()?.key;
  if (key) key.shows = shows;
  return work();
}

/** Loads the effects of a key; null if nothing was committed under it. Deletes expired effects. */
export async function loadEffects(
  database: Database,
  { id: key_id, tenant_id, environment_id }: RequestKeyScope,
  now: Date,
): Promise<RequestEffects | null> {
  const mine = { tenant_id, environment_id, key_id };
  const [row] = await database('request_effects').where(mine).select('records', 'answer', 'expires_at');
  if (!row) return null;
  if (new Date(row.expires_at) > now) return { records: row.records, answer: row.answer };
  await deleteEffects(database, { id: key_id, tenant_id, environment_id });
  return null;
}

export async function deleteEffects(
  database: Database,
  { id: key_id, tenant_id, environment_id }: RequestKeyScope,
): Promise<void> {
  await database.raw('delete from request_effects where tenant_id = ? and environment_id = ? and key_id = ?', [
    tenant_id,
    environment_id,
    key_id,
  ]);
}

/**
 * Deletes the effects of a request in the transaction that undoes its changes. The request was rejected, and a
 * repetition counts as new.
 */
export async function deleteUndoneEffects(transaction: Database): Promise<void> {
  const key = currentRequestContext()?.key;
  if (key) await runAsSystem(async () => deleteEffects(transaction, key));
}
