/**
 * Computes the revenue of customers in a time range: usage revenue from invoices, the preview and the rating, as in the usage export; and
 * fixed charges in proportion to their service time (docs/rules/costs.md, "What is revenue").
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { ceilToMs, type Microseconds, toMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { computeEarned } from '../../../core/invoicing/revenue/earned.ts';
import { deriveServicePeriod, type EarnedLine, toRevenueKind } from '../../../core/invoicing/revenue/line.ts';
import { RevenueSums } from '../../../core/invoicing/revenue/parts.ts';
import { isPrepayment } from '../../../core/invoicing/revenue/prepayment.ts';
import { sumDiscounts } from '../../../core/rating/adjustment-fields.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { listEarnedLines } from '../../../storage/reporting/revenue/earned-lines.ts';
import { type BatchCharges, loadBatchCharges, usageKey } from '../usage/export-charges.ts';
import { listOpenFixedCharges } from './open-fixed-charges.ts';
import { listOpenMinimums } from './open-minimums.ts';

type EarnedRevenueQuery = {
  /** Null: all customers. */
  readonly customers: readonly CustomerModel[] | null;
  /** Restricts the answer to usage of these meters; null: all revenue. */
  readonly meter_ids: readonly string[] | null;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

export type GatheredRevenue = {
  readonly sums: RevenueSums;
  /** Usage revenue, by `usageKey` and then by currency. */
  readonly byMeter: ReadonlyMap<string, RevenueSums>;
};

const CUSTOMERS_PER_BATCH = 2_000;

export async function gatherRevenue(stores: Stores, scope: Scope, query: EarnedRevenueQuery): Promise<GatheredRevenue> {
  const gathering = { sums: new RevenueSums(), byMeter: new Map<string, RevenueSums>() };
  await checkLines(stores.postgres, scope, query);
  for await (const customers of listCustomerBatches(stores.postgres, scope, query.customers))
    await addBatch(stores, scope, { query, customers, gathering });
  return gathering;
}

/** Largest number of line items that one answer measures and prices. */
const REVENUE_LINES_MAX = 20_000;

async function checkLines(database: Database, scope: Scope, { customers }: EarnedRevenueQuery): Promise<void> {
  const lines = SubscriptionLineItemModel.in(scope, database)
    .where('status', 'published')
    .limit(REVENUE_LINES_MAX + 1);
  if (customers) void lines.whereIn('customer_id', [...customers.map(({ id }) => id)]);
  if ((await lines.select('id')).length <= REVENUE_LINES_MAX) return;
  throw invalid(
    'external_customer_id',
    `the question is about more than ${REVENUE_LINES_MAX} line items of subscriptions: ask for one customer, or for what is invoiced (POST /dashboard/revenue-dashboard)`,
    { lines_max: REVENUE_LINES_MAX },
  );
}

async function* listCustomerBatches(
  database: Database,
  scope: Scope,
  customers: readonly CustomerModel[] | null,
): AsyncGenerator<readonly CustomerModel[]> {
  if (customers) return yield customers;
  for (let after = ''; ; ) {
    const batch = await CustomerModel.in(scope, database)
      .where('id', '>', after)
      .orderBy('id')
      .limit(CUSTOMERS_PER_BATCH);
    if (batch.length > 0) yield batch;
    if (batch.length < CUSTOMERS_PER_BATCH) return;
    after = batch.at(-1)!.id;
  }
}

type RevenueBatch = {
  readonly query: EarnedRevenueQuery;
  readonly customers: readonly CustomerModel[];
  readonly gathering: { readonly sums: RevenueSums; readonly byMeter: Map<string, RevenueSums> };
};

async function addBatch(stores: Stores, scope: Scope, { query, customers, gathering }: RevenueBatch): Promise<void> {
  const range = { start: toMs(query.start_us), end: ceilToMs(query.end_us) };
  const exported = { ...query, timezone: null, split: null, amounts: true };
  const charges = await loadBatchCharges(stores, scope, { query: exported, customers });
  addUsage(charges, { range, gathering });
  if (query.meter_ids) return;
  const subscriptions = await SubscriptionModel.in(scope, stores.postgres)
    .whereIn('customer_id', [...customers.map(({ id }) => id)])
    .where('status', 'published')
    .whereNot('subscription_status', 'draft');
  const subscription_ids = subscriptions.map(({ id }) => id);
  const customer_ids = customers.map(({ id }) => id);
  const found = await listEarnedLines(scope, { subscription_ids, customer_ids, range }, stores.postgres);
  const lines = found.filter(({ invoice }) => !isPrepayment(invoice));
  addLines(lines, { range, gathering, charges });
  const open = await listOpenFixedCharges(stores.postgres, scope, { subscriptions, lines, range, now: query.now });
  for (const { amount, currency, service } of open)
    gathering.sums.add(currency, {
      kind: 'fixed',
      amount: computeEarned(range, { amount, currency, service }),
      invoice_status: null,
    });
  for (const { amount, currency } of await listOpenMinimums(stores, { subscriptions, charges, range, now: query.now }))
    gathering.sums.addPart(currency, 'minimums', amount);
}

type RevenueAddition = { readonly range: Period; readonly gathering: RevenueBatch['gathering'] };

function addUsage({ records, others }: BatchCharges, { range, gathering }: RevenueAddition): void {
  const charged = [
    ...records.map(({ external_customer_id, meter, charge }) => ({
      key: usageKey(external_customer_id, meter.id),
      currency: charge.currency,
      amount: charge.amount,
      invoice_status: charge.invoice?.status ?? null,
    })),
    ...others.map(({ item, line }) => ({
      key: usageKey(item.external_customer_id, item.meter.id),
      currency: item.subscription.currency,
      amount: computeEarned(range, {
        amount: new Decimal(line.amount),
        currency: item.subscription.currency,
        service: line.service,
      }),
      invoice_status: line.invoice?.status ?? null,
    })),
  ];
  for (const { key, currency, amount, invoice_status } of charged) {
    const earned = { kind: 'usage', amount, invoice_status } as const;
    for (const sums of [gathering.sums, ensureMeterRevenue(gathering.byMeter, key)]) sums.add(currency, earned);
  }
}

export function ensureMeterRevenue(byMeter: Map<string, RevenueSums>, key: string): RevenueSums {
  const known = byMeter.get(key) ?? new RevenueSums();
  byMeter.set(key, known);
  return known;
}

/**
 * Adds the invoice lines to the sums. Usage amounts of items in `charges` are in the sums already; discounts, credits and taxes are added
 * for every line.
 */
function addLines(
  lines: readonly EarnedLine[],
  { range, gathering: { sums }, charges }: RevenueAddition & { readonly charges: BatchCharges },
): void {
  for (const one of lines) {
    const { line, invoice } = one;
    const { currency } = line;
    const service = deriveServicePeriod(one);
    const earned = (amount: Decimal) => computeEarned(range, { amount, currency, service });
    const kind = toRevenueKind(line);
    const isCounted = kind === 'usage' && charges.item_ids.has(line.subscription_line_item_id ?? '');
    if (!isCounted)
      sums.add(currency, { kind, amount: earned(new Decimal(line.amount)), invoice_status: invoice.invoice_status });
    sums.addPart(currency, 'discounts', earned(sumDiscounts(line)));
    sums.addPart(currency, 'credits', earned(new Decimal(line.prepaid_credits_applied)));
    sums.addPart(currency, 'taxes', earned(new Decimal(line.tax_amount)));
  }
}
