/**
 * Commitment shortfalls that running periods would charge without further usage. They fall due after the period and are no revenue before
 * (docs/rules/costs.md, "Revenue and invoices agree").
 */

import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { chargeKey } from '../../../core/rating/plan-invoice.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { subscriptionCommitment } from '../../invoicing/billing/gather-commitments.ts';
import { planRunningInvoice } from '../../invoicing/billing/plan-invoices.ts';
import { currentPeriodUntilEnd, toScope } from '../../rating/billable-items.ts';
import type { BatchCharges } from '../usage/export-charges.ts';

type OpenMinimumsQuery = {
  readonly subscriptions: readonly SubscriptionModel[];
  readonly charges: Pick<BatchCharges, 'previewed' | 'records'>;
  readonly range: Period;
  readonly now: Date;
};
type OpenMinimum = { readonly amount: Decimal; readonly currency: string };

const PREVIEWS_AT_ONCE = 4;

export async function listOpenMinimums(
  stores: Stores,
  { subscriptions, charges, range, now }: OpenMinimumsQuery,
): Promise<OpenMinimum[]> {
  const running = subscriptions.filter((one) => isRunning(one) && overlaps(currentPeriodUntilEnd(one), range));
  const committed = await listCommitted(stores, running);
  const used = new Set(charges.records.flatMap(({ charge }) => (charge.invoice ? [] : [charge.line_item_id])));
  return mapConcurrently(PREVIEWS_AT_ONCE, committed, async (subscription) => {
    const period = currentPeriodUntilEnd(subscription);
    const { plan } = await planRunningInvoice(stores, stores.postgres, { subscription, period, now });
    const lacking = plan.lines.map((line) => {
      if (line.is_true_up) return line.amount;
      // The shortfall is in the sums already if the charge was previewed, or if its service ends in the range and had usage.
      const isWhole = line.service.end <= range.end && used.has(line.item.id);
      const isCounted = isWhole || charges.previewed.has(chargeKey(line.item.id, line.service));
      return isCounted ? ZERO : new Decimal(line.commitment_info?.computed_true_up_amount ?? 0);
    });
    return { amount: sumDecimals(lacking), currency: subscription.currency };
  });
}

function isRunning({ subscription_status, opens_at }: SubscriptionModel): boolean {
  return subscription_status === 'active' && !opens_at;
}

function overlaps(one: Period, other: Period): boolean {
  return one.start < other.end && other.start < one.end;
}

async function listCommitted(stores: Stores, running: readonly SubscriptionModel[]): Promise<SubscriptionModel[]> {
  const [first] = running;
  if (!first) return [];
  const lines = await SubscriptionLineItemModel.in(toScope(first), stores.postgres)
    .select('subscription_id')
    .whereIn('subscription_id', [...running.map(({ id }) => id)])
    .where({ status: 'published', commitment_true_up_enabled: true });
  const withLines = new Set(lines.map(({ subscription_id }) => subscription_id));
  return running.filter((one) => withLines.has(one.id) || subscriptionCommitment(one)?.true_up);
}
