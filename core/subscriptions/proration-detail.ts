/** Credit of a cancellation for one line, in the shape of the API response. */

import { Decimal, sumDecimals } from '../foundation/decimal.ts';
import { calendarDays } from '../foundation/time/period.ts';
import type { PlannedLine, PricedItem } from '../rating/line-amount.ts';

export type ProrationDetail = {
  line_item_id: string;
  price_id: string;
  plan_name: string | null;
  original_amount: string;
  credit_amount: string;
  charge_amount: string;
  proration_days: number;
  description: string;
};

type NamedLineItem = PricedItem & { readonly line_item: { price_id: string; plan_display_name?: string | null } };

export function buildProrationDetail<Item extends NamedLineItem>(
  { item, service, amount, display_name, computed_from }: PlannedLine<Item>,
  timezone: string,
): ProrationDetail {
  const parts = computed_from.breakdown ?? [];
  return {
    line_item_id: item.id,
    price_id: item.line_item.price_id,
    plan_name: item.line_item.plan_display_name ?? null,
    original_amount: sumDecimals(parts.map((part) => new Decimal(String(part.amount)))).toFixed(),
    credit_amount: Decimal.max(0, amount.negated()).toFixed(),
    charge_amount: Decimal.max(0, amount).toFixed(),
    proration_days: calendarDays(service.start, service.end, timezone),
    description: display_name,
  };
}
