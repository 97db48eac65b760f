/** The operations of the areas billing.*: which charges stand on which invoice, and what they come to. */
import { z } from 'zod';
import type { PriceTerms } from '../../core/catalog/pricing/charge.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import {
  type BilledSubscription,
  type ChargeInput,
  nextPeriod,
  planDueCharges,
  REFERENCE_POINTS,
  type ReferencePoint,
} from '../../core/rating/charges.ts';
import type { MeasuredUsage, PricedItem } from '../../core/rating/line-amount.ts';
import { buildInvoicePlan, chargeKey, listOpenCharges, planLines } from '../../core/rating/plan-invoice.ts';
import { SUBSCRIPTION_PERIODS } from '../../core/subscriptions/record.ts';
import { JANUARY, usageItem } from './january.ts';

const instant = z.string().transform((text) => toInstant(text.length === 10 ? `${text}T00:00:00Z` : text));
const cadence = z.enum(['ADVANCE', 'ARREAR']);
const price = z.custom<PriceTerms>((input) => input !== null && typeof input === 'object');
const CURRENCY = 'usd';

/** Each entry is what one period brings: what is charged in advance as it begins, and in arrears when it ends. */
export function billingTimeline(given: unknown) {
  const { subscription_period, start, items, invoices } = z
    .object({
      subscription_period: z.enum(SUBSCRIPTION_PERIODS),
      start: instant,
      items: z.array(
        z.object({ billing_period: z.enum([...SUBSCRIPTION_PERIODS, 'ONETIME']), cadence, amount: z.string() }),
      ),
      invoices: z.coerce.number().int(),
    })
    .parse(given);
  const subscription = subscriptionFrom(start, subscription_period);
  const lines = items.map(({ billing_period, cadence: invoice_cadence, amount }, index) =>
    item(String(index), fiat(amount), { billing_period, invoice_cadence, start_ms: start }),
  );
  const ask = (period: Period, reference: ReferencePoint, some = lines) =>
    plan({ subscription, items: some, period, reference }).subtotal;
  const inArrears = lines.filter(({ invoice_cadence }) => invoice_cadence === 'ARREAR');
  const subtotals: string[] = [];
  const byDate: Record<string, string> = {};
  for (let period = nextPeriod(start, subscription)!; subtotals.length < invoices; ) {
    subtotals.push(
      ask(period, 'period_start')
        .plus(ask(period, 'period_end', inArrears))
        .toFixed(),
    );
    byDate[new Date(period.end).toISOString().slice(0, 10)] = ask(period, 'period_end').toFixed();
    period = nextPeriod(period.end, subscription)!;
  }
  const creation = ask(nextPeriod(start, subscription)!, 'period_start').toFixed();
  return { invoice_subtotals: subtotals, creation, ...byDate };
}

/** On which invoice around the end of the current period a charge stands that is made once. */
export function classifyOnetime(given: unknown) {
  const period = z.tuple([instant, instant]).transform(([from, to]) => ({ start: from, end: to }));
  const {
    current_period,
    cadence: invoice_cadence,
    charge_date,
  } = z.object({ current_period: period, next_period: period, cadence, charge_date: instant }).parse(given);
  const items = [item('once', fiat('1'), { billing_period: 'ONETIME', invoice_cadence, start_ms: charge_date })];
  const subscription = subscriptionFrom(current_period.start, 'MONTHLY');
  const isDue = (reference: ReferencePoint) =>
    planDueCharges({ subscription, items, period: current_period, reference }).length > 0;
  if (isDue('period_start')) return { bucket: 'current_advance' };
  if (!isDue('period_end')) return { bucket: 'none' };
  return { bucket: invoice_cadence === 'ARREAR' ? 'current_arrear' : 'next_advance' };
}

export function onetimeAmount(given: unknown) {
  const stated = z
    .object({
      unit_amount: z.coerce.string(),
      quantity: z.coerce.string(),
      charge_date: instant,
      period: z.tuple([instant, instant]),
    })
    .parse(given);
  const [start, end] = stated.period;
  const once = item('once', fiat(stated.unit_amount), {
    billing_period: 'ONETIME',
    invoice_cadence: 'ADVANCE',
    start_ms: stated.charge_date,
    quantity: new Decimal(stated.quantity),
  });
  const subscription = subscriptionFrom(start, 'MONTHLY');
  const { lines } = plan({ subscription, items: [once], period: { start, end }, reference: 'period_start' });
  const [line] = lines;
  return {
    amount: line!.amount.toFixed(),
    line_period_start: new Date(line!.service.start).toISOString(),
    line_period_end: new Date(line!.service.end).toISOString(),
  };
}

/** A period with usage, a charge in advance and one in arrears; some of it may stand on another invoice already. */
export function composeInvoice(given: unknown) {
  const stated = z
    .object({
      usage_price: price,
      usage_quantity: z.coerce.string(),
      fixed_advance: z.coerce.string(),
      fixed_arrear: z.coerce.string(),
      reference_point: z.enum(REFERENCE_POINTS),
      already: z.enum(['advance_already_invoiced', 'arrears_already_invoiced']).nullish(),
    })
    .parse(given);
  const subscription = subscriptionFrom(JANUARY.start, 'MONTHLY');
  const items = [
    item('usage', stated.usage_price, { price_type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: 'meter' }),
    item('advance', fiat(stated.fixed_advance), { invoice_cadence: 'ADVANCE' }),
    item('arrear', fiat(stated.fixed_arrear), { invoice_cadence: 'ARREAR' }),
  ];
  const before = { advance_already_invoiced: ['advance'], arrears_already_invoiced: ['usage', 'arrear'] };
  const invoiced = (stated.already ? before[stated.already] : []).map((id) => chargeKey(id, JANUARY));
  const question = { subscription, items, period: JANUARY, reference: stated.reference_point };
  const { lines, subtotal } = plan(question, { invoiced, quantity: stated.usage_quantity });
  return { subtotal: subtotal.toFixed(), line_count: lines.length };
}

function plan(
  question: ChargeInput<PricedItem>,
  { invoiced = [], quantity = '0' }: { invoiced?: readonly string[]; quantity?: string } = {},
) {
  const open = { ...question, invoiced: new Set(invoiced) };
  const usage = new Map<string, MeasuredUsage>();
  for (const { item: one, service } of listOpenCharges(open)) usage.set(chargeKey(one.id, service), measured(quantity));
  const before = { closed: [], recorded: [], partial: [], commitment: null, true_ups: [], coupons: [] };
  const input = { ...open, ...before, currency: CURRENCY, usage };
  return buildInvoicePlan(planLines(input), input);
}

function measured(quantity: string): MeasuredUsage {
  return {
    quantity: new Decimal(quantity),
    event_count: 1,
    buckets: null,
    as_of: '',
    high_water: {},
    meter_version: 1,
  };
}

function subscriptionFrom(start: number, billing_period: BilledSubscription['billing_period']): BilledSubscription {
  return {
    start_ms: start,
    end_ms: null,
    billing_anchor_ms: start,
    billing_period,
    billing_period_count: 1,
    timezone: 'UTC',
  };
}

function fiat(amount: string): PriceTerms {
  return { billing_model: 'FLAT_FEE', currency: CURRENCY, amount };
}

function item(id: string, terms: PriceTerms, changes: Partial<PricedItem>): PricedItem {
  const fixed = { price_type: 'FIXED', reset_usage: null, quantity: new Decimal(1), meter_id: null } as const;
  return usageItem(terms, { id, ...fixed, display_name: id, ...changes });
}
