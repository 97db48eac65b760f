/** Answer shape of a subscription's usage, with the effects of its commitments. */
import type { SubscriptionUsage, SubscriptionUsageCharge } from '../../actions/invoicing/billing/subscription-usage.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { displayAmount } from '../../core/foundation/money.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { TRUE_UP } from '../../core/rating/committed-lines.ts';
import { showPrices } from '../catalog/prices/expand.ts';
import type { Context } from '../http/route.ts';

export async function showUsage(usage: SubscriptionUsage, context: Context) {
  const { subscription, period, charges, amount } = usage;
  const { currency } = subscription;
  const prices = await showPrices(
    charges.map(({ item }) => item.price),
    [],
    context,
  );
  return {
    amount: amount.toFixed(),
    currency,
    display_amount: displayAmount(amount, currency),
    start_time: formatMs(period.start),
    end_time: formatMs(period.end),
    charges: [
      ...charges.map((charge, index) => ({ ...showCharge(charge, currency), price: prices[index] })),
      ...showTrueUp(usage),
    ],
    ...showCommitment(usage),
    has_overage: charges.some(
      ({ commitment_info }) => commitment_info && !new Decimal(commitment_info.computed_overage_amount).isZero(),
    ),
  };
}

/** The true-up belongs to no line and no meter, as on the invoice. */
function showTrueUp({ true_up, subscription: { currency } }: SubscriptionUsage) {
  if (true_up === null) return [];
  return [
    {
      subscription_line_item_id: null,
      amount: true_up.toFixed(),
      currency,
      display_amount: displayAmount(true_up, currency),
      quantity: '1',
      filter_values: {},
      meter_id: null,
      meter_display_name: TRUE_UP,
      price: null,
      is_overage: false,
      overage_factor: null,
    },
  ];
}

function showCommitment({ commitment, charges }: SubscriptionUsage) {
  if (commitment === null) return {};
  const sum = (field: 'computed_overage_amount' | 'computed_commitment_utilized_amount') =>
    sumDecimals(charges.map(({ commitment_info }) => new Decimal(commitment_info?.[field] ?? '0'))).toFixed();
  return {
    commitment_amount: commitment.amount.toFixed(),
    overage_factor: commitment.overage_factor.toFixed(),
    commitment_utilized: sum('computed_commitment_utilized_amount'),
    overage_amount: sum('computed_overage_amount'),
  };
}

function showCharge(
  { item, quantity, amount, is_overage, commitment_info }: SubscriptionUsageCharge,
  currency: string,
) {
  return {
    subscription_line_item_id: item.id,
    amount: amount.toFixed(),
    currency,
    display_amount: displayAmount(amount, currency),
    quantity: quantity.toFixed(),
    filter_values: Object.fromEntries((item.meter?.filters ?? []).map(({ key, values }) => [key, values])),
    meter_id: item.meter_id,
    meter_display_name: item.line_item.meter_display_name ?? item.meter?.name,
    is_overage: is_overage ?? false,
    overage_factor: commitment_info?.overage_factor ?? null,
  };
}
