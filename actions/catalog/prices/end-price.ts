/**
 * Deleting a price only sets its end (default: now), so that the price of earlier charges can still be read (docs/rules/pricing.md,
 * "Changing a price").
 */

import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';

export async function endPrice(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; end_date: string | undefined; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const price = await PriceModel.fetchPublished(scope, id, { database, lock: true });
    const now = author.now.getTime();
    const startsAt = toInstant(price.start_date!);
    const endedAt = price.end_date === null ? Number.POSITIVE_INFINITY : toInstant(price.end_date);
    if (endedAt <= now) throw notAllowed(`price ${id} has ended already, at ${price.end_date}`);

    // A price that has not started yet ends, by default, the moment it would start.
    const endsAt = request.end_date === undefined ? Math.max(now, startsAt) : toInstant(request.end_date);
    if (endsAt < startsAt) throw invalid('end_date', `must not lie before the price's start at ${price.start_date}`);
    // A successor may start where this price ends: a later end would charge that time twice.
    if (endsAt > endedAt) throw invalid('end_date', `must not lie after the price's end at ${price.end_date}`);

    await PriceModel.change(price, { end_date: formatMs(endsAt) }, { by: author, database });
  });
}
