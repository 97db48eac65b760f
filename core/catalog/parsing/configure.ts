/**
 * Converts the facts of a description to request bodies. A yearly payment option becomes a plan of its own. A
 * subscription takes over all prices of its plan and would otherwise pay both.
 */
import { Decimal } from '../../foundation/decimal.ts';
import { toLookupKey } from '../../foundation/lookup-key.ts';
import type { BillingPeriod } from '../price/record.ts';
import { type ParsedInterval, type ParsedMoney, plural, singular } from './cursor.ts';
import { contradictions, deriveDiscounts } from './discounts.ts';
import { isHad, isMonthly, type PricingFact } from './fact.ts';
import { buildCharges, buildLadders, type Ladder } from './rates.ts';
import type { ConfigurationDraft, NotUnderstood } from './record.ts';
import { areOtherSizes } from './sizes.ts';

type PriceBody = ConfigurationDraft['prices'][number]['body'];
type MeterBody = ConfigurationDraft['meters'][number]['body'];
type FactOfKind<Kind extends PricingFact['kind']> = Extract<PricingFact, { kind: Kind }>;
type RecurringFact = FactOfKind<'base'> | FactOfKind<'seat'>;

type PricingDraft = ConfigurationDraft & {
  readonly currency: string;
  readonly not_understood: NotUnderstood[];
  readonly assumptions: Set<string>;
};

export function emptyDraft(currency: string): PricingDraft {
  return {
    plans: [],
    meters: [],
    features: [],
    prices: [],
    entitlements: [],
    currency,
    not_understood: [],
    assumptions: new Set(),
  };
}

/** Adds one plan, and a second one if the plan can also be paid by the year. */
export function addPlan(draft: PricingDraft, name: string | null, facts: readonly PricingFact[]): void {
  const { monthly, alternatives } = splitPaymentOptions(draft, facts);
  const yearly = planYearlyPrices(draft, { monthly, alternatives, facts });
  const title = name ?? 'Plan';
  if (name === null) draft.assumptions.add('the plan has no name in the description');
  addVariant(draft, title, { recurring: monthly, facts });
  if (yearly.length > 0) addVariant(draft, `${title} Annual`, { recurring: yearly, facts });
}

/** Separates the recurring prices from other payment options for the same thing. */
function splitPaymentOptions(
  draft: PricingDraft,
  facts: readonly PricingFact[],
): { monthly: RecurringFact[]; alternatives: RecurringFact[] } {
  const monthly: RecurringFact[] = [];
  const alternatives: RecurringFact[] = [];
  const first = facts.find(({ kind }) => PRICED.has(kind));
  for (const fact of facts) {
    if (fact.kind !== 'base' && fact.kind !== 'seat') continue;
    const same = monthly.filter((other) => isSameThing(fact, other));
    const isYearly = fact.billing_period === 'ANNUAL' && same.some(({ billing_period }) => billing_period !== 'ANNUAL');
    if (isYearly && fact.joined !== 'and') alternatives.push(fact);
    else if (fact.joined === 'or' && fact !== first)
      lose(
        draft,
        `or ${fact.moneys.map(({ amount }) => amount.toFixed()).join(', ')}`,
        'another way of paying than the same by the year',
      );
    else monthly.push(fact);
    if (same.length > 0 && monthly.includes(fact))
      draft.assumptions.add('several recurring prices of one plan are charged together');
  }
  return { monthly, alternatives };
}

const PRICED = new Set<PricingFact['kind']>(['base', 'seat', 'usage', 'rate', 'once']);

const isSameThing = (a: RecurringFact, b: RecurringFact) =>
  a.kind === b.kind && (a.kind !== 'seat' || b.kind !== 'seat' || a.unit === b.unit);

/** The given yearly prices, or prices computed from a discount on twelve months. */
function planYearlyPrices(
  draft: PricingDraft,
  {
    monthly,
    alternatives,
    facts,
  }: { monthly: readonly RecurringFact[]; alternatives: readonly RecurringFact[]; facts: readonly PricingFact[] },
): RecurringFact[] {
  const discounts = deriveDiscounts(facts);
  const byMonth = monthly.filter(isMonthly);
  const pairs = alternatives.flatMap((yearly) => {
    const own = byMonth.find((fact) => isSameThing(fact, yearly));
    return own ? [{ monthly: own, yearly }] : [];
  });
  for (const { text, reason } of contradictions(discounts, { pairs, byMonth: byMonth.length }))
    lose(draft, text, reason);
  if (alternatives.length > 0) return [...alternatives];
  const [discount] = discounts;
  if (discount === undefined) return [];
  const yearly = { billing_period: 'ANNUAL' as const, paid: null };
  return byMonth.map((fact) => ({ ...fact, ...yearly, moneys: times(fact.moneys, discount.months) }));
}

const times = (moneys: readonly ParsedMoney[], factor: Decimal) =>
  moneys.map(({ amount, currency }) => ({ currency, amount: amount.times(factor) }));

type Variant = { recurring: readonly RecurringFact[]; facts: readonly PricingFact[] };

function addVariant(draft: PricingDraft, name: string, { recurring, facts }: Variant): void {
  const ref = `plan_${draft.plans.length + 1}`;
  const key = toLookupKey(name);
  draft.plans.push({ ref, body: key === null ? { name } : { name, lookup_key: key } });
  const trial = facts.find((fact) => fact.kind === 'trial');
  for (const fact of recurring) addRecurring(draft, ref, { fact, facts });
  if (trial) checkTrial(draft, trial, recurring.length);
  for (const fact of facts) if (fact.kind === 'once') addOnce(draft, ref, fact);
  const { ladders, homeless } = buildLadders(facts);
  for (const ladder of ladders) {
    const size = ladders.find(
      (other) => isUnpriced(ladder) && !isUnpriced(other) && areOtherSizes(ladder.unit, other.unit),
    );
    if (size) lose(draft, capital(plural(ladder.unit)), `what has a price is ${capital(plural(size.unit))}`);
    else addUsage(draft, ref, { ladder, facts });
  }
  for (const { unit, kind } of homeless)
    lose(draft, unit ? capital(plural(unit)) : kind, 'it does not say what it is the price of');
  for (const fact of facts) if (fact.kind === 'feature') addFeature(draft, ref, fact.name);
  for (const fact of facts)
    if (fact.kind === 'minimum' && !isTaken(fact, recurring)) lose(draft, fact.unit, 'a minimum of what is not sold');
}

const isUnpriced = ({ usage, rates }: Ladder) => usage === null && rates.every(({ money }) => money === null);

function checkTrial(draft: PricingDraft, { days, isExact }: FactOfKind<'trial'>, prices: number): void {
  if (prices === 0) lose(draft, `trial of ${days.toFixed()} days`, 'a trial needs a recurring fixed price');
  if (!isExact) draft.assumptions.add('a month of trial has 30 days');
}

const isTaken = ({ unit }: FactOfKind<'minimum'>, recurring: readonly RecurringFact[]) =>
  recurring.some((fact) => fact.kind === 'seat' && sameUnit(fact.unit, unit));
const sameUnit = (a: string, b: string) => singular(a.split(' ').at(-1)!) === singular(b.split(' ').at(-1)!);

function lose(draft: PricingDraft, text: string, reason: string): void {
  if (!draft.not_understood.some((lost) => lost.text === text)) draft.not_understood.push({ text, reason });
}

function addRecurring(
  draft: PricingDraft,
  plan: string,
  { fact, facts }: { fact: RecurringFact; facts: readonly PricingFact[] },
): void {
  const trial = facts.find((each) => each.kind === 'trial');
  const least = facts.find((each) => each.kind === 'minimum' && fact.kind === 'seat' && sameUnit(fact.unit, each.unit));
  const { span, moneys } = paidAs(draft, fact);
  for (const money of moneys) {
    addPrice(draft, plan, {
      ...span,
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      amount: money.amount.toFixed(),
      currency: money.currency ?? draft.currency,
      invoice_cadence: 'ADVANCE',
      display_name: fact.kind === 'seat' ? capital(plural(fact.unit)) : null,
      min_quantity: least?.kind === 'minimum' ? least.count.toFixed() : null,
      trial_period_days: trial?.kind === 'trial' ? trial.days.toNumber() : null,
    });
  }
}

/**
 * Converts a price that is paid in longer intervals: "$29 per month, billed annually" is twelve times the amount, by
 * the year.
 */
function paidAs(draft: PricingDraft, { billing_period, billing_period_count, paid, moneys }: RecurringFact) {
  const ownInterval = { billing_period, billing_period_count };
  if (paid === null || paid.billing_period === billing_period) return { span: ownInterval, moneys };
  const months: Partial<Record<BillingPeriod, string>> = {
    MONTHLY: '1',
    QUARTERLY: '3',
    HALF_YEARLY: '6',
    ANNUAL: '12',
  };
  const [from, to] = [months[billing_period], months[paid.billing_period]];
  if (!from || !to || billing_period_count !== 1 || paid.billing_period_count !== 1) {
    lose(draft, `billed ${paid.billing_period}`, `a price per ${billing_period} cannot be billed so`);
    return { span: ownInterval, moneys };
  }
  const span: ParsedInterval = { billing_period: paid.billing_period, billing_period_count: 1 };
  return { span, moneys: times(moneys, new Decimal(to).dividedBy(from)) };
}

function addOnce(draft: PricingDraft, plan: string, { moneys, name }: FactOfKind<'once'>): void {
  for (const money of moneys) {
    addPrice(draft, plan, {
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      billing_period: 'ONETIME',
      amount: money.amount.toFixed(),
      currency: money.currency ?? draft.currency,
      invoice_cadence: 'ADVANCE',
      display_name: name,
    });
  }
}

function addUsage(
  draft: PricingDraft,
  plan: string,
  { ladder, facts }: { ladder: Ladder; facts: readonly PricingFact[] },
): void {
  const isVolume = facts.some(({ kind }) => kind === 'volume');
  const charges = buildCharges(ladder, isVolume);
  if (charges === null && (ladder.rates.length > 0 || ladder.usage !== null)) {
    lose(draft, capital(plural(ladder.unit)), 'what is said of its rates does not fit together');
    return;
  }
  const meter = ensureMeter(draft, ladder.unit);
  if (charges === null) addLimit(draft, plan, { ladder, meter });
  for (const { terms, currency, assumption, lost } of charges ?? []) {
    if (assumption) draft.assumptions.add(assumption);
    if (lost) lose(draft, lost.text, lost.reason);
    addPrice(draft, plan, {
      ...terms,
      type: 'USAGE',
      currency: currency ?? draft.currency,
      billing_period: 'MONTHLY',
      invoice_cadence: 'ARREAR',
      meter_id: meter,
    });
  }
}

function addPrice(draft: PricingDraft, plan: string, body: Omit<PriceBody, 'entity_type' | 'entity_id'>): void {
  const ref = `price_${draft.prices.length + 1}`;
  draft.prices.push({ ref, body: { entity_type: 'PLAN', entity_id: plan, ...body } });
}

const SIZES = 'gb|mb|tb|kb|gib|mib|gigabyte|megabyte|terabyte|byte|minute|second|hour|kwh|mile|km';
/** Units of which one event can have many: a meter sums their amount. Other units are counted, one per event. */
const SUMMED = new RegExp(`^(?:${SIZES}|token|credit|unit|character|page|transaction volume)$`);
/**
 * Sizes that a unit can begin with, as in "GB egress" and "minute of talk"; a meter sums that size. Without a size, as in "page view", it
 * counts events.
 */
const SIZE = new RegExp(`^(?:${SIZES})$`);

/** All plans that charge by a unit share one meter. */
function ensureMeter(draft: PricingDraft, unit: string): string {
  const event_name = unit.replaceAll(/[^\p{L}\p{N}]+/gu, '_');
  const known = draft.meters.find(({ body }) => body.event_name === event_name);
  if (known) return known.ref;
  const ref = `meter_${draft.meters.length + 1}`;
  draft.meters.push({
    ref,
    body: { name: capital(plural(unit)), event_name, aggregation: deriveAggregation(draft, unit) },
  });
  return ref;
}

function deriveAggregation(draft: PricingDraft, unit: string): MeterBody['aggregation'] {
  const last = unit.split(' ').at(-1)!;
  const field = last.replaceAll(/[^\p{L}\p{N}]+/gu, '_');
  if (isHad(unit) || /\b(?:active|unique|distinct)\b/.test(unit)) {
    draft.assumptions.add(`each ${unit} is told by the property ${field}_id of an event`);
    return { type: 'COUNT_UNIQUE', field: `${field}_id` };
  }
  const first = unit.split(' ')[0]!;
  const measure = SUMMED.test(last) ? field : SIZE.test(first) ? first : null;
  if (measure === null) return { type: 'COUNT' };
  draft.assumptions.add(`how many ${plural(unit)} an event is worth stands in its property ${plural(measure)}`);
  return { type: 'SUM', field: plural(measure) };
}

function addLimit(draft: PricingDraft, plan: string, { ladder, meter }: { ladder: Ladder; meter: string }): void {
  const name = capital(plural(ladder.unit));
  const feature = ensureFeature(draft, { name, type: 'metered', meter_id: meter });
  addEntitlement(draft, {
    entity_type: 'PLAN',
    entity_id: plan,
    feature_id: feature,
    feature_type: 'metered',
    usage_limit: ladder.allowance?.count?.toFixed() ?? null,
    usage_reset_period: ladder.allowance?.span?.billing_period ?? (isHad(ladder.unit) ? 'NEVER' : 'MONTHLY'),
  });
}

function addFeature(draft: PricingDraft, plan: string, name: string): void {
  const feature = ensureFeature(draft, { name: capital(name), type: 'boolean', meter_id: null });
  addEntitlement(draft, { entity_type: 'PLAN', entity_id: plan, feature_id: feature, feature_type: 'boolean' });
}

type EntitlementDraft = ConfigurationDraft['entitlements'][number]['body'];

function addEntitlement(draft: PricingDraft, body: EntitlementDraft): void {
  draft.entitlements.push({ ref: `entitlement_${draft.entitlements.length + 1}`, body });
}

function ensureFeature(draft: PricingDraft, body: ConfigurationDraft['features'][number]['body']): string {
  const known = draft.features.find((feature) => feature.body.name === body.name);
  if (known) return known.ref;
  const ref = `feature_${draft.features.length + 1}`;
  draft.features.push({ ref, body });
  return ref;
}

/** Capitalizes a name; abbreviations stay in capitals, as in "API calls". */
function capital(text: string): string {
  const known = text.replaceAll(/\b(?:api|gb|mb|tb|kb|sms|url|id|ai|sso|cpu|gpu|kwh)\b/gi, (word) =>
    word.toUpperCase(),
  );
  return `${known[0]!.toUpperCase()}${known.slice(1)}`;
}
