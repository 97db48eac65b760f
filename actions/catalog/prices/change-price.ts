/**
 * Changes a price: its description in place; its charge by a successor that starts where the price ends, at `effective_from` or now
 * (docs/rules/pricing.md, "Changing a price").
 */

import { isDeepStrictEqual } from 'node:util';
import { CRITICAL_FIELDS, criticalFields, type PriceDefinition } from '../../../core/catalog/price/record.ts';
import { type PriceChanges, planSuccessor } from '../../../core/catalog/price/successor.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { checkGroup } from '../groups/check-group.ts';
import {
  buildTimeBuckets,
  checkKeyFree,
  formatPriceKeyConflict,
  type PriceWriteContext,
  storePrice,
} from './create-price.ts';

type PriceChange = {
  id: string;
  changes: PriceChanges;
  effective_from: string | undefined;
  author: Author;
};

/** Returns the same price or its successor. */
export async function changePrice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  change: PriceChange,
): Promise<PriceModel> {
  return stores.postgres.transaction(async (database) => {
    const { id, changes, effective_from, author } = change;
    const price = await PriceModel.fetchChangeable(scope, id, database);
    await checkGroup(scope, { group_id: changes.group_id, entity_type: 'price' }, database);
    const writing = { scope, database, author };
    if (CRITICAL_FIELDS.some((field) => changes[field] !== undefined))
      return supersede(price, changes, { ...writing, effective_from });
    if (effective_from !== undefined)
      throw invalid('effective_from', `needs a change of one of ${CRITICAL_FIELDS.join(', ')}`);
    return describePrice(price, changes, writing);
  });
}

async function describePrice(
  price: PriceModel,
  changes: PriceChanges,
  writing: PriceWriteContext,
): Promise<PriceModel> {
  if (changes.lookup_key) await checkKeyFree({ ...price, lookup_key: changes.lookup_key }, writing);
  const { author, database } = writing;
  return PriceModel.change(price, changes, {
    by: author,
    database,
    conflict: formatPriceKeyConflict(changes.lookup_key),
  });
}

/** Ends the old price where the new one starts, so that no instant is charged twice or is free. */
async function supersede(
  price: PriceModel,
  changes: PriceChanges,
  writing: PriceWriteContext & { effective_from: string | undefined },
): Promise<PriceModel> {
  const { scope, database, author } = writing;
  // A price with an end may have a successor already; a second one would charge the same time twice.
  if (price.end_date !== null)
    throw notAllowed(`price ${price.id} ends at ${price.end_date}: it cannot be changed any more`);
  const startsAt = toInstant(price.start_date!);
  const effectiveAt =
    writing.effective_from === undefined ? Math.max(author.now.getTime(), startsAt) : toInstant(writing.effective_from);
  if (effectiveAt < startsAt)
    throw invalid('effective_from', `must not lie before the price's start at ${price.start_date}`);
  const effective_from = new Date(effectiveAt).toISOString();
  const unit = price.price_unit_id ? await PriceUnitModel.fetch(scope, price.price_unit_id, { database }) : null;
  const successor = planSuccessor(price, changes, { start_date: effective_from, symbol: unit?.symbol ?? '' });
  if (isPriceUnchanged(price, changes, successor)) return describePrice(price, pickDescription(changes), writing);
  const meter = successor.meter_id === null ? null : await MeterModel.fetch(scope, successor.meter_id, { database });
  const commitment_time_buckets = buildTimeBuckets(successor, meter, { author });

  await PriceModel.change(price, { end_date: effective_from }, { by: author, database });
  return storePrice({ ...successor, commitment_time_buckets }, { scope, database, author });
}

/**
 * Checks whether the requested charge equals the current one: a price that is sent back unchanged needs no successor, which would restart
 * its tiers. Time buckets are not compared and always count as a change.
 */
export function isPriceUnchanged(price: PriceModel, changes: PriceChanges, successor: PriceDefinition): boolean {
  if (changes.commitment_time_buckets?.length) return false;
  return CRITICAL_FIELDS.every(
    (field) => changes[field] === undefined || isDeepStrictEqual(successor[field], price[field]),
  );
}

/** Picks the requested fields that are not part of the charge and change in place. */
function pickDescription(changes: PriceChanges): PriceChanges {
  return Object.fromEntries(Object.entries(changes).filter(([field]) => !(field in criticalFields)));
}
