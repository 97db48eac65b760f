/**
 * Attaches an add-on to a subscription: the association and its lines (docs/rules/subscriptions.md, "Add-ons"). New subscriptions, requests
 * and previews all use `gatherAttachment`.
 */

import type { AddonAssociation } from '../../../core/catalog/addon/record.ts';
import type { Price } from '../../../core/catalog/price/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toStoredCommitment } from '../../../core/rating/commitments/line-item-commitment.ts';
import {
  buildAddonLine,
  checkAttachedOnce,
  checkResets,
  computeAttachedInterval,
  planAddonPrices,
} from '../../../core/subscriptions/attachment.ts';
import { buildOverriddenPrice, hasPriceChange, type LineItemTerms } from '../../../core/subscriptions/lines.ts';
import type { AttachAddon } from '../../../core/subscriptions/record.ts';
import { isCommitted } from '../../../core/subscriptions/requested-commitments.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import { buildTimeBuckets, type PriceWriteContext, storePrice } from '../../catalog/prices/create-price.ts';
import { beginAddonGrants } from '../../credits/grants/give-grants.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import type { SettledChange } from '../../invoicing/invoices/settle-change.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { checkSharedMeters } from '../../subscriptions/shared-meters.ts';
import { applyLineChange } from './apply-line-change.ts';
import { type LineChangePlan, planLineChange } from './change-lines.ts';
import { emitLinesChanged, type LockedSubscription, lockSubscription } from './lock-lines.ts';

/** Records to write, with their future ids. */
type Attachment = {
  readonly association: Omit<
    AddonAssociation,
    keyof Scope | 'status' | 'created_at' | 'updated_at' | 'created_by' | 'updated_by'
  >;
  readonly own_prices: readonly Price[];
  readonly lines: readonly { terms: LineItemTerms; price: PriceModel; meter: MeterModel | null }[];
};

/** Gathers the attachment. The lock on the add-on's row prevents its archival meanwhile. */
export async function gatherAttachment(
  { subscription, times }: LockedSubscription,
  request: AttachAddon,
  { scope, database, author }: PriceWriteContext,
): Promise<Attachment> {
  const { addon_id, quantity, cadence, metadata } = request;
  const addon = await AddonModel.fetchPublished(scope, addon_id, { database, lock: 'shared' });
  const now = author.now.getTime();
  const attached = await AddonAssociationModel.notEnded(scope, author.now, database).where(
    'entity_id',
    subscription.id,
  );
  const life = computeAttachedInterval(request, times, toBilledSubscription(subscription));
  checkAttachedOnce(addon, attached, life);
  await checkEntitlements(subscription, addon_id, { scope, database });
  const association = {
    id: newId('addon_association', now),
    entity_type: 'subscription' as const,
    entity_id: subscription.id,
    addon_id,
    addon_status: 'active' as const,
    quantity,
    cadence,
    ...life,
    cancellation_reason: null,
    cancelled_at: null,
    metadata,
  };
  const prices = await PriceModel.in(scope, database)
    .where({ entity_type: 'ADDON', entity_id: addon_id })
    .orderBy(['created_at', 'sequence']);
  const terms = { currency: subscription.currency, life, now, isCommitted: isCommitted(subscription) };
  const chosen = planAddonPrices(prices as Price[], request, terms);
  const meters = await MeterModel.byId(
    scope,
    chosen.map(({ price }) => price.meter_id),
    database,
  );
  const symbols = await PriceUnitModel.byId(
    scope,
    chosen.map(({ price }) => price.price_unit_id),
    database,
  );
  const whole = { association, addon, subscription, times };
  const lines = chosen.map((one) => {
    const { price_unit_id, meter_id } = one.price;
    const symbol = symbols.get(price_unit_id ?? '')?.symbol;
    const meter = meters.get(meter_id ?? '') ?? null;
    const price = deriveLinePrice(one, {
      place: { id: subscription.id, start_date: life.start_date, symbol },
      meter,
      author,
    });
    return { terms: deriveLineTerms(one, { ...whole, price, meter }), price: price as PriceModel, meter };
  });
  const own_prices = lines.filter((line, at) => line.price !== chosen[at]!.price).map(({ price }) => price);
  return { association, own_prices, lines };
}

type ChosenPrice = ReturnType<typeof planAddonPrices>[number];

/** Returns the price of the add-on, or a price of the subscription if the request overrides it. */
function deriveLinePrice(
  { price, override }: ChosenPrice,
  { place, meter, author }: Omit<OwnPrice, 'definition'> & { place: Parameters<typeof buildOverriddenPrice>[2] },
): Price {
  if (!override || !hasPriceChange(override)) return price;
  return ownPrice(price, { definition: buildOverriddenPrice(price, override, place), meter, author });
}

type AddonLineParts = Pick<
  Parameters<typeof buildAddonLine>[0],
  'association' | 'addon' | 'subscription' | 'times' | 'price'
>;

function deriveLineTerms(
  { price: root, quantity, commitment: requested }: ChosenPrice,
  { meter, ...of }: AddonLineParts & { meter: MeterModel | null },
): LineItemTerms {
  const commitmentTerms = {
    price: of.price,
    prefix: `line_item_commitments.${root.id}.`,
    bucket_size: deriveBucketSize(meter),
  };
  const commitment = requested && toStoredCommitment(requested, commitmentTerms);
  return buildAddonLine({ ...of, quantity, commitment, meter_name: meter?.name ?? null });
}

function deriveBucketSize(meter: MeterModel | null) {
  return meter?.aggregation.bucket_size ?? null;
}

/** Builds the subscription's own price from that of the add-on, with its future id. */
function ownPrice(root: Price, { definition, meter, author }: OwnPrice): Price {
  const commitment_time_buckets = buildTimeBuckets(definition, meter, { author });
  return { ...root, ...definition, commitment_time_buckets, id: newId('price', author.now.getTime()) };
}

type OwnPrice = { definition: ReturnType<typeof buildOverriddenPrice>; meter: MeterModel | null; author: Author };

async function checkEntitlements(
  subscription: LockedSubscription['subscription'],
  addon_id: string,
  { scope, database }: { scope: Scope; database: Database },
): Promise<void> {
  const granted = await EntitlementModel.buildPublishedQuery(scope, [subscription.plan_id, addon_id], database);
  const of = (id: string) => granted.filter(({ entity_id }) => entity_id === id);
  checkResets(of(subscription.plan_id), of(addon_id), subscription);
}

/** Stores the association and its own prices. The caller writes the lines, because it knows how they are charged. */
export async function storeAttachment(
  { association, own_prices }: Attachment,
  { scope, database, author }: PriceWriteContext,
): Promise<AddonAssociationModel> {
  for (const price of own_prices) await storePrice(price, { scope, database, author });
  const record = { ...association, ...createdBy(author) };
  return AddonAssociationModel.add(scope, record, { database });
}

type PlannedAttachment = { attachment: Attachment; plan: LineChangePlan };

export async function planAttachment(
  locked: LockedSubscription,
  request: AttachAddon,
  writing: PriceWriteContext,
): Promise<PlannedAttachment> {
  const attachment = await gatherAttachment(locked, request, writing);
  const plan = await planLineChange(writing.database, {
    subscription: locked.subscription,
    ends: [],
    begins: attachment.lines,
    proration_behavior: request.proration_behavior ?? 'create_prorations',
    author: writing.author,
  });
  return { attachment, plan };
}

type AttachAddonResult = { association: AddonAssociationModel; settled: SettledChange | null };

export async function attachAddon(
  stores: Stores,
  scope: Scope,
  { subscription_id, request, author }: { subscription_id: string; request: AttachAddon; author: Author },
): Promise<AttachAddonResult> {
  return runBillingTransaction(stores, async (transaction: Transaction) => {
    const writing = { scope, database: transaction, author };
    const locked = await lockSubscription(stores, subscription_id, writing);
    const { attachment, plan } = await planAttachment(locked, request, writing);
    const association = await storeAttachment(attachment, writing);
    const { begun, settled } = await applyLineChange(stores, transaction, plan);
    await checkSharedMeters(transaction, locked.subscription, begun);
    await beginAddonGrants(transaction, { subscription: locked.subscription, association, by: author });
    await emitLinesChanged(transaction, locked.subscription, author);
    return { association, settled };
  });
}
