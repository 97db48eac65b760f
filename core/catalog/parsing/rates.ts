/** The usage prices of a plan: all phrases about one unit become one charge per currency. */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { type ParsedMoney, plural } from './cursor.ts';
import { isHad, isMonthly, type PricingFact, type RateBound } from './fact.ts';
import type { NotUnderstood } from './record.ts';

type ParsedTier = { up_to: number | null; unit_amount: string };
/** The terms of a parsed price, and the assumption that the parser made for them. */
type ParsedCharge = {
  readonly currency: string | null;
  readonly terms:
    | { billing_model: 'FLAT_FEE'; amount: string }
    | { billing_model: 'PACKAGE'; amount: string; transform_quantity: { divide_by: number; round: 'up' } }
    | { billing_model: 'TIERED'; tier_mode: 'SLAB' | 'VOLUME'; tiers: ParsedTier[] };
  readonly assumption: string | null;
  /** Part of the description that the price cannot express. */
  readonly lost?: NotUnderstood;
};

export type Ladder = {
  readonly unit: string;
  readonly rates: Extract<PricingFact, { kind: 'rate' }>[];
  usage: Extract<PricingFact, { kind: 'usage' }> | null;
  allowance: Extract<PricingFact, { kind: 'allowance' }> | null;
};

type MeasuredFact = Extract<PricingFact, { kind: 'usage' | 'rate' | 'allowance' }>;

/** Groups facts by unit. A phrase without a unit belongs to the previous unit, or else to the first one. */
export function buildLadders(facts: readonly PricingFact[]): { ladders: Ladder[]; homeless: MeasuredFact[] } {
  const ladders = new Map<string, Ladder>();
  const homeless: MeasuredFact[] = [];
  const measured = facts.filter(({ kind }) => ['usage', 'rate', 'allowance'].includes(kind)) as MeasuredFact[];
  const units = measured.flatMap((fact) => fact.unit ?? []);
  const whole = new Map([...new Set(units)].map((unit) => [unit, wholeUnit(unit, measured)]));
  let last: string | null = null;
  for (const fact of measured) {
    const unit: string | null = fact.unit ? (whole.get(fact.unit) ?? null) : (last ?? units[0] ?? null);
    if (unit === null) {
      homeless.push(fact);
      continue;
    }
    last = unit;
    const ladder = ladders.get(unit) ?? { unit, rates: [], usage: null, allowance: null };
    ladders.set(unit, ladder);
    if (fact.kind === 'rate') ladder.rates.push(fact);
    else if (fact.kind === 'usage' && ladder.usage === null) ladder.usage = fact;
    else if (fact.kind === 'allowance' && ladder.allowance === null) ladder.allowance = fact;
    else homeless.push(fact);
  }
  return { ladders: [...ladders.values()], homeless };
}

/**
 * Finds the full name of a shortened unit: "API call" for "call" in "10,000 API calls, $0.01 per additional call". It is the only other
 * unit that ends in these words; null if several do. Two units that both have a price are different units.
 */
function wholeUnit(unit: string, measured: readonly MeasuredFact[]): string | null {
  const priced = new Set(measured.flatMap((fact) => (fact.kind === 'usage' ? (fact.unit ?? []) : [])));
  const longer = measured.flatMap((fact) => fact.unit ?? []).filter((other) => other.endsWith(` ${unit}`));
  const meant = new Set(
    longer.filter((other) => isHad(other) === isHad(unit) && !(priced.has(unit) && priced.has(other))),
  );
  if (meant.size > 1) return null;
  return [...meant][0] ?? unit;
}

/**
 * Builds the charges; null if the unit has no price and is only an entitlement, or if its rates do not fit together.
 */
export function buildCharges(ladder: Ladder, isVolume: boolean): ParsedCharge[] | null {
  const { usage, rates } = ladder;
  if (rates.length > 0) return tieredCharge(ladder, isVolume);
  if (usage === null) return null;
  const free = freeUnits(ladder);
  return free === undefined ? null : usage.moneys.map((money) => simpleCharge(money, usage.per, free));
}

/**
 * Finds the free units; null if none are free. Undefined if the phrases contradict each other, or if the allowance is
 * not monthly.
 */
function freeUnits({ usage, rates, allowance }: Ladder): Decimal | null | undefined {
  const after = usage?.after ?? null;
  if (allowance === null) return after;
  const [first] = rates;
  const isOpenEnded = first ? 'open' in first.bound : usage?.isExtra;
  if (allowance.isMost && !isOpenEnded) return undefined;
  if (allowance.span && !isMonthly(allowance.span)) return undefined;
  if (allowance.count === null || (after !== null && !after.eq(allowance.count))) return undefined;
  return allowance.count;
}

function simpleCharge({ amount, currency }: ParsedMoney, per: Decimal, free: Decimal | null): ParsedCharge {
  const unit_amount = amount.dividedBy(per);
  if (free !== null) {
    const tiers = [
      { up_to: free.toNumber(), unit_amount: '0' },
      { up_to: null, unit_amount: unit_amount.toFixed() },
    ];
    const assumption = per.eq('1') ? null : 'what is above the free units is charged by the unit, not by the package';
    return { currency, terms: { billing_model: 'TIERED', tier_mode: 'SLAB', tiers }, assumption };
  }
  if (per.eq('1'))
    return { currency, terms: { billing_model: 'FLAT_FEE', amount: amount.toFixed() }, assumption: null };
  const transform_quantity = { divide_by: per.toNumber(), round: 'up' as const };
  return {
    currency,
    terms: { billing_model: 'PACKAGE', amount: amount.toFixed(), transform_quantity },
    assumption: null,
  };
}

function tieredCharge(ladder: Ladder, isVolume: boolean): ParsedCharge[] | null {
  const steps = buildSteps(ladder);
  const monies = [...ladder.rates.map(({ money }) => money), ...(ladder.usage?.moneys ?? [])];
  const currencies = new Set(monies.flatMap((money) => (money ? [money.currency] : [])));
  if (steps === null || currencies.size > 1) return null;
  const isOpen = steps.at(-1)!.up_to === null;
  // A price has no end, so the last rate continues; the given end is reported.
  const tiers = isOpen ? steps : [...steps.slice(0, -1), { ...steps.at(-1)!, up_to: null }];
  const tier_mode = isVolume ? 'VOLUME' : 'SLAB';
  const terms = { billing_model: 'TIERED' as const, tier_mode, tiers } as const;
  const charge = { currency: [...currencies][0] ?? null, terms, assumption: null };
  return [isOpen ? charge : { ...charge, lost: describeEnd(steps.at(-1)!, ladder.unit) }];
}

function describeEnd({ up_to, unit_amount }: ParsedTier, unit: string): NotUnderstood {
  const reason = `a price has no end: what is above costs ${unit_amount} each, too`;
  return { text: `no more than ${up_to} ${plural(unit)}`, reason };
}

/** Builds the tiers; null if the rates leave a gap, go back, or continue after a rate without an end. */
function buildSteps(ladder: Ladder): ParsedTier[] | null {
  const { rates, usage } = ladder;
  const free = freeUnits(ladder);
  if (free === undefined) return null;
  const isCounted = free !== null && rates.some(({ bound }) => 'upTo' in bound && bound.upTo.eq(free));
  const steps: ParsedTier[] = free !== null && !isCounted ? [{ up_to: free.toNumber(), unit_amount: '0' }] : [];
  let reached: LadderReach | null = { units: isCounted ? ZERO : (free ?? ZERO) };
  const last = usage ? [{ money: usage.moneys[0]!, bound: { open: true } as const, per: usage.per }] : [];
  for (const { money, bound, per } of [...rates, ...last]) {
    reached = computeReach(bound, reached.units);
    if (reached === null) return null;
    const unit_amount = money ? money.amount.dividedBy(per).toFixed() : '0';
    steps.push({ up_to: reached.units?.toNumber() ?? null, unit_amount });
  }
  return steps;
}

/** The number of units that the rates cover so far; null means all. */
type LadderReach = { readonly units: Decimal | null };

/**
 * Computes the end of a rate; null if the rate does not begin at the end of the previous one, or does not end after it.
 */
function computeReach(bound: RateBound, before: Decimal | null): LadderReach | null {
  if (before === null) return null;
  const from = 'from' in bound ? bound.from : undefined;
  if (from && !from.eq(before) && !from.eq(before.plus('1'))) return null;
  if ('open' in bound) return { units: null };
  const units = 'next' in bound ? before.plus(bound.next) : bound.upTo;
  return units.gt(before) ? { units } : null;
}
