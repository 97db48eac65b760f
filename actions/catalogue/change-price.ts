/**
 * Changes a price: what describes it in place, what it costs by a successor that starts where the price ends, at
 * `effective_from` or now (docs/rules/pricing.md, "Changing a price").
 */

import { invalid, notAllowed, notFound } from '../../core/error.ts';
import {
  CRITICAL_FIELDS,
  type CreatePrice,
  definePrice,
  type Price,
  type PriceDefinition,
} from '../../core/price/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author } from '../../core/stamp.ts';
import { instantOf } from '../../core/time/instant.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { Stores } from '../../storage/stores.ts';
import { checkKeyFree, keyConflict, type PriceWriting, storePrice } from './create-price.ts';

export type PriceChanges = Partial<
  Pick<
    Price,
    (typeof CRITICAL_FIELDS)[number] | 'lookup_key' | 'display_name' | 'description' | 'metadata' | 'group_id'
  >
>;

export type PriceChange = {
  id: string;
  changes: PriceChanges;
  effective_from: string | undefined;
  author: Author;
};

/** The price as it is now: the same one, or its successor. */
export async function changePrice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  change: PriceChange,
): Promise<PriceModel> {
  return stores.postgres.transaction(async (database) => {
    const { id, changes, effective_from, author } = change;
    const price = await PriceModel.fetch(scope, id, { database, lock: true });
    if (price.status !== 'published') throw notFound('price', id);
    if (changes.group_id) throw notFound('group', changes.group_id);
    const writing = { scope, database, author };
    if (CRITICAL_FIELDS.some((field) => changes[field] !== undefined))
      return supersede(price, changes, { ...writing, effective_from });
    if (effective_from !== undefined)
      throw invalid('effective_from', `needs a change of one of ${CRITICAL_FIELDS.join(', ')}`);
    return describe(price, changes, writing);
  });
}

async function describe(price: PriceModel, changes: PriceChanges, writing: PriceWriting): Promise<PriceModel> {
  if (changes.lookup_key) await checkKeyFree({ ...price, lookup_key: changes.lookup_key }, writing);
  const { author, database } = writing;
  return PriceModel.change(price, changes, { by: author, database, conflict: keyConflict(changes.lookup_key) });
}

/** The old price ends where the new one starts: no instant is charged twice, none is free. */
async function supersede(
  price: PriceModel,
  changes: PriceChanges,
  writing: PriceWriting & { effective_from: string | undefined },
): Promise<PriceModel> {
  const { scope, database, author } = writing;
  // A price with an end may have a successor already; a second one would charge the same time twice.
  if (price.end_date !== null)
    throw notAllowed(`price ${price.id} ends at ${price.end_date}: it cannot be changed any more`);
  const startsAt = instantOf(price.start_date!);
  const effectiveAt =
    writing.effective_from === undefined ? Math.max(author.now.getTime(), startsAt) : instantOf(writing.effective_from);
  if (effectiveAt < startsAt)
    throw invalid('effective_from', `must not lie before the price's start at ${price.start_date}`);
  const effective_from = new Date(effectiveAt).toISOString();
  const successor = successorOf(price, changes, effective_from);

  await PriceModel.change(price, { end_date: effective_from }, { by: author, database });
  return storePrice(successor, { scope, database, author });
}

/** All rules of a new price hold for a successor; what the request does not state is taken over. */
function successorOf(price: PriceModel, changes: PriceChanges, start_date: string): PriceDefinition {
  if (changes.price_unit_amount !== undefined || changes.price_unit_tiers !== undefined)
    throw invalid('price_unit_type', 'a FIAT price may not carry price unit fields');
  const billing_model = changes.billing_model ?? price.billing_model;
  const isTiered = billing_model === 'TIERED';
  if (!isTiered && changes.tiers) throw invalid('tiers', `are used by TIERED only, not by ${billing_model}`);
  if (!isTiered && changes.tier_mode) throw invalid('tier_mode', `is used by TIERED only, not by ${billing_model}`);
  const isSameKind = isTiered === (price.billing_model === 'TIERED');
  const definition = definePrice({
    ...statedBy(price),
    ...changes,
    amount: changes.amount ?? (isSameKind ? price.amount : null),
    tiers: isTiered ? (changes.tiers ?? price.tiers) : null,
    tier_mode: isTiered ? (changes.tier_mode ?? price.tier_mode) : null,
    start_date,
    end_date: null,
  });
  return { ...definition, parent_price_id: price.parent_price_id || price.id };
}

/** A stored price as the request that would create it. */
function statedBy(price: PriceModel): CreatePrice {
  return {
    currency: price.currency,
    type: price.type,
    billing_model: price.billing_model,
    billing_period: price.billing_period,
    billing_period_count: price.billing_period_count,
    billing_cadence: price.billing_cadence,
    invoice_cadence: price.invoice_cadence,
    meter_id: price.meter_id,
    min_quantity: price.min_quantity,
    tier_mode: price.tier_mode,
    tiers: price.tiers,
    transform_quantity: price.transform_quantity,
    price_unit_type: price.price_unit_type,
    display_name: price.display_name,
    description: price.description,
    lookup_key: price.lookup_key,
    group_id: price.group_id,
    start_date: price.start_date,
    end_date: price.end_date,
    metadata: price.metadata,
    amount: price.amount,
    entity_type: price.entity_type!,
    entity_id: price.entity_id!,
    trial_period_days: price.trial_period_days,
    trial_period: null,
    price_unit_config: null,
    filter_values: null,
  };
}
