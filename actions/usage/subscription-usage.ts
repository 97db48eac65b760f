/**
 * Usage and charges of a subscription for a period: every usage line item measured by the one usage reader and priced by
 * the one rating function, as on the invoice (docs/rules/usage.md, "One number"). Without dates it is the running period;
 * an item with a period of its own shows that.
 */
import { runningPeriod, usageWindowIn } from '../../core/billing/charges.ts';
import { baseAmountOf, sharedLines } from '../../core/billing/committed-lines.ts';
import { type LineAmount, usageCharge } from '../../core/billing/line-amount.ts';
import { commitmentPart, drawnInTurn } from '../../core/commitment/part.ts';
import {
  amountIn,
  type PoolFacts,
  poolOf,
  type SubscriptionCommitment,
  shareOut,
  termOfService,
} from '../../core/commitment/subscription.ts';
import { type Decimal, sumOf } from '../../core/decimal.ts';
import { invalid } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { instantOf } from '../../core/time/instant.ts';
import type { Period } from '../../core/time/period.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { Stores } from '../../storage/stores.ts';
import { mapConcurrently } from '../../storage/together.ts';
import {
  type BillableItem,
  billedSubscription,
  CHARGES_AT_ONCE,
  currentPeriod,
  gatherItems,
  usageReader,
} from '../billing/billable-items.ts';
import { gatherInvoicedLines } from '../billing/gather-closed-charges.ts';
import { recordedUsage, subscriptionCommitment } from '../billing/gather-commitments.ts';

export type UsageRequest = {
  subscription_id: string;
  start_time?: string | null;
  end_time?: string | null;
  lifetime_usage?: boolean | null;
};

export type UsageCharge = LineAmount & {
  item: BillableItem;
  service: Period;
  display_name: string;
  is_overage?: boolean;
};
export type SubscriptionUsage = {
  subscription: SubscriptionModel;
  period: Period;
  charges: UsageCharge[];
  amount: Decimal;
  /** Of the subscription as a whole; null without one. */
  commitment: SubscriptionCommitment | null;
};

export async function subscriptionUsage(
  stores: Stores,
  scope: Scope,
  request: UsageRequest,
  now: Date,
): Promise<SubscriptionUsage> {
  const database = stores.postgres;
  const subscription = await SubscriptionModel.fetch(scope, request.subscription_id, { database });
  const asked = askedPeriod(subscription, request, now);
  const billed = billedSubscription(subscription);
  const current = currentPeriod(subscription);
  const measure = await usageReader(stores, database, subscription, { now });
  const at = new Date(Math.min(now.getTime(), (asked ?? current).end - 1));
  const items = await gatherItems(database, subscription, { at });
  const commitment = subscriptionCommitment(subscription);
  const isPooled = commitment !== null || items.some((item) => item.commitment?.duration);
  const recorded = isPooled ? recordedUsage(await gatherInvoicedLines(database, subscription)) : [];
  const measured = await mapConcurrently(CHARGES_AT_ONCE, items, async (item) => {
    const period = asked ?? runningPeriod(item, { subscription: billed, current, now: now.getTime() });
    const window = period ? usageWindowIn(period, item, billed) : null;
    if (window === null) return [];
    const service = { start: Math.max(period!.start, item.start_ms), end: window.end };
    return [{ item, service, window, usage: await measure(item, window, undefined, service) }];
  });
  const { currency } = subscription;
  const lines = drawnInTurn(measured.flat(), recorded, {
    lineOf: ({ item, service, window, usage }, before): UsageCharge => {
      const question = { subscription: billed, recorded: before };
      const part = item.commitment ? commitmentPart(item, service, question) : undefined;
      const charge = usageCharge(item, window, { measured: usage, currency, part });
      return { item, service, display_name: item.display_name, ...charge };
    },
    drawnBy: baseAmountOf,
  });
  const period = asked ?? current;
  const charges =
    commitment === null ? lines : drawn(lines, { period, commitment, recorded, subscription: billed, currency });
  return { subscription, period, charges, amount: sumOf(charges.map((charge) => charge.amount)), commitment };
}

type Drawing = Omit<PoolFacts, 'true_ups'> & { period: Period; currency: string };

/** As the invoice of the period draws; of another stretch of time what is committed to in it. */
function drawn(lines: readonly UsageCharge[], { period, currency, ...facts }: Drawing): UsageCharge[] {
  const { commitment, subscription } = facts;
  const recorded = facts.recorded.filter(({ service }) => service.end <= period.start);
  const pool = {
    ...poolOf(termOfService(period, facts), { ...facts, recorded, true_ups: [] }),
    ...(commitment.duration === null ? { amount: amountIn(period, subscription, commitment) } : {}),
  };
  const amounts = lines.map(({ amount }) => amount);
  const { shares } = shareOut(amounts, pool, { currency, in_order: commitment.duration === null });
  return lines.flatMap((line, index) => sharedLines(line, shares[index]!, { commitment, currency }));
}

/** The dates of the request; null where it leaves them to the periods of the items. */
function askedPeriod(subscription: SubscriptionModel, request: UsageRequest, now: Date): Period | null {
  const { start_time, end_time, lifetime_usage } = request;
  if (!start_time && !end_time && !lifetime_usage) return null;
  const current = currentPeriod(subscription);
  const start = lifetime_usage
    ? instantOf(subscription.start_date)
    : start_time
      ? instantOf(start_time)
      : current.start;
  const end = end_time ? instantOf(end_time) : lifetime_usage ? now.getTime() : current.end;
  if (end <= start) throw invalid('end_time', 'must be after start_time');
  return { start, end };
}
