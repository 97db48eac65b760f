/**
 * The reference model of usage over a change inside a period (docs/rules/proration.md, "Usage over a change"): the
 * amount of each line from the events, the lines and the terms of their prices. It imports decimal.js and the two other
 * models, and none of the code that it is compared with. It is slow, and reads every event for every line.
 *
 *   chainsByModel({ meter, period, lines: [{ name: 'a', start, end, terms }, …] }, accepted)
 */
import { computeCost, type ModelTerms, notNegative } from './invoice-model.ts';
import {
  Decimal,
  eventsInEffect,
  type ModelEntry,
  type ModelEvent,
  type ModelMeter,
  microseconds,
  usageByModel,
  type Window,
  windowAt,
} from './reference-model.ts';

export type ModelChainLine = {
  name: string;
  /** The plan, or one add-on. Lines of different sources are never in one chain. */
  source?: string;
  start: string;
  end: string;
  terms: ModelTerms;
};

type ModelMember = { customer: string; from?: string; to?: string };

export type ModelChained = {
  meter: ModelMeter;
  /** The part of the whole period in which the subscription is active. */
  period: { start: string; end: string };
  /** The full period, if `period` is only a part of it. */
  whole?: { start: string; end: string };
  /** Instant from which events count for a WEIGHTED_SUM that never resets; if absent, the start of the period. */
  since?: string;
  /** Customers whose events count, and when; if absent, all customers at any time. */
  members?: readonly ModelMember[];
  /** Free units of the period, for a meter without buckets. */
  free?: string;
  timezone?: string;
  billing_anchor?: string;
  lines: readonly ModelChainLine[];
};

type ModelChainAmounts = { lines: { name: string; amount: string }[]; total: string };

type Line = { name: string; terms: ModelTerms; start: bigint; end: bigint };
/**
 * An event that belongs to a member. `until` is the instant from which its value no longer counts for a WEIGHTED_SUM; null if it always
 * counts.
 */
type Owned = { event: ModelEvent; at: bigint; until: bigint | null };
type Measured = { given: ModelChained; period: Window; whole: Window; events: Owned[] };

const PEAKS = ['MAX', 'LATEST', 'COUNT_UNIQUE', 'AVG'];
const ZERO = new Decimal(0);

/** Computes the amount of each line, in order of time, and of the chain, for each chain. */
export function chainsByModel(given: ModelChained, accepted: Iterable<ModelEntry>): ModelChainAmounts[] {
  const period = windowFrom(given.period);
  const whole = given.whole ? windowFrom(given.whole) : period;
  const measured = { given, period, whole, events: findOwned(given, eventsInEffect(accepted)) };
  return buildChains(given.lines, period).map((lines) => {
    const costs = priceChain(lines, measured).map((cost) => cost.toDecimalPlaces(2));
    const amounts = costs.map((cost, index) => cost.minus(costs[index - 1] ?? ZERO));
    const shown = lines.map(({ name }, index) => ({ name, amount: amounts[index]!.toFixed() }));
    return { lines: shown, total: (costs.at(-1) ?? ZERO).toFixed() };
  });
}

/**
 * A line joins the latest chain of its source that has ended when the line begins, or else begins a new chain. A line
 * without length is in no chain.
 */
export function buildChains(all: readonly ModelChainLine[], period: Window): Line[][] {
  const chains: { source: string; lines: Line[] }[] = [];
  const cut = all.map(({ source = 'plan', ...line }) => ({ ...line, ...windowInside(line, period), source }));
  for (const { source, ...line } of cut.filter(({ start, end }) => start < end).sort((a, b) => compare(a, b))) {
    const ended = chains.filter((chain) => chain.source === source && chain.lines.at(-1)!.end <= line.start);
    const latest = ended.sort((a, b) => Number(b.lines.at(-1)!.end - a.lines.at(-1)!.end))[0];
    if (latest) latest.lines.push(line);
    else chains.push({ source, lines: [line] });
  }
  return chains.map(({ lines }) => lines);
}

function compare(a: Window, b: Window): number {
  return a.start < b.start ? -1 : a.start > b.start ? 1 : 0;
}

/** For each line, the exact cost of the chain from its begin to the end of that line (cumulative). */
function priceChain(lines: readonly Line[], measured: Measured): Decimal[] {
  const { type } = measured.given.meter.aggregation;
  if (type === 'WEIGHTED_SUM') return priceIntegral(lines, measured);
  if (PEAKS.includes(type)) return pricePeaks(lines, measured);
  return lines.map((_, last) => priceAdditive(lines.slice(0, last + 1), measured));
}

// Additive: each event is charged by the line in force at its timestamp.

function priceAdditive(lines: readonly Line[], measured: Measured): Decimal {
  return sum(findBuckets(lines, measured).map((bucket) => priceRuns(lines, bucket, measured)));
}

function priceRuns(lines: readonly Line[], bucket: Window, measured: Measured): Decimal {
  const inside = lines.map((line) => overlap(line, bucket)).map((part) => (part ? quantityIn([part], measured) : ZERO));
  const charged = measured.given.free === undefined ? inside : withoutFree(inside, measured.given.free);
  const runs = buildRuns(lines).map((run) => ({ terms: run.terms, quantity: sum(pick(charged, run.lines)) }));
  return sum(netRuns(runs).map(({ terms, quantity }) => computeCost(terms, quantity)));
}

/** The first units of the period are free, whichever line charges them. */
function withoutFree(quantities: readonly Decimal[], free: string): Decimal[] {
  const chargedOf = (used: Decimal) => notNegative(used.minus(free));
  const until = quantities.map((_, last) => chargedOf(sum(quantities.slice(0, last + 1))));
  return until.map((charged, index) => charged.minus(until[index - 1] ?? ZERO));
}

type Run = { terms: ModelTerms; quantity: Decimal };

/** Subtracts a negative quantity of a run (lines with equal terms) from the runs before it, the latest first, then from later ones. */
function netRuns(runs: readonly Run[]): Run[] {
  const left = runs.map((run) => ({ ...run, quantity: notNegative(run.quantity) }));
  for (const [index, { quantity }] of runs.entries()) {
    let owed = notNegative(quantity.negated());
    const before = left.slice(0, index).reverse();
    for (const run of [...before, ...left.slice(index + 1)]) {
      const taken = Decimal.min(owed, run.quantity);
      run.quantity = run.quantity.minus(taken);
      owed = owed.minus(taken);
    }
  }
  return left;
}

/** Joins adjacent lines with equal terms to runs. */
function buildRuns(lines: readonly Line[]): { terms: ModelTerms; lines: number[] }[] {
  const runs: { terms: ModelTerms; lines: number[] }[] = [];
  for (const [index, { terms }] of lines.entries()) {
    const last = runs.at(-1);
    if (last && termsText(last.terms) === termsText(terms)) last.lines.push(index);
    else runs.push({ terms, lines: [index] });
  }
  return runs;
}

/** Formats terms so that equal numbers are equal texts: 1 and 1.00 are the same. */
function termsText(terms: ModelTerms): string {
  const number = (value: string | number) => new Decimal(value).toFixed();
  if (!('tiers' in terms)) {
    const { amount, ...others } = terms;
    return JSON.stringify([others, number(amount)]);
  }
  const tiers = terms.tiers.map(({ up_to, unit_amount, flat_amount = '0' }) => [
    up_to === null ? null : number(up_to),
    number(unit_amount),
    number(flat_amount),
  ]);
  return JSON.stringify([terms.model, tiers]);
}

// MAX, LATEST, COUNT_UNIQUE and AVG are measured once for all lines. Each line charges its price for its share of the time.

function pricePeaks(lines: readonly Line[], measured: Measured): Decimal[] {
  const charges = lines.map(() => ZERO);
  for (const bucket of findBuckets(lines, measured)) {
    // A bucket is a period of its own, with the lines that are active in it.
    const active = lines.flatMap((line, index) => (overlap(line, bucket) ? [{ line, index }] : []));
    const groups = valuesIn(
      active.map(({ line }) => overlap(line, bucket)!),
      measured,
    );
    for (const [place, { line, index }] of active.entries()) {
      const from = place === 0 ? bucket.start : line.start;
      const to = active[place + 1]?.line.start ?? bucket.end;
      const cost = sum(groups.map((value) => computeCost(line.terms, chargedQuantity(value, measured))));
      const share = cost.times(String(to - from)).div(String(bucket.end - bucket.start));
      charges[index] = charges[index]!.plus(share);
    }
  }
  return addUp(charges);
}

function chargedQuantity(value: Decimal, { given }: Measured): Decimal {
  return notNegative(value.minus(given.free ?? 0));
}

// WEIGHTED_SUM: one integral over time, split between the lines by their parts of it.

function priceIntegral(lines: readonly Line[], measured: Measured): Decimal[] {
  const { given, period, whole, events } = measured;
  const since = given.since ? microseconds(given.since) : period.start;
  const standing = events.filter(({ at }) => at >= since);
  const length = String(whole.end - whole.start);
  const parts = lines.map((line) => sum(standing.map((owned) => integrate(owned, line, given.meter))).div(length));
  const quantity = sum(parts);
  const runs = buildRuns(lines).map((run) => ({ ...run, part: sum(pick(parts, run.lines)) }));
  const shared = sum(runs.map(({ part }) => notNegative(part)));
  const charges = lines.map((line, index) => {
    const run = runs.find((one) => one.lines.includes(index))!;
    if (run.part.lte(0) || shared.isZero()) return ZERO;
    return computeCost(line.terms, chargedQuantity(quantity, measured)).times(parts[index]!).div(shared);
  });
  return addUp(charges);
}

/** The value of an event times the microseconds for which it counts within the line. */
function integrate({ event, at, until }: Owned, line: Line, meter: ModelMeter): Decimal {
  const from = at > line.start ? at : line.start;
  const to = until !== null && until < line.end ? until : line.end;
  if (from >= to) return ZERO;
  const value = usageByModel({ ...meter, aggregation: { ...meter.aggregation, type: 'SUM' } }, [event], EVER).value;
  return new Decimal(value).times(String(to - from));
}

// The three ways of pricing share the helpers below.

const EVER = { start: '1970-01-01T00:00:00Z', end: '9000-01-01T00:00:00Z' };

/**
 * Windows of the meter in which the chain has events, cut at the bounds of the period. A meter without a bucket_size has
 * one window: the full period.
 */
function findBuckets(lines: readonly Line[], { given, period, whole, events }: Measured): Window[] {
  const size = given.meter.aggregation.bucket_size;
  if (!size) return [whole];
  const starts = new Map<bigint, Window>();
  for (const { at } of events) {
    if (!lines.some((line) => at >= line.start && at < line.end)) continue;
    const { start, end } = windowAt(at, size, { ...EVER, ...grid(given) });
    starts.set(start, {
      start: start < period.start ? period.start : start,
      end: end > period.end ? period.end : end,
    });
  }
  return [...starts.values()];
}

function grid({ timezone, billing_anchor }: ModelChained) {
  return { ...(timezone ? { timezone } : {}), ...(billing_anchor ? { billing_anchor } : {}) };
}

function quantityIn(parts: readonly Window[], measured: Measured): Decimal {
  return sum(valuesIn(parts, measured));
}

/** Values of the events in these parts of one bucket, one value for each group. */
function valuesIn(parts: readonly Window[], { given, events }: Measured): Decimal[] {
  const inside = events.filter(({ at }) => parts.some(({ start, end }) => at >= start && at < end));
  const { value, buckets } = usageByModel(
    given.meter,
    inside.map(({ event }) => event),
    { ...EVER, ...grid(given) },
  );
  return buckets ?? [new Decimal(value)];
}

/** Events of members, while they are members. */
function findOwned({ members }: ModelChained, events: readonly ModelEvent[]): Owned[] {
  return events.flatMap((event) => {
    const at = microseconds(event.timestamp);
    if (!members) return [{ event, at, until: null }];
    const times = members.filter(({ customer }) => customer === event.external_customer_id);
    const during = times.find(
      ({ from, to }) => (from === undefined || at >= microseconds(from)) && (to === undefined || at < microseconds(to)),
    );
    return during ? [{ event, at, until: during.to === undefined ? null : microseconds(during.to) }] : [];
  });
}

function windowFrom({ start, end }: { start: string; end: string }): Window {
  return { start: microseconds(start), end: microseconds(end) };
}

function windowInside(range: { start: string; end: string }, period: Window): Window {
  return overlap(windowFrom(range), period) ?? { start: period.end, end: period.end };
}

function overlap(a: Window, b: Window): Window | null {
  const start = a.start > b.start ? a.start : b.start;
  const end = a.end < b.end ? a.end : b.end;
  return start < end ? { start, end } : null;
}

function addUp(charges: readonly Decimal[]): Decimal[] {
  return charges.map((_, last) => sum(charges.slice(0, last + 1)));
}

function pick(all: readonly Decimal[], indices: readonly number[]): Decimal[] {
  return indices.map((index) => all[index]!);
}

function sum(values: readonly Decimal[]): Decimal {
  return values.reduce((total, value) => total.plus(value), new Decimal(0));
}
