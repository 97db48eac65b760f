/** Sums of the rows of a list of customers or plans (docs/rules/revenue.md, "Rows of lists"). */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { notFound } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { computeMonthlyCharge } from '../../../core/rating/yearly-charge.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import {
  countActiveSubscriptions,
  listCustomerSums,
  listRecurringCharges,
  loadPlanNames,
} from '../../../storage/reporting/summaries.ts';
import { requireRecord } from '../../rating/billable-items.ts';

type CurrencyAmount = { readonly currency: string; readonly amount: string };
type CustomerSummary = {
  readonly customer_id: string;
  readonly plan_names: readonly string[];
  readonly owed: readonly CurrencyAmount[];
  readonly overdue: readonly CurrencyAmount[];
  readonly balance: readonly CurrencyAmount[];
};
type PlanSummary = {
  readonly plan_id: string;
  readonly active_subscriptions: number;
  readonly recurring_revenue: readonly CurrencyAmount[];
};

/** Returns one summary per distinct id, in the order of the ids. An unknown id is refused. */
export async function summarizeCustomers(
  database: Database,
  scope: Scope,
  { customer_ids, now }: { customer_ids: readonly string[]; now: Date },
): Promise<CustomerSummary[]> {
  const ids = [...new Set(customer_ids)];
  checkKnown('customer', ids, await CustomerModel.byId(scope, ids, database));
  const names = await loadPlanNames(scope, ids, database);
  const sums = groupBy(await listCustomerSums(scope, { customer_ids: ids, now }, database), (one) => one.customer_id);
  return ids.map((customer_id) => {
    const own = sums.get(customer_id) ?? [];
    const select = (sum: 'owed' | 'overdue' | 'balance') =>
      own.flatMap(({ currency, amount, ...one }) => (one.sum === sum ? { currency, amount } : []));
    return {
      customer_id,
      plan_names: names.get(customer_id) ?? [],
      owed: select('owed'),
      overdue: select('overdue'),
      balance: select('balance'),
    };
  });
}

/** Returns one summary per distinct id, in the order of the ids. An unknown id is refused. */
export async function summarizePlans(
  database: Database,
  scope: Scope,
  { plan_ids, now }: { plan_ids: readonly string[]; now: Date },
): Promise<PlanSummary[]> {
  const ids = [...new Set(plan_ids)];
  checkKnown('plan', ids, await PlanModel.byId(scope, ids, database));
  const counts = await countActiveSubscriptions(scope, ids, database);
  const charges = await listRecurringCharges(scope, { plan_ids: ids, now }, database);
  const price_ids = charges.map(({ price_id }) => price_id);
  const prices = await PriceModel.byId(scope, price_ids, database);
  const monthly = charges.map(({ plan_id, currency, count, price_id, quantity, ...period }) => {
    const price = requireRecord(prices, price_id, 'price');
    const each = computeMonthlyCharge({ price, quantity: new Decimal(quantity), ...period }, currency);
    return { plan_id, currency, amount: each.times(count) };
  });
  const byPlan = groupBy(monthly, ({ plan_id }) => plan_id);
  return ids.map((plan_id) => ({
    plan_id,
    active_subscriptions: counts.get(plan_id) ?? 0,
    recurring_revenue: sumByCurrency(byPlan.get(plan_id) ?? []),
  }));
}

function sumByCurrency(amounts: readonly { currency: string; amount: Decimal }[]): CurrencyAmount[] {
  return Array.from(
    groupBy(amounts, ({ currency }) => currency),
    ([currency, own]) => ({ currency, amount: sumDecimals(own.map(({ amount }) => amount)).toFixed() }),
  ).filter(({ amount }) => amount !== '0');
}

function checkKnown(what: string, ids: readonly string[], known: ReadonlyMap<string, unknown>): void {
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) throw notFound(what, unknown);
}
