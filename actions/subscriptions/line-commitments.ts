/**
 * Subscription lines with their commitments (docs/rules/commitments.md, "Possible commitments"). A price stores times of day, so a line
 * with its own times has a price of its own.
 */

import type { Price, PriceDefinition } from '../../core/catalog/price/record.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import {
  type RequestedCommitment,
  type StoredCommitment,
  toStoredCommitment,
} from '../../core/rating/commitments/line-item-commitment.ts';
import { buildOverriddenPrice } from '../../core/subscriptions/lines.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { buildTimeBuckets, storePrice } from '../catalog/prices/create-price.ts';

type LinePriceWriting = { readonly scope: Scope; readonly author: Author };

type CommittedLine = { readonly price: Price; readonly commitment: StoredCommitment };

/** A line with its requested commitment. `prefix` is the path of the commitment in the request, with a trailing point. */
type CommitmentLine = {
  readonly price: Price;
  readonly requested: RequestedCommitment | undefined;
  readonly prefix: string;
};

/** Loads the commitment of a line from a plan. The price of the line already contains the requested times of day. */
export async function loadPlanLineCommitment(
  { scope }: LinePriceWriting,
  { price, requested, prefix }: CommitmentLine,
  database: Database,
): Promise<{ price: Price; commitment?: StoredCommitment }> {
  if (requested === undefined) return { price };
  const meter = await loadMeter(price, scope, database);
  const bucket_size = meter?.aggregation.bucket_size ?? null;
  return { price, commitment: toStoredCommitment(requested, { price, prefix, bucket_size }) };
}

/** Creates a line from a request with a commitment. Times of day need a price of the subscription's own. */
export async function createCommittedLine(
  writing: LinePriceWriting,
  {
    price: shared,
    requested,
    subscription,
    prefix,
  }: CommitmentLine & { requested: RequestedCommitment; subscription: SubscriptionModel },
  database: Database,
): Promise<CommittedLine> {
  const { commitment_time_buckets } = requested;
  const price = commitment_time_buckets?.length
    ? await storeOwnPrice(
        buildOverriddenPrice(shared, { price_id: shared.id, commitment_time_buckets }, subscription),
        writing,
        database,
      )
    : shared;
  const { commitment } = await loadPlanLineCommitment(writing, { price, requested, prefix }, database);
  return { price, commitment: commitment! };
}

/** Stores a price of the subscription itself; its times of day are checked against the windows of the meter. */
export async function storeOwnPrice(
  price: PriceDefinition,
  { scope, author }: LinePriceWriting,
  database: Database,
): Promise<Price> {
  const writing = { scope, database, author };
  const meter = price.commitment_time_buckets?.length ? await loadMeter(price, scope, database) : null;
  return storePrice({ ...price, commitment_time_buckets: buildTimeBuckets(price, meter, writing) }, writing);
}

async function loadMeter(
  { meter_id }: Pick<Price, 'meter_id'>,
  scope: Scope,
  database: Database,
): Promise<MeterModel | null> {
  return meter_id ? MeterModel.fetch(scope, meter_id, { database }) : null;
}
