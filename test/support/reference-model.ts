/**
 * The reference model of metering: it recomputes the usage of any meter from the accepted events, by the rules alone. It
 * is plain and slow, and imports decimal.js and Temporal but no code of the service, so that it cannot repeat a mistake of
 * the service. invoice-model.ts computes invoices from this usage.
 *
 *   const events = eventsInEffect([...accepted, { voids: 'e7' }]);
 *   usageByModel(meter, events, { start: '2026-03-01T00:00:00Z', end: '2026-04-01T00:00:00Z', customers: ['acme'] })
 *
 * A meter with an expression has a function `value`, which computes the result of the expression.
 */
import { Decimal as AnyDecimal } from 'decimal.js';
import { Temporal } from 'temporal-polyfill';

// Enough digits for any sum, product or quotient of quantities of 24 + 24 digits.
export const Decimal = AnyDecimal.clone({ precision: 200, rounding: AnyDecimal.ROUND_HALF_UP });
export type Decimal = AnyDecimal;

export type ModelEvent = {
  event_id: string;
  event_name: string;
  external_customer_id: string;
  /** RFC 3339. It is required: the model does not know when an event was received. */
  timestamp: string;
  source?: string;
  properties?: Record<string, unknown>;
};

/** Entries in the order in which they were accepted. A replacement keeps the id of the replaced event. */
export type ModelEntry = ModelEvent | { voids: string } | { replaces: string; event: ModelEvent };

/** Window sizes from the finest to the coarsest. */
const SIZES = ['MINUTE', '15MIN', '30MIN', 'HOUR', '3HOUR', '6HOUR', '12HOUR', 'DAY', 'WEEK', 'MONTH'] as const;
export type ModelWindow = (typeof SIZES)[number];

export type ModelMeter = {
  event_name: string;
  aggregation: {
    type: 'COUNT' | 'SUM' | 'AVG' | 'COUNT_UNIQUE' | 'LATEST' | 'SUM_WITH_MULTIPLIER' | 'MAX' | 'WEIGHTED_SUM';
    field?: string | null;
    expression?: string | null;
    multiplier?: string | null;
    bucket_size?: ModelWindow | null;
    group_by?: string | null;
  };
  filters?: { key: string; values: string[] }[] | null;
  /** Result of the expression for these properties; undefined if the event is unusable. */
  value?: (properties: Record<string, unknown>) => Decimal | undefined;
};

export type ModelQuestion = {
  start: string;
  /** End of the range, exclusive. */
  end: string;
  /** Customers whose events count; all customers if absent. */
  customers?: readonly string[] | undefined;
  window_size?: ModelWindow | undefined;
  /** Time zone of windows and buckets; UTC if absent. */
  timezone?: string | undefined;
  /** Months begin on the day of the month of this instant; on the first if absent. */
  billing_anchor?: string | undefined;
  /** The billing period whose length divides the integral of a WEIGHTED_SUM; the range if absent. */
  level_period?: { start: string; end: string } | undefined;
};

export type ModelUsage = {
  value: string;
  event_count: number;
  /** Windows that have events, in order of time. */
  windows: { start: string; value: string; event_count: number }[];
  /** For a meter with a bucket_size: the value of each bucket, and of each group in it. */
  buckets: Decimal[] | null;
};

/** An event that counts for the meter: what it contributes, when, and in which group. */
type Counted = {
  event_id: string;
  at_us: bigint;
  value: Decimal | undefined;
  identity: string | undefined;
  group: string;
};

export function usageByModel(meter: ModelMeter, accepted: Iterable<ModelEntry>, question: ModelQuestion): ModelUsage {
  const range = { from: microseconds(question.start), to: microseconds(question.end) };
  const counted: Counted[] = [];
  for (const event of eventsInEffect(accepted)) {
    if (event.event_name.trim() !== meter.event_name.trim()) continue;
    if (question.customers && !question.customers.includes(event.external_customer_id)) continue;
    const at_us = microseconds(event.timestamp);
    if (at_us < range.from || at_us >= range.to) continue;
    if (!passes(meter, event.properties ?? {})) continue;
    const contribution = contributionOf(meter, event, at_us);
    if (contribution) counted.push(contribution);
  }
  counted.sort((a, b) => (a.at_us < b.at_us ? -1 : a.at_us > b.at_us ? 1 : 0));
  const { bucket_size } = meter.aggregation;
  return {
    value: answer(meter, counted, { ...range, question }),
    event_count: counted.length,
    windows: question.window_size ? windowsOf(meter, counted, { ...range, question }) : [],
    buckets: bucket_size ? bucketsOf(meter, counted, { ...range, question }) : null,
  };
}

/**
 * An id takes effect once, whatever its timestamp: the first accepted wins (docs/rules/identity.md, "One effect per id"),
 * until it is corrected.
 */
export function eventsInEffect(accepted: Iterable<ModelEntry>): ModelEvent[] {
  const inEffect = new Map<string, ModelEvent | null>();
  for (const entry of accepted) {
    if ('voids' in entry) inEffect.set(entry.voids, null);
    else if ('replaces' in entry) inEffect.set(entry.replaces, { ...entry.event, event_id: entry.replaces });
    else if (!inEffect.has(entry.event_id)) inEffect.set(entry.event_id, entry);
  }
  return [...inEffect.values()].filter((event) => event !== null);
}

/**
 * All filters must match; a filter matches if any of its values does (docs/rules/metering.md, "Which events count").
 */
function passes({ filters }: ModelMeter, properties: Record<string, unknown>): boolean {
  return (filters ?? []).every(({ key, values }) => values.some((value) => isSame(own(properties, key), value)));
}

function own(properties: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(properties, key) ? properties[key] : undefined;
}

function isSame(property: unknown, value: string): boolean {
  if (typeof property === 'string') return property === value;
  if (typeof property === 'boolean') return String(property) === value;
  if (typeof property !== 'number') return false;
  const isJsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value);
  return isJsonNumber && new Decimal(value).eq(new Decimal(property));
}

/**
 * Contribution of an event; undefined if the event is unusable for this meter (docs/rules/metering.md, "Unusable
 * events").
 */
function contributionOf(meter: ModelMeter, event: ModelEvent, at_us: bigint): Counted | undefined {
  const { type, field, expression, group_by } = meter.aggregation;
  const properties = event.properties ?? {};
  const counted: Counted = { event_id: event.event_id, at_us, value: undefined, identity: undefined, group: '' };
  if (group_by) {
    const group = own(properties, group_by);
    const text = group === undefined || group === null ? '' : scalarText(group);
    if (text === undefined) return undefined;
    counted.group = text;
  }
  if (type === 'COUNT') return counted;
  if (expression && !meter.value) throw new Error('the model needs `value` for a meter with an expression');
  const computed = meter.value ? meter.value(properties) : undefined;
  if (type === 'COUNT_UNIQUE')
    counted.identity = meter.value ? computed?.toFixed() : scalarText(own(properties, field!));
  else counted.value = meter.value ? computed : quantity(own(properties, field!));
  return counted.identity === undefined && counted.value === undefined ? undefined : counted;
}

/**
 * Formats a value so that equal values are equal texts. Numbers compare by value, strings by text: 1, 1.0 and "1" are
 * one value, "1.0" is another.
 */
function scalarText(value: unknown): string | undefined {
  if (typeof value === 'number') return new Decimal(value).plus(0).toFixed();
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined;
}

/** Parses a number, or a text that contains a number, rounded to 24 decimals. Its magnitude must be below 10^24. */
function quantity(value: unknown): Decimal | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/.test(text)) return undefined;
  const number = new Decimal(text.trim()).toDecimalPlaces(24, Decimal.ROUND_HALF_UP);
  return number.abs().lt('1e24') ? number : undefined;
}

type Range = { from: bigint; to: bigint; question: ModelQuestion };

/** Usage over the range; with a bucket_size it is the sum over the buckets. */
function answer(meter: ModelMeter, counted: readonly Counted[], range: Range): string {
  if (!meter.aggregation.bucket_size) return aggregate(meter, counted, range).toFixed();
  return sum(bucketsOf(meter, counted, range)).toFixed();
}

function bucketsOf(meter: ModelMeter, counted: readonly Counted[], range: Range): Decimal[] {
  const groups = new Map<string, Counted[]>();
  for (const { start, inside } of inWindows(counted, meter.aggregation.bucket_size!, range.question)) {
    for (const each of inside) {
      const key = `${start} ${each.group}`;
      groups
        .set(key, groups.get(key) ?? [])
        .get(key)!
        .push(each);
    }
  }
  return [...groups.values()].map((group) => aggregate(meter, group, range));
}

/** Usage by window (docs/rules/windows.md, "Never finer than the meter"). */
function windowsOf(meter: ModelMeter, counted: readonly Counted[], { from, to, question }: Range) {
  const { bucket_size } = meter.aggregation;
  const asked = question.window_size!;
  const size = bucket_size && SIZES.indexOf(bucket_size) > SIZES.indexOf(asked) ? bucket_size : asked;
  return inWindows(counted, size, question).map(({ start, end, inside }) => {
    const part = { from: start < from ? from : start, to: end > to ? to : end, question };
    return { start: instantText(start), value: answer(meter, inside, part), event_count: inside.length };
  });
}

/** Aggregates events (docs/rules/metering.md, "Aggregations"); without events the result is 0. */
function aggregate({ aggregation }: ModelMeter, counted: readonly Counted[], { from, to, question }: Range): Decimal {
  if (counted.length === 0) return new Decimal(0);
  const values = counted.map(({ value }) => value!);
  switch (aggregation.type) {
    case 'COUNT':
      return new Decimal(counted.length);
    case 'COUNT_UNIQUE':
      return new Decimal(new Set(counted.map(({ identity }) => identity)).size);
    case 'SUM':
      return sum(values);
    case 'SUM_WITH_MULTIPLIER':
      return sum(values).times(aggregation.multiplier!);
    case 'AVG':
      return sum(values).div(values.length).toDecimalPlaces(24);
    case 'MAX':
      return values.reduce((greatest, value) => (value.gt(greatest) ? value : greatest));
    case 'LATEST':
      return counted.reduce((newest, each) => (isLater(each, newest) ? each : newest)).value!;
    case 'WEIGHTED_SUM': {
      const weighted = counted.map(({ value, at_us }) => value!.times(String(to - at_us)));
      const { level_period: whole } = question;
      const span = whole ? microseconds(whole.end) - microseconds(whole.start) : to - from;
      return sum(weighted).div(String(span)).toDecimalPlaces(24);
    }
  }
}

function sum(values: readonly Decimal[]): Decimal {
  return values.reduce((total, value) => total.plus(value), new Decimal(0));
}

/** Orders events by time; at one instant the greater id in bytes is later. */
function isLater(a: Counted, b: Counted): boolean {
  if (a.at_us !== b.at_us) return a.at_us > b.at_us;
  return Buffer.compare(Buffer.from(a.event_id), Buffer.from(b.event_id)) > 0;
}

export type Window = { start: bigint; end: bigint };

/** Groups events by window; `counted` is in order of time. */
function inWindows(counted: readonly Counted[], size: ModelWindow, question: ModelQuestion) {
  const windows: (Window & { inside: Counted[] })[] = [];
  for (const each of counted) {
    const last = windows.at(-1);
    if (last && each.at_us < last.end) last.inside.push(each);
    else windows.push({ ...windowAt(each.at_us, size, question), inside: [each] });
  }
  return windows;
}

/**
 * Windows of an hour or less are intervals of real time, cut at clock changes. Longer ones begin when the clock of the
 * time zone shows 00:00, 03:00, 06:00 and so on; weeks begin on Monday (docs/rules/windows.md, "Days of 23 and 25
 * hours").
 */
export function windowAt(
  at_us: bigint,
  size: ModelWindow,
  { timezone = 'UTC', billing_anchor }: ModelQuestion,
): Window {
  const at = zoned(at_us, timezone);
  const minutes = { MINUTE: 1, '15MIN': 15, '30MIN': 30, HOUR: 60 }[size as string];
  if (minutes !== undefined) {
    const length = BigInt(minutes) * 60_000_000n;
    const offset = BigInt(at.offsetNanoseconds) / 1000n;
    const local = at_us + offset;
    const start = local - (((local % length) + length) % length) - offset;
    const from = at.add({ nanoseconds: 1 }).getTimeZoneTransition('previous');
    const to = at.getTimeZoneTransition('next');
    const [first, end] = [from ? instantOf(from) : start, to ? instantOf(to) : start + length];
    return { start: first > start ? first : start, end: end < start + length ? end : start + length };
  }
  const hours = { '3HOUR': 3, '6HOUR': 6, '12HOUR': 12 }[size as string];
  const day = billing_anchor ? zoned(microseconds(billing_anchor), timezone).day : 1;
  const midnight = at.toPlainDate().toPlainDateTime();
  const boundary = (index: number): Temporal.PlainDateTime => {
    if (hours) return midnight.add({ hours: hours * (Math.floor(at.hour / hours) + index) });
    if (size === 'DAY') return midnight.add({ days: index });
    if (size === 'WEEK') return midnight.add({ days: 1 - at.dayOfWeek + 7 * index });
    const month = midnight.with({ day: 1 }).add({ months: index });
    return month.with({ day: Math.min(day, month.daysInMonth) });
  };
  const instants = [-1, 0, 1, 2].map((index) => instantOf(boundary(index).toZonedDateTime(timezone)));
  const begun = instants.filter((start) => start <= at_us).length;
  return { start: instants[begun - 1]!, end: instants[begun]! };
}

function zoned(at_us: bigint, timezone: string): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochNanoseconds(at_us * 1000n).toZonedDateTimeISO(timezone);
}

function instantOf(at: Temporal.ZonedDateTime): bigint {
  return at.epochNanoseconds / 1000n;
}

/** Digits finer than a microsecond are cut off. */
export function microseconds(timestamp: string): bigint {
  const parts = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/.exec(timestamp);
  const whole = Date.parse(`${parts?.[1]}${parts?.[3]}`.toUpperCase());
  if (!parts || Number.isNaN(whole)) throw new Error(`not a timestamp: ${timestamp}`);
  return BigInt(whole) * 1000n + BigInt((parts[2] ?? '').padEnd(6, '0').slice(0, 6));
}

export function instantText(at_us: bigint): string {
  return Temporal.Instant.fromEpochNanoseconds(at_us * 1000n).toString();
}
