/**
 * The reference model of metering: the usage of any meter, recomputed from a list of events by the rules and by nothing
 * else. Plain, slow and independent: it knows decimal.js and no code of ours, so that a mistake there cannot hide here.
 *
 *   usageByModel(meter, events, { start: '2026-03-01T00:00:00Z', end: '2026-04-01T00:00:00Z', customers: ['acme'] })
 *
 * The events are in the order in which they were accepted. Windows are in UTC. A meter with an expression says what the
 * expression means as a function, `value`.
 */
import { Decimal as AnyDecimal } from 'decimal.js';

// Enough digits for any sum, product or quotient of quantities of 24 + 24 digits.
const Decimal = AnyDecimal.clone({ precision: 200, rounding: AnyDecimal.ROUND_HALF_UP, toExpNeg: -300, toExpPos: 300 });
type Decimal = AnyDecimal;

export type ModelEvent = {
  event_id: string;
  event_name: string;
  external_customer_id: string;
  /** RFC 3339, always given: the model does not know when an event was received. */
  timestamp: string;
  source?: string;
  properties?: Record<string, unknown>;
};

export type ModelWindow =
  | 'MINUTE'
  | '15MIN'
  | '30MIN'
  | 'HOUR'
  | '3HOUR'
  | '6HOUR'
  | '12HOUR'
  | 'DAY'
  | 'WEEK'
  | 'MONTH';

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
  /** What the expression gives for these properties; undefined where the event is unusable. */
  value?: (properties: Record<string, unknown>) => Decimal | undefined;
};

export type ModelQuestion = {
  start: string;
  /** Exclusive. */
  end: string;
  /** All customers when absent. */
  customers?: readonly string[];
  window_size?: ModelWindow;
};

export type ModelUsage = {
  value: string;
  event_count: number;
  /** Those with events, in order of time. */
  windows: { start: string; value: string; event_count: number }[];
};

/** An event that counts for the meter: what it contributes, when, and in which group. */
type Counted = {
  event_id: string;
  at_us: bigint;
  value: Decimal | undefined;
  identity: string | undefined;
  group: string;
};

export function usageByModel(meter: ModelMeter, accepted: Iterable<ModelEvent>, question: ModelQuestion): ModelUsage {
  const range = { from: microseconds(question.start), to: microseconds(question.end) };
  const counted: Counted[] = [];
  for (const event of firstOfEachId(accepted)) {
    if (question.customers && !question.customers.includes(event.external_customer_id)) continue;
    const at_us = microseconds(event.timestamp);
    if (at_us < range.from || at_us >= range.to) continue;
    if (event.event_name.trim() !== meter.event_name.trim()) continue;
    if (!passes(meter, event.properties ?? {})) continue;
    const contribution = contributionOf(meter, event, at_us);
    if (contribution) counted.push(contribution);
  }
  return {
    value: answer(meter, counted, range),
    event_count: counted.length,
    windows: question.window_size ? windowsOf(meter, counted, { ...range, size: question.window_size }) : [],
  };
}

/** An id takes effect once, whatever its timestamp: the first accepted wins (decisions §11). */
export function firstOfEachId(accepted: Iterable<ModelEvent>): ModelEvent[] {
  const first = new Map<string, ModelEvent>();
  for (const event of accepted) if (!first.has(event.event_id)) first.set(event.event_id, event);
  return [...first.values()];
}

/** All filters must hold; in each of them any value may (behaviour §1.5). */
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

/** Nothing when the event is unusable for this meter (decisions §9). */
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

/** Numbers are told apart by value, strings by their text: 1 and 1.0 and "1" are one value, "1.0" is another. */
function scalarText(value: unknown): string | undefined {
  if (typeof value === 'number') return new Decimal(value).plus(0).toFixed();
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined;
}

/** A number, or a text that is one: below 10^24 in magnitude, at most 24 places. */
function quantity(value: unknown): Decimal | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/.test(text)) return undefined;
  const number = new Decimal(text.trim());
  return number.abs().lt('1e24') && number.decimalPlaces() <= 24 ? number : undefined;
}

type Range = { from: bigint; to: bigint };

/** With a bucket_size: the sum over its windows, and in each of them over the groups. */
function answer(meter: ModelMeter, counted: readonly Counted[], range: Range): string {
  const { bucket_size } = meter.aggregation;
  if (!bucket_size) return aggregate(meter, counted, range).toFixed();
  let total = new Decimal(0);
  for (const inWindow of grouped(counted, ({ at_us }) => windowStart(at_us, bucket_size)).values()) {
    for (const inGroup of grouped(inWindow, ({ group }) => group).values())
      total = total.plus(aggregate(meter, inGroup, range));
  }
  return total.toFixed();
}

/** A window is never finer than the meter's own (behaviour §1.9). */
function windowsOf(
  meter: ModelMeter,
  counted: readonly Counted[],
  { from, to, size: asked }: Range & { size: ModelWindow },
) {
  const size = coarser(asked, meter.aggregation.bucket_size ?? asked);
  const windows = [...grouped(counted, ({ at_us }) => windowStart(at_us, size))].sort(([a], [b]) => (a < b ? -1 : 1));
  return windows.map(([start, inside]) => {
    const end = windowEnd(start, size);
    const part = { from: start < from ? from : start, to: end > to ? to : end };
    return { start: instantText(start), value: answer(meter, inside, part), event_count: inside.length };
  });
}

/** What each aggregation computes (behaviour §1.7); over nothing it is 0. */
function aggregate({ aggregation }: ModelMeter, counted: readonly Counted[], { from, to }: Range): Decimal {
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
      return sum(weighted)
        .div(String(to - from))
        .toDecimalPlaces(24);
    }
  }
}

function sum(values: readonly Decimal[]): Decimal {
  return values.reduce((total, value) => total.plus(value), new Decimal(0));
}

/** Of two at one instant the greater id, by its bytes. */
function isLater(a: Counted, b: Counted): boolean {
  if (a.at_us !== b.at_us) return a.at_us > b.at_us;
  return Buffer.compare(Buffer.from(a.event_id), Buffer.from(b.event_id)) > 0;
}

const MINUTE = 60_000_000n;
const DAY = 1440n * MINUTE;
const SIZES: Record<Exclude<ModelWindow, 'WEEK' | 'MONTH'>, bigint> = {
  MINUTE,
  '15MIN': 15n * MINUTE,
  '30MIN': 30n * MINUTE,
  HOUR: 60n * MINUTE,
  '3HOUR': 180n * MINUTE,
  '6HOUR': 360n * MINUTE,
  '12HOUR': 720n * MINUTE,
  DAY,
}; // From the finest to the coarsest.
/** The first Monday after the beginning of the count. */
const MONDAY = 4n * DAY;

function coarser(a: ModelWindow, b: ModelWindow): ModelWindow {
  const order: ModelWindow[] = [...(Object.keys(SIZES) as ModelWindow[]), 'WEEK', 'MONTH'];
  return order.indexOf(a) > order.indexOf(b) ? a : b;
}

function windowStart(at_us: bigint, size: ModelWindow): bigint {
  if (size === 'MONTH') {
    const date = new Date(Number(floored(at_us, 1000n) / 1000n));
    return BigInt(Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)) * 1000n;
  }
  return size === 'WEEK' ? MONDAY + floored(at_us - MONDAY, 7n * DAY) : floored(at_us, SIZES[size]);
}

function windowEnd(start: bigint, size: ModelWindow): bigint {
  if (size === 'WEEK') return start + 7n * DAY;
  return size === 'MONTH' ? windowStart(start + 31n * DAY, 'MONTH') : start + SIZES[size];
}

function floored(value: bigint, step: bigint): bigint {
  const rest = value % step;
  return rest < 0n ? value - rest - step : value - rest;
}

/** What is finer than a microsecond is cut off. */
function microseconds(timestamp: string): bigint {
  const parts = /^(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/.exec(timestamp);
  const whole = Date.parse(`${parts?.[1]}${parts?.[3]}`.toUpperCase());
  if (!parts || Number.isNaN(whole)) throw new Error(`not a timestamp: ${timestamp}`);
  return BigInt(whole) * 1000n + BigInt((parts[2] ?? '').padEnd(6, '0').slice(0, 6));
}

function instantText(at_us: bigint): string {
  const second = new Date(Number(floored(at_us, 1_000_000n) / 1000n)).toISOString().slice(0, 19);
  const fraction = String(at_us - floored(at_us, 1_000_000n))
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${second}${fraction === '' ? '' : `.${fraction}`}Z`;
}

function grouped<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
