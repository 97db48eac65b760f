/**
 * Attaches and detaches add-ons (docs/rules/subscriptions.md, "Add-ons"). Derives the interval of the attachment and
 * the charged prices, and checks that its entitlements are compatible with those of the plan.
 */
import { z } from 'zod';
import type { Addon, AddonAssociation } from '../catalog/addon/record.ts';
import type { Entitlement } from '../catalog/entitlement/record.ts';
import type { Price } from '../catalog/price/record.ts';
import { Decimal } from '../foundation/decimal.ts';
import { alreadyExists, invalid, notAllowed } from '../foundation/error.ts';
import { anyCase, orNull, timestampText } from '../foundation/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { periodContaining } from '../foundation/time/period.ts';
import { deriveResetPeriod } from '../rating/allowances/reset.ts';
import { type BilledSubscription, periodRule } from '../rating/charges.ts';
import type { RequestedCommitment, StoredCommitment } from '../rating/commitments/line-item-commitment.ts';
import { type LineTimes, planAddedInterval } from './line-changes.ts';
import {
  buildLineItem,
  groupOverridesByPrice,
  type LineItemInput,
  type LineItemTerms,
  type PriceOverride,
  selectPricesToCopy,
} from './lines.ts';
import { type AttachAddon, PRORATION_BEHAVIORS, type Subscription } from './record.ts';
import { buildCommitments, checkUntimed, withTimeBuckets } from './requested-commitments.ts';

export const detachAddonShape = z.object({
  addon_association_id: z
    .string()
    .min(1)
    .meta({ description: 'Id of the association, from the response to the attachment.' }),
  effective_date: orNull(timestampText).meta({
    description: 'End of the attachment, inside the running period. Default: the end of the running period.',
  }),
  reason: orNull(z.string()).meta({ description: 'Reason for your records.' }),
  proration_behavior: orNull(anyCase(PRORATION_BEHAVIORS)).meta({
    description:
      'Treatment of advance charges. none retains them; create_prorations credits the unserved time. Default: none.',
  }),
});
export type DetachAddon = z.output<typeof detachAddonShape>;

type AttachedInterval = Pick<AddonAssociation, 'start_date' | 'end_date'>;

/**
 * Throws if an add-on of type onetime is already attached. `attached` are the associations of the subscription that
 * have not ended.
 */
export function checkAttachedOnce(
  addon: Addon,
  attached: readonly AddonAssociation[],
  interval: AttachedInterval,
): void {
  if (
    addon.type === 'onetime' &&
    attached.some((other) => other.addon_id === addon.id && isOverlapping(other, interval))
  )
    throw alreadyExists(`add-on ${addon.id} is attached already, and is of type onetime`, { field: 'addon_id' });
}

/** Whether two intervals overlap. One may begin at the end of the other. */
function isOverlapping(a: AttachedInterval, b: AttachedInterval): boolean {
  const endsAfter = ({ end_date }: AttachedInterval, { start_date }: AttachedInterval) =>
    !end_date || toInstant(end_date) > toInstant(start_date);
  return endsAfter(a, b) && endsAfter(b, a);
}

/** Computes the interval of an attachment. An attachment with cadence onetime ends with its period at the latest. */
export function computeAttachedInterval(
  request: Pick<AttachAddon, 'start_date' | 'end_date' | 'cadence' | 'proration_behavior'>,
  times: LineTimes,
  billed: BilledSubscription,
): Pick<AddonAssociation, 'start_date' | 'end_date'> {
  const { start_date, end_date } = planAddedInterval(request, { id: '', start_date: null, end_date: null }, times);
  if (request.cadence === 'recurring') return { start_date, end_date };
  if (request.proration_behavior === 'none')
    throw invalid('proration_behavior', 'none: an add-on of one period would not be charged');
  const start = toInstant(start_date);
  const period = periodContaining(start, Math.min(start, times.current.start), periodRule(billed))!;
  const end = Math.min(period.end, end_date ? toInstant(end_date) : Number.POSITIVE_INFINITY);
  return { start_date, end_date: formatMs(end) };
}

type AddonPrice = {
  readonly price: Price;
  readonly quantity: string | null;
  readonly override: PriceOverride | null;
  readonly commitment: RequestedCommitment | undefined;
};

type AddonPriceTerms = {
  readonly currency: string;
  readonly life: Pick<AddonAssociation, 'start_date' | 'end_date'>;
  readonly now: Milliseconds;
  /** True if the subscription as a whole has a commitment. */
  readonly isCommitted: boolean;
};

/** Plans the prices of an add-on. If it has published prices, at least one must have the currency. */
export function planAddonPrices(
  prices: readonly Price[],
  request: Pick<AttachAddon, 'override_line_items' | 'line_item_commitments' | 'quantity'>,
  { currency, life, now, isCommitted }: AddonPriceTerms,
): AddonPrice[] {
  const end = life.end_date ? toInstant(life.end_date) : null;
  const sold = prices.some(({ status }) => status === 'published');
  const terms = { start: toInstant(life.start_date), end, now };
  const chosen = sold ? selectPricesToCopy(prices, currency, terms, 'the add-on') : [];
  const own = { prices: chosen, seller: 'add-on', own: isCommitted } as const;
  const commitments = buildCommitments(request.line_item_commitments, own);
  const byPrice = withTimeBuckets(groupOverridesByPrice(request.override_line_items ?? [], chosen), commitments);
  if (isCommitted) checkUntimed([...chosen, ...listOverrideTimeBuckets(byPrice)], 'addon_id');
  return chosen.map((price) => {
    const override = byPrice.get(price.id) ?? null;
    const quantity = multiplyQuantity(price, override?.quantity ?? null, request.quantity);
    return { price, override, quantity, commitment: commitments.get(price.id) };
  });
}

function listOverrideTimeBuckets(overrides: ReadonlyMap<string, PriceOverride>) {
  return [...overrides.values()].map(({ price_id: id, commitment_time_buckets = null }) => ({
    id,
    commitment_time_buckets,
  }));
}

function multiplyQuantity(price: Price, requested: string | null, quantity: number): string | null {
  if (price.type === 'USAGE') return null;
  const one = requested ?? (price.min_quantity && !new Decimal(price.min_quantity).isZero() ? price.min_quantity : '1');
  return new Decimal(one).times(String(quantity)).toFixed();
}

type AddonLineInput = {
  readonly association: Pick<AddonAssociation, 'id' | 'addon_id' | 'start_date' | 'end_date'>;
  readonly addon: Pick<Addon, 'name'>;
  readonly price: Price;
  readonly quantity: string | null;
  readonly commitment: StoredCommitment | undefined;
  readonly meter_name: string | null;
  readonly subscription: LineItemInput['subscription'];
  readonly times: LineTimes;
};

/** Line of one price of an add-on. It is active while the add-on is attached and its price is sold. */
export function buildAddonLine({
  association,
  addon,
  price,
  quantity,
  commitment,
  meter_name,
  subscription,
  times,
}: AddonLineInput): LineItemTerms {
  const { id, addon_id, start_date, end_date } = association;
  const entity = { entity_id: addon_id, entity_type: 'addon' as const, name: addon.name };
  const committed = commitment ? { commitment } : {};
  const terms = buildLineItem({ price, subscription, quantity, entity, meter_name, now: times.now, ...committed });
  return {
    ...terms,
    ...planAddedInterval({ start_date, end_date }, price, times),
    plan_display_name: null,
    addon_association_id: id,
  };
}

/**
 * Throws if limits of one feature have different reset periods, because these cannot be added up
 * (docs/rules/entitlements.md).
 */
export function checkResets(
  plan_entitlements: readonly Entitlement[],
  addon_entitlements: readonly Entitlement[],
  subscription: Pick<Subscription, 'billing_period' | 'billing_period_count'>,
  field = 'addon_id',
): void {
  for (const own of addon_entitlements.filter(isLimit)) {
    const other = plan_entitlements.find((one) => isLimit(one) && one.feature_id === own.feature_id);
    const reset = (one: Entitlement) => deriveResetPeriod(one.usage_reset_period, subscription);
    if (other && reset(other) !== reset(own))
      throw invalid(
        field,
        `${field === 'addon_id' ? '' : `add-on ${own.entity_id} `}resets the usage of feature ${own.feature_id} ${reset(own)}, the plan ${reset(other)}: they must agree`,
        { feature_id: own.feature_id },
      );
  }
}

function isLimit({ feature_type, usage_limit, is_enabled }: Entitlement): boolean {
  return feature_type === 'metered' && is_enabled && usage_limit !== null;
}

/** End of a detached add-on: the end of the running period, or an instant inside it. */
export function computeDetachInstant(
  association: AddonAssociation,
  request: DetachAddon,
  times: LineTimes,
): Milliseconds {
  const { id, cancelled_at, end_date, start_date } = association;
  const end = end_date ? toInstant(end_date) : Number.POSITIVE_INFINITY;
  const { current, now, subscription } = times;
  if (association.status !== 'published' || cancelled_at || end <= now)
    throw notAllowed(`add-on association ${id} has ended, or is to end at ${end_date}, already`, {
      field: 'addon_association_id',
    });
  const start = toInstant(start_date);
  if (subscription.subscription_status === 'draft') return start;
  const requested = request.effective_date ? toInstant(request.effective_date) : current.end;
  if (requested < current.start || requested > current.end)
    throw invalid(
      'effective_date',
      `must lie inside the running period, ${formatMs(current.start)} to ${formatMs(current.end)}`,
    );
  return Math.min(Math.max(requested, start), end);
}
