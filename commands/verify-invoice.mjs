#!/usr/bin/env node
/**
 * npm run verify-invoice -- proof.json [events.ndjson] [--event event-proof.json]      or: node verify-invoice.mjs …
 *
 * Checks an invoice of Farthing: computes every line from its events and every total from the lines, and names the first digit that
 * differs. docs/proof.md describes the documents. This is the whole program: one file, nothing of the service, no network, no
 * packages; so it can be read, copied, and run by whoever gets an invoice, with Node 20 or newer.
 *
 * Exit codes: 0 all agrees (what had to be taken as stated is printed) · 1 something differs · 2 it could not be checked.
 */
import { hash } from 'node:crypto';
import { createReadStream, readFileSync, realpathSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const FORMAT = 'farthing-invoice-proof-1';

// ---------------------------------------------------------------------------------------------------------------------
// Numbers: fractions of BigInts, always exact. A quantity is kept as an integer, in units of 10^-24.

const PLACES = 24;
const power = (exponent) => 10n ** BigInt(exponent);
const UNIT = power(PLACES);
const abs = (n) => (n < 0n ? -n : n);

/** n / d to the nearest integer, half away from zero. */
function divided(n, d) {
  const sign = n < 0n !== d < 0n ? -1n : 1n;
  return (sign * (2n * abs(n) + abs(d))) / (2n * abs(d));
}

class Fraction {
  constructor(n, d = 1n) {
    this.n = d < 0n ? -n : n;
    this.d = abs(d);
  }
  plus = (other) => new Fraction(this.n * other.d + other.n * this.d, this.d * other.d);
  minus = (other) => this.plus(new Fraction(-other.n, other.d));
  times = (other) => new Fraction(this.n * other.n, this.d * other.d);
  over = (other) => new Fraction(this.n * other.d, this.d * other.n);
  compare = (other) => Number(this.n * other.d > other.n * this.d) - Number(this.n * other.d < other.n * this.d);
  equals = (other) => this.compare(other) === 0;
  isZero = () => this.n === 0n;
  /** Half away from zero, with so many decimals. */
  rounded = (places) => new Fraction(divided(this.n * power(places), this.d), power(places));
}

const ZERO = new Fraction(0n);
const ONE = new Fraction(1n);
const most = (a, b) => (a.compare(b) >= 0 ? a : b);
const least = (a, b) => (a.compare(b) <= 0 ? a : b);
const sumOf = (numbers) => numbers.reduce((sum, one) => sum.plus(one), ZERO);
const quantityOf = (scaled) => new Fraction(scaled, UNIT);

/** Decimal text; what is none is refused, so that nothing is ever a quiet zero. */
function decimal(text, what) {
  const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(String(text));
  if (parts === null) throw new Unreadable(`${what} is ${JSON.stringify(text)}, which is no decimal number`);
  const [, sign, whole, fraction = ''] = parts;
  const n = BigInt(whole + fraction);
  return new Fraction(sign === '-' ? -n : n, power(fraction.length));
}

/** With as many decimals as it has, at most so many. */
function textOf(number, places = 60) {
  const scaled = divided(number.n * power(places), number.d);
  const digits = abs(scaled)
    .toString()
    .padStart(places + 1, '0');
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '');
  const whole = digits.slice(0, digits.length - places);
  return `${scaled < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

class Unreadable extends Error {}
class OutOfOrder extends Error {}

// ---------------------------------------------------------------------------------------------------------------------
// Events: JSON whose numbers keep their text, because a double would round them.

/** Objects are maps, in which the last of two equal keys counts; a number is {number: its text}. */
export function readJson(text) {
  let at = 0;
  const fail = () => {
    throw new Unreadable(`no JSON at character ${at + 1} of ${text.slice(0, 200)}`);
  };
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found === null) return undefined;
    at = pattern.lastIndex;
    return found[0];
  };
  const blanks = () => take(/[ \t\r\n]*/y);
  const sign = (expected) => {
    blanks();
    return text[at] === expected ? ((at += 1), true) : false;
  };
  const string = () => {
    const found = take(/"(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    return found === undefined ? fail() : JSON.parse(found);
  };
  const members = (close, read) => {
    if (sign(close)) return;
    do read();
    while (sign(','));
    if (!sign(close)) fail();
  };
  const value = () => {
    blanks();
    if (sign('{')) {
      const object = new Map();
      members('}', () => {
        blanks();
        const key = string();
        if (!sign(':')) fail();
        object.set(key, value());
      });
      return object;
    }
    if (sign('[')) {
      const array = [];
      members(']', () => array.push(value()));
      return array;
    }
    if (text[at] === '"') return string();
    const word = take(/true|false|null/y);
    if (word !== undefined) return word === 'null' ? null : word === 'true';
    const number = take(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    return number === undefined ? fail() : { number };
  };
  const whole = value();
  blanks();
  return at === text.length ? whole : fail();
}

/** As {number: its text}, or as it is where a double holds it exactly. */
const isNumber = (value) => typeof value === 'number' || typeof value?.number === 'string';
const numberText = (value) => (typeof value === 'number' ? String(value) : value.number);

/** A double keeps 15 digits: only a text that may have a longer number, or an exponent, is read letter by letter. */
function readEvent(text) {
  if (/[0-9.]{16,}|[0-9][eE]/.test(text)) return readJson(text);
  try {
    const event = JSON.parse(text);
    // What is inside of a property is never looked at, and is not to be taken for a number of ours.
    const inner = ([key, value]) => [key, isObject(value) ? new Map() : value];
    const mapped = (object) => (isObject(object) ? new Map(Object.entries(object).map(inner)) : object);
    if (!isObject(event)) return event;
    const parts = { properties: mapped(event.properties), values: mapped(event.values) };
    return new Map(Object.entries({ ...event, ...parts }));
  } catch {
    return readJson(text);
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The quantity that a property is, times 10^24; undefined where it is none. */
export function quantity(property) {
  const text = isNumber(property) ? numberText(property) : property;
  if (typeof text !== 'string' || text.length > 8192) return undefined;
  const parts = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(text.trim());
  if (parts === null) return undefined;
  const [, sign, whole, fraction = '', exponent = '0'] = parts;
  if (whole + fraction === '') return undefined;
  const digits = (whole + fraction).replace(/^0+/, '').replace(/0+$/, '');
  if (digits === '') return 0n;
  const zeros = /0*$/.exec(whole + fraction)[0].length;
  const up = Number(exponent) - fraction.length + zeros;
  if (digits.length + up > 24) return undefined;
  // Finer than 24 places and all of it behind the first digit that counts: nothing.
  if (digits.length + up < -PLACES) return 0n;
  const shift = up + PLACES;
  const scaled = shift >= 0 ? BigInt(digits) * power(shift) : divided(BigInt(digits), power(-shift));
  if (scaled >= power(24 + PLACES)) return undefined;
  return sign === '-' ? -scaled : scaled;
}

const JSON_NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** One text for one number: 1e6, 1000000 and 1000000.0 are the same. */
export function canonical(text) {
  const [, sign, whole, fraction = '', exponent = '0'] = JSON_NUMBER.exec(text);
  const written = (whole + fraction).replace(/^0+/, '');
  const digits = written.replace(/0+$/, '');
  if (digits === '') return '0';
  const up = BigInt(exponent) - BigInt(fraction.length) + BigInt(written.length - digits.length);
  const before = BigInt(digits.length) + up;
  if (before > 40n || up < -40n) return `${sign}${digits}e${up}`;
  if (up >= 0n) return sign + digits + '0'.repeat(Number(up));
  if (before > 0n) return `${sign}${digits.slice(0, Number(before))}.${digits.slice(Number(before))}`;
  return `${sign}0.${'0'.repeat(Number(-before))}${digits}`;
}

/** The text by which values are told apart and grouped; undefined where there is none. */
function identity(property) {
  if (property === true || property === false) return String(property);
  const text = isNumber(property) ? numberText(property) : property;
  if (typeof text !== 'string' || text.length > 1024) return undefined;
  return isNumber(property) ? canonical(text) : text;
}

function passes({ key, values }, properties) {
  const property = properties.get(key);
  if (!isNumber(property)) return ['string', 'boolean'].includes(typeof property) && values.includes(String(property));
  const number = numberText(property).length > 8192 ? undefined : canonical(numberText(property));
  return values.some((value) => JSON_NUMBER.test(value) && canonical(value) === number);
}

const INSTANT = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$/;

/** Microseconds since 1970 of RFC 3339 text; finer digits are cut off. */
export function instant(text) {
  const parts = INSTANT.exec(text ?? '');
  const ms = parts === null ? Number.NaN : Date.parse(`${parts[1]}T${parts[2]}${parts[4].toUpperCase()}`);
  if (Number.isNaN(ms)) throw new Unreadable(`${JSON.stringify(text)} is no instant`);
  return ms * 1000 + Number((parts[3] ?? '').slice(0, 6).padEnd(6, '0'));
}

// ---------------------------------------------------------------------------------------------------------------------
// The tree of RFC 9162, 2.1.

const sha256 = (...parts) => hash('sha256', Buffer.concat(parts), 'buffer');
const LEAF = Buffer.of(0);
const NODE = Buffer.of(1);
const netstring = (text) => `${Buffer.byteLength(text)}:${text},`;
const leafHash = (fields) => sha256(LEAF, Buffer.from(fields.map(netstring).join('')));

class Tree {
  size = 0;
  subtrees = [];
  add(hash) {
    let subtree = { hash, size: 1 };
    this.size += 1;
    while (this.subtrees.at(-1)?.size === subtree.size) {
      const left = this.subtrees.pop();
      subtree = { hash: sha256(NODE, left.hash, subtree.hash), size: left.size * 2 };
    }
    this.subtrees.push(subtree);
  }
  root() {
    const [last, ...others] = this.subtrees.map(({ hash }) => hash).reverse();
    return (last === undefined ? sha256() : others.reduce((right, left) => sha256(NODE, left, right), last)).toString(
      'hex',
    );
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Windows of a meter, by the clock of a time zone. Instants are milliseconds here.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const DAY_MINUTES = 24 * 60;
const SHORT = { MINUTE, '15MIN': 15 * MINUTE, '30MIN': 30 * MINUTE, HOUR };
const LONG = { '3HOUR': 3 * HOUR, '6HOUR': 6 * HOUR, '12HOUR': 12 * HOUR, DAY, WEEK: 7 * DAY };
const MONDAY = 4 * DAY;
const floored = (value, step) => Math.floor(value / step) * step;
const clocks = new Map();

/** What the clock is ahead of UTC. */
function offsetAt(timezone, at) {
  if (timezone === 'UTC') return 0;
  if (!clocks.has(timezone)) {
    const numeric = Object.fromEntries(
      ['year', 'month', 'day', 'hour', 'minute', 'second'].map((part) => [part, 'numeric']),
    );
    clocks.set(timezone, new Intl.DateTimeFormat('en-US', { timeZone: timezone, hourCycle: 'h23', ...numeric }));
  }
  const shown = Object.fromEntries(
    clocks
      .get(timezone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  );
  return Date.UTC(shown.year, shown.month - 1, shown.day, shown.hour, shown.minute, shown.second) - floored(at, 1000);
}

/** Where the clock jumps between two instants, by seconds; Infinity where it does not. */
function jumpBetween(timezone, from, until) {
  const before = offsetAt(timezone, from);
  for (let low = from; low < until; low += HOUR) {
    let high = Math.min(low + HOUR, until);
    if (offsetAt(timezone, high) === before) continue;
    let same = low;
    while (high - same > 1000) {
      const middle = floored((same + high) / 2, 1000);
      if (offsetAt(timezone, middle) === before) same = middle;
      else high = middle;
    }
    return high;
  }
  return Number.POSITIVE_INFINITY;
}

/** The first instant at which the clock shows this time or a later one. */
function firstAt(timezone, wall) {
  let from = wall - 16 * HOUR;
  for (let isFirst = true; ; isFirst = false) {
    const candidate = wall - offsetAt(timezone, from);
    if (!isFirst && candidate < from) return from;
    const jump = jumpBetween(timezone, from, Math.max(candidate, from) + 1000);
    if (candidate < jump) return candidate;
    from = jump;
  }
}

function wallGrid(size, { timezone, anchor }) {
  if (LONG[size] !== undefined) {
    const origin = size === 'WEEK' ? MONDAY : 0;
    return { at: (wall) => floored(wall - origin, LONG[size]) + origin, after: (bound) => bound + LONG[size] };
  }
  if (size !== 'MONTH') throw new Unreadable(`windows of ${size} are not known`);
  const day = new Date(anchor + offsetAt(timezone, anchor)).getUTCDate();
  const month = (wall) => new Date(wall).getUTCFullYear() * 12 + new Date(wall).getUTCMonth();
  const bound = (count) => {
    const last = new Date(Date.UTC(Math.floor(count / 12), (count % 12) + 1, 0)).getUTCDate();
    return Date.UTC(Math.floor(count / 12), count % 12, Math.min(day, last));
  };
  const at = (wall) => (bound(month(wall)) <= wall ? bound(month(wall)) : bound(month(wall) - 1));
  return { at, after: (start) => bound(month(start) + 1) };
}

/** The half-open window that holds an instant. */
export function windowAt(at, size, grid) {
  const { timezone } = grid;
  if (SHORT[size] !== undefined) {
    const offset = offsetAt(timezone, at);
    const start = floored(at + offset, SHORT[size]) - offset;
    const end = start + SHORT[size];
    let from = start;
    if (offsetAt(timezone, start) !== offset) from = jumpBetween(timezone, start, at + 1000);
    return { start: from, end: Math.min(end, jumpBetween(timezone, at, end)) };
  }
  const { at: boundAt, after } = wallGrid(size, grid);
  let bound = boundAt(at + offsetAt(timezone, at));
  let start = firstAt(timezone, bound);
  for (;;) {
    bound = after(bound);
    const end = firstAt(timezone, bound);
    if (end > at) return { start, end };
    start = end;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// From events to a quantity.

/** What a meter makes of the events of one group in one stretch of time. */
class Measure {
  count = 0;
  sum = 0n;
  weighted = 0n;
  greatest = undefined;
  newest = undefined;
  values = new Set();
  add(time, value) {
    this.count += 1;
    if (typeof value === 'string') this.values.add(value);
    else if (value !== null) {
      this.sum += value;
      this.weighted += value * BigInt(time);
      this.newest = value;
      if (this.greatest === undefined || value > this.greatest) this.greatest = value;
    }
  }
  number({ type, multiplier }, start, end) {
    if (type === 'COUNT') return new Fraction(BigInt(this.count));
    if (type === 'COUNT_UNIQUE') return new Fraction(BigInt(this.values.size));
    if (this.count === 0) return ZERO;
    if (type === 'SUM') return quantityOf(this.sum);
    if (type === 'SUM_WITH_MULTIPLIER') return quantityOf(this.sum).times(decimal(multiplier, 'multiplier'));
    if (type === 'AVG') return quantityOf(divided(this.sum, BigInt(this.count)));
    if (type === 'MAX') return quantityOf(this.greatest);
    if (type === 'LATEST') return quantityOf(this.newest);
    if (type === 'WEIGHTED_SUM')
      return quantityOf(divided(this.sum * BigInt(end) - this.weighted, BigInt(end - start)));
    throw new Unreadable(`the aggregation ${type} is not known`);
  }
}

/** The same for a stretch, cut into the meter's own windows and groups where it has them. */
class Stretch {
  windows = new Map();
  current = undefined;
  constructor(counted, start, end) {
    this.aggregation = counted.meter.aggregation;
    this.grid = { timezone: counted.timezone, anchor: Math.floor(instant(counted.billing_anchor) / 1000) };
    this.start = start;
    this.end = end;
  }
  add(time, value, group) {
    if (time < this.start || time >= this.end) return;
    const { bucket_size } = this.aggregation;
    const ms = Math.floor(time / 1000);
    if (bucket_size && !(this.current && ms >= this.current.start && ms < this.current.end))
      this.current = windowAt(ms, bucket_size, this.grid);
    const at = bucket_size ? this.current.start : 0;
    if (!this.windows.has(at)) this.windows.set(at, new Map());
    const groups = this.windows.get(at);
    if (!groups.has(group)) groups.set(group, new Measure());
    groups.get(group).add(time, value);
  }
  /** `windows` in order of time; null of a meter without any. */
  answer() {
    const number = (measure) => measure.number(this.aggregation, this.start, this.end);
    if (!this.aggregation.bucket_size) {
      const [measure = new Measure()] = [...this.windows.values()].flatMap((groups) => [...groups.values()]);
      return { quantity: number(measure), windows: null };
    }
    const windows = [...this.windows].map(([start, groups]) => ({ start, values: [...groups.values()].map(number) }));
    windows.sort((a, b) => a.start - b.start);
    return { quantity: sumOf(windows.flatMap(({ values }) => values)), windows };
  }
}

/** Collects the events of one line, in order of time and id. */
class LineEvents {
  tree = new Tree();
  last = undefined;
  constructor({ line, counted }) {
    this.id = line.id;
    this.counted = counted;
    this.start = instant(counted.window_start);
    this.end = instant(counted.window_end);
    this.whole = new Stretch(counted, this.start, this.end);
    this.customers = new Map(
      counted.customers.map(({ external_customer_id, times }) => [
        external_customer_id,
        times && times.map(({ start, end }) => [instant(start), instant(end)]),
      ]),
    );
    // Limits of free units inside of the window; what reaches back before it cannot be counted from these events.
    this.limits = (line.computed_from.allowances ?? []).map(({ windows }) =>
      windows.map(({ start, end }) =>
        instant(start) < this.start ? null : new Stretch(counted, instant(start), instant(end)),
      ),
    );
  }
  /** What the line takes of an event: {leaf parts}, or in words why it takes nothing. */
  taken(event) {
    const { meter } = this.counted;
    if (event.name !== meter.event_name.trim()) return 'it has another name';
    if (event.time < this.start || event.time >= this.end) return 'it lies outside of the window';
    const times = this.customers.get(event.customer);
    if (times === undefined) return 'it is of another customer';
    if (times && !times.some(([start, end]) => event.time >= start && event.time < end))
      return 'its customer is not counted then';
    if (!meter.filters.every((filter) => passes(filter, event.properties))) return 'a filter refuses it';
    const { type, field, expression, group_by } = meter.aggregation;
    const property = group_by ? event.properties.get(group_by) : null;
    const group = property === undefined || property === null ? '' : identity(property);
    if (group === undefined) return `its ${group_by} is no group`;
    if (type === 'COUNT') return { value: null, text: '', group };
    if (type === 'COUNT_UNIQUE') {
      const text = expression ? event.values.get(this.id) : identity(event.properties.get(field));
      return text === undefined ? `its ${field ?? 'value'} cannot be told apart` : { value: text, text, group };
    }
    const value = quantity(expression ? event.values.get(this.id) : event.properties.get(field));
    return value === undefined
      ? `its ${field ?? 'value'} is no number`
      : { value, text: textOf(quantityOf(value), PLACES), group };
  }
  add(event, { value, text, group }) {
    if (this.last !== undefined) {
      const order = this.last.time - event.time || Buffer.compare(Buffer.from(this.last.id), Buffer.from(event.id));
      if (order > 0) throw new OutOfOrder();
      if (order === 0) return false;
    }
    this.last = event;
    this.tree.add(leafHash([event.id, String(event.time), event.customer, text, group]));
    this.whole.add(event.time, value, group);
    for (const limit of this.limits) for (const stretch of limit) stretch?.add(event.time, value, group);
    return true;
  }
}

function eventOf(text, number) {
  const event = readEvent(text);
  if (!(event instanceof Map)) throw new Unreadable(`line ${number} of the events is no object`);
  const own = (key) => (typeof event.get(key) === 'string' ? event.get(key) : undefined);
  const properties = event.get('properties') ?? new Map();
  if (!own('event_id') || !own('timestamp') || !own('event_name') || !(properties instanceof Map))
    throw new Unreadable(`line ${number} of the events has no event_id, event_name and timestamp`);
  return {
    id: own('event_id'),
    name: own('event_name').trim(),
    customer: own('external_customer_id') ?? '',
    time: instant(own('timestamp')),
    values: event.get('values') instanceof Map ? event.get('values') : new Map(),
    lines: event.get('lines'),
    properties,
  };
}

/** Streams where the events of each line come in order, and sorts them in memory where they do not. */
async function readEvents(usage, events, report) {
  try {
    return await collected(usage, events, report.attempt());
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
  }
  const held = [];
  let number = 0;
  for await (const text of events()) {
    number += 1;
    if (text.trim() === '') continue;
    const { id, time } = eventOf(text, number);
    held.push({ id: Buffer.from(id), time, text });
  }
  held.sort((a, b) => a.time - b.time || Buffer.compare(a.id, b.id));
  return collected(usage, () => held.map(({ text }) => text), report.attempt());
}

async function collected(usage, events, report) {
  const byLine = new Map(usage.map((entry) => [entry.line.id, new LineEvents(entry)]));
  let number = 0;
  for await (const text of events()) {
    number += 1;
    if (text.trim() === '') continue;
    const event = eventOf(text, number);
    // Who brings own records does not know which line counts which of them: the rules say it.
    for (const id of event.lines ?? byLine.keys()) {
      const line = byLine.get(id);
      if (line === undefined) {
        report.differs('events', `event ${event.id}`, `counted by line ${id}`, 'no such line of usage on the invoice');
        continue;
      }
      const taken = line.taken(event);
      if (typeof taken === 'string') {
        if (event.lines) report.differs(id, `event ${event.id}`, 'counted', `not counted: ${taken}`);
      } else if (!line.add(event, taken) && event.lines) report.differs(id, `event ${event.id}`, 'there twice', 'once');
    }
  }
  return byLine;
}

// ---------------------------------------------------------------------------------------------------------------------
// From a quantity to an amount.

const open = ({ up_to }) => up_to === null || up_to === undefined;

/** What took how much; a quantity of 0 costs nothing. */
function chargeParts(price, units) {
  if (units.isZero()) return [];
  const part = (tier, count, { unit_amount, flat_amount }) => {
    const [unit, flat] = [decimal(unit_amount, 'a unit amount'), decimal(flat_amount ?? '0', 'a flat amount')];
    return { tier, units: count, unit_amount: unit, flat_amount: flat, amount: count.times(unit).plus(flat) };
  };
  if (price.billing_model === 'FLAT_FEE') return [part(null, units, { unit_amount: price.amount })];
  if (price.billing_model === 'PACKAGE') {
    const { divide_by, round } = price.transform_quantity;
    const size = units.d * BigInt(divide_by);
    const packages = round === 'down' ? units.n / size : (units.n + size - 1n) / size;
    return packages === 0n ? [] : [part(null, new Fraction(packages), { unit_amount: price.amount })];
  }
  if (price.billing_model !== 'TIERED') throw new Unreadable(`the price model ${price.billing_model} is not known`);
  const bound = (tier) => decimal(tier.up_to, 'a tier');
  const tiers = [...price.tiers].sort((a, b) => (open(a) || open(b) ? open(a) - open(b) : bound(a).compare(bound(b))));
  if (price.tier_mode === 'VOLUME') {
    const found = tiers.findIndex((tier) => open(tier) || units.compare(bound(tier)) <= 0);
    const index = found < 0 ? tiers.length - 1 : found;
    return [part(index, units, tiers[index])];
  }
  const parts = [];
  let filled = ZERO;
  for (const [index, tier] of tiers.entries()) {
    const until = open(tier) ? units : least(units, bound(tier));
    parts.push(part(index, until.minus(filled), tier));
    filled = until;
    if (filled.equals(units)) return parts;
  }
  throw new Unreadable('the last tier of a price is not open');
}

const amountOf = (parts) => sumOf(parts.map(({ amount }) => amount));

/** Parts of many windows, by tier. */
function addedUp(parts) {
  const byTier = new Map();
  for (const part of parts) {
    const before = byTier.get(part.tier);
    if (before === undefined) byTier.set(part.tier, { ...part });
    else for (const field of ['units', 'flat_amount', 'amount']) before[field] = before[field].plus(part[field]);
  }
  return [...byTier.values()].sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0));
}

/** What entitlements leave to be charged: in each reset period the first units up to the limit are free. */
function billable({ quantity: measured, windows }, allowances) {
  const used = most(measured, ZERO);
  if (allowances.length === 0) return { units: used, windows, free: null };
  const limitOf = (allowance, window) => decimal(window.limit ?? allowance.limit, 'a limit');
  if (windows === null) {
    const above = allowances.map((allowance) =>
      allowance.limit === null
        ? ZERO
        : sumOf(
            allowance.windows.map((window) => {
              const over = (count) => most(ZERO, decimal(count, 'what was used').minus(limitOf(allowance, window)));
              return over(window.after).minus(over(window.before));
            }),
          ),
    );
    const units = least(used, above.reduce(most, ZERO));
    return { units, windows, free: used.minus(units) };
  }
  const rooms = allowances.map((allowance) =>
    allowance.limit === null
      ? null
      : allowance.windows.map((window) => ({
          start: instant(window.start) / 1000,
          left: most(ZERO, limitOf(allowance, window).minus(most(ZERO, decimal(window.before, 'what was used')))),
        })),
  );
  const left = windows.map(({ start, values }) => ({
    start,
    values: values.map((value) => {
      const wanted = most(value, ZERO);
      const free = rooms.map((room) => {
        if (room === null) return wanted;
        const place = room.findLast((one) => one.start <= start) ?? room[0];
        if (place === undefined) return ZERO;
        const taken = least(place.left, wanted);
        place.left = place.left.minus(taken);
        return taken;
      });
      return value.minus(free.reduce(least));
    }),
  }));
  const units = sumOf(left.flatMap(({ values }) => values));
  return { units, windows: left, free: used.minus(units) };
}

/** Usage costs what it costs up to the committed amount; what is above so many times as much; what lacks is charged. */
function committed(base, { amount, factor, trueUp }) {
  const above = most(ZERO, base.minus(amount));
  const parts = {
    utilized: base.minus(above),
    overage: above.times(factor),
    lacking: trueUp ? most(ZERO, amount.minus(base)) : ZERO,
  };
  return { ...parts, charge: sumOf(Object.values(parts)) };
}

// ---------------------------------------------------------------------------------------------------------------------
// Lines and totals.

// ISO 4217 gives these currencies other than two decimals.
const DECIMALS = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
function minorUnits(currency) {
  const found = Object.entries(DECIMALS).find(([, codes]) => codes.split(' ').includes(currency.toUpperCase()));
  return found === undefined ? 2 : Number(found[0]);
}

/** Which digit of two numbers is the first that differs, in words. */
export function firstDifference(stated, computed) {
  const shape = (text) => /^(-?)([0-9]*)(?:\.([0-9]*))?$/.exec(text);
  const [a, b] = [shape(stated), shape(computed)];
  if (a === null || b === null) return '';
  if (a[1] !== b[1]) return 'the sign differs';
  const whole = Math.max(a[2].length, b[2].length);
  const places = Math.max(a[3]?.length ?? 0, b[3]?.length ?? 0);
  const digits = (parts) => parts[2].padStart(whole, '0') + (parts[3] ?? '').padEnd(places, '0');
  const at = [...digits(a)].findIndex((digit, index) => digit !== digits(b)[index]);
  if (at < 0) return '';
  const where = at < whole ? `digit ${at + 1} of ${whole} before the point` : `decimal place ${at - whole + 1}`;
  return `first at ${where}: ${digits(a)[at]}, not ${digits(b)[at]}`;
}

class Report {
  differences = [];
  stated = [];
  #tried = 0;
  differs(line, field, stated, computed) {
    const digit = firstDifference(String(stated), String(computed));
    this.differences.push({ line, field, stated: String(stated), computed: String(computed), digit });
  }
  takes(line, what) {
    this.stated.push({ line, what });
  }
  same(line, field, stated, computed) {
    if (String(stated) !== String(computed)) this.differs(line, field, stated, computed);
  }
  /** A stated decimal; a missing one is a difference, too. */
  number(line, field, stated, computed) {
    if (stated === null || stated === undefined) this.differs(line, field, 'nothing', textOf(computed));
    else if (!decimal(stated, `${line}: ${field}`).equals(computed))
      this.differs(line, field, stated, textOf(computed));
  }
  /** What was found while events were read in a wrong order is forgotten. */
  attempt() {
    if (this.#tried++ > 0) this.differences.length = 0;
    return this;
  }
}

/** Checks one line; `measured` is what its events come to, undefined where none were given. */
class LineCheck {
  constructor(entry, { invoice, places, measured, report }) {
    Object.assign(this, { entry, invoice, places, measured, report, line: entry.line, from: entry.line.computed_from });
    this.amount = decimal(this.line.amount, `${this.line.id}: amount`);
    this.reason = this.from?.reason ?? '';
  }
  takes = (what) => this.report.takes(this.line.id, what);
  number = (field, stated, computed) => this.report.number(this.line.id, field, stated, computed);
  money = (amount) => amount.rounded(this.places);

  run() {
    const { line, invoice, report } = this;
    report.same(line.id, 'invoice_id', line.invoice_id, invoice.id);
    report.same(line.id, 'currency', line.currency, invoice.currency);
    this.number('amount', line.amount, this.money(this.amount));
    if (!this.from) return this.takes('all of it: it was written by hand');
    if (this.from.edited) this.asComputed();
    if (this.from.price)
      report.same(line.id, 'computed_from.price.currency', this.from.price.currency, invoice.currency);
    if (this.reason.startsWith('true_up: ')) return this.trueUp();
    if (!this.from.price) return this.takes('all of it: it says no price');
    return this.from.meter_id ? this.usage() : this.fixed();
  }

  /** What somebody has changed by hand is said; what it was computed as before that is computed again. */
  asComputed() {
    const { line, from } = this;
    const { amount, quantity } = from.edited;
    this.takes(
      `${line.amount} for ${line.quantity}, as it was edited by hand: computed were ${amount} for ${quantity}`,
    );
    this.line = { ...line, amount, quantity, price_unit_amount: null };
    this.amount = decimal(amount, `${line.id}: computed_from.edited.amount`);
    this.entry = { ...this.entry, price_unit: null };
  }

  breakdown(parts) {
    const stated = this.from.breakdown ?? [];
    this.report.same(this.line.id, 'computed_from.breakdown: parts', stated.length, parts.length);
    for (const [index, part] of parts.entries()) {
      if (stated[index] === undefined) return;
      const field = (name) => `computed_from.breakdown[${index}].${name}`;
      this.report.same(this.line.id, field('tier'), stated[index].tier, part.tier);
      for (const name of ['units', 'unit_amount', 'flat_amount', 'amount'])
        this.number(field(name), stated[index][name], part[name]);
    }
  }

  fixed() {
    const { line, from } = this;
    const units = decimal(from.quantity, `${line.id}: quantity`);
    this.number('quantity', line.quantity, units);
    const parts = chargeParts(from.price, units);
    this.breakdown(parts);
    const { share, before } = this.share();
    const charge = amountOf(parts);
    const exact = charge.times(share);
    const expected = this.money(charge.times(share.plus(before))).minus(this.money(charge.times(before)));
    if (this.reason.startsWith('unused_time: ')) {
      const cent = new Fraction(1n, power(this.places));
      if (most(ZERO.minus(this.amount), ZERO).compare(expected.plus(cent)) > 0 || this.amount.compare(ZERO) > 0)
        this.number('amount', line.amount, ZERO.minus(expected));
      this.takes(
        `${line.amount}: unused time of at most ${textOf(expected)}, limited by what other invoices have billed`,
      );
    } else if (this.reason.startsWith('resumed: '))
      this.takes(`${line.amount}: what other invoices have not billed of the period`);
    else this.number('amount', line.amount, expected);
    this.priceUnit(exact);
  }

  share() {
    const { line, from } = this;
    if (!from.proration && !from.share) return { share: ONE, before: ZERO };
    if (!from.share) {
      this.takes(`its share ${from.proration}, rounded to 18 decimals`);
      return { share: decimal(from.proration, `${line.id}: proration`), before: ZERO };
    }
    const { part_ms, whole_ms, before_ms } = from.share;
    const share = new Fraction(BigInt(part_ms), BigInt(whole_ms));
    this.number('computed_from.proration', from.proration, share.rounded(18));
    if (this.reason === '')
      this.report.same(
        line.id,
        'computed_from.share.part_ms',
        part_ms,
        (instant(line.period_end) - instant(line.period_start)) / 1000,
      );
    this.takes(`the length of its whole period, ${whole_ms} ms`);
    if (before_ms) this.takes(`that ${before_ms} ms of it lie before`);
    return { share, before: new Fraction(BigInt(before_ms ?? 0), BigInt(whole_ms)) };
  }

  usage() {
    const { line, from, entry } = this;
    if (entry.not_sealed)
      this.report.differs(line.id, 'events', 'the line', `not what its events come to: ${entry.not_sealed}`);
    const measured = this.measure();
    const left = billable(measured, from.allowances ?? []);
    const priced = this.priced(left);
    if (priced === undefined) return;
    const { base, charge } = priced;
    const whole = this.money(charge);
    const isSplit = from.drawn_from === 'subscription';
    if (line.parent_line_item_id && from.billed_before) this.correction(whole, left);
    else if (this.reason.startsWith('threshold_surplus: '))
      this.takes(`${line.amount}: what was invoiced too much before the period was over`);
    else if (isSplit) this.shared(whole);
    else {
      const less = /less (-?[0-9.]+) that was invoiced before the period was over$/.exec(this.reason);
      if (less === null) {
        this.number('amount', line.amount, whole);
        this.number('quantity', line.quantity, most(ZERO, left.units).rounded(18));
      } else {
        this.number('amount', textOf(this.amount.plus(decimal(less[1], 'an amount'))), whole);
        this.takes(`${less[1]}, which other invoices have billed before the period was over`);
      }
      if (left.free !== null)
        this.number('adjusted_entitlement_quantity', line.adjusted_entitlement_quantity, left.free);
      if (line.commitment_info) this.number('computed_from.base_amount', from.base_amount, base);
      else if (less !== null) this.number('computed_from.base_amount', from.base_amount, whole);
    }
    this.priceUnit(charge);
  }

  /** The quantity: from the events, or as it is stated where none were given. */
  measure() {
    const { line, from, entry, measured } = this;
    const stated = { quantity: decimal(from.quantity, `${line.id}: computed_from.quantity`), windows: null };
    if (entry.counted === null) {
      this.takes('its quantity: the document does not say what was counted');
      return stated;
    }
    if (measured === undefined) {
      this.takes(`its quantity of ${from.quantity}: no events were given`);
      return stated;
    }
    const { tree, whole, limits } = measured;
    if (entry.seal) {
      this.report.same(line.id, 'seal.event_count', entry.seal.event_count, tree.size);
      this.report.same(line.id, 'seal.root', entry.seal.root, tree.root());
    }
    if (!line.parent_line_item_id) this.report.same(line.id, 'computed_from.event_count', from.event_count, tree.size);
    if (entry.counted.meter.aggregation.expression)
      this.takes('what the expression of the meter makes of each event, which the tree holds');
    const answer = whole.answer();
    this.number('computed_from.quantity', from.quantity, answer.quantity);
    for (const [index, allowance] of (from.allowances ?? []).entries())
      for (const [at, window] of allowance.windows.entries())
        this.limit(window, limits[index][at], `computed_from.allowances[${index}].windows[${at}]`);
    return answer;
  }

  limit(window, stretch, field) {
    if (stretch === null)
      return this.takes(
        `what was used of a limit before the line began: ${window.before}, and until its end ${window.after}`,
      );
    this.number(`${field}.before`, window.before, ZERO);
    this.number(`${field}.after`, window.after, stretch.answer().quantity);
  }

  /** What the quantity costs, before and after a commitment of the line; undefined where that cannot be computed. */
  priced(left) {
    const { line, from, entry } = this;
    const { price } = from;
    const isWindowed = Boolean(entry.counted?.meter.aggregation.bucket_size);
    const info = from.drawn_from === 'subscription' ? null : line.commitment_info;
    if (isWindowed && left.windows !== null && info?.is_windowed && from.window_terms) return this.byWindow(left, info);
    const hasTimes = (from.breakdown ?? []).some((part) => part.time_bucket);
    if ((isWindowed && left.windows === null) || hasTimes || info?.is_windowed) {
      this.takes(
        hasTimes || info?.is_windowed
          ? `${line.amount}: a commitment of windows or times of day`
          : `${line.amount}: what the windows of the meter hold, because no events were given`,
      );
      return undefined;
    }
    const values = isWindowed ? left.windows.flatMap(({ values }) => values) : [left.units];
    const parts = values.flatMap((value) => chargeParts(price, most(value, ZERO)));
    const shown = isWindowed ? addedUp(parts) : parts;
    if (from.breakdown) this.breakdown(shown);
    const base = amountOf(parts);
    if (!info) return { base, charge: base };
    return { base, charge: this.committed(base, info) };
  }

  /** Each window, or the part of it that is charged, has the commitment; one that begins in a time of day has that of the time. */
  byWindow({ windows }, info) {
    const { from, entry } = this;
    const { timezone, billing_anchor, meter } = entry.counted;
    const grid = { timezone, anchor: Math.floor(instant(billing_anchor) / 1000) };
    const size = meter.aggregation.bucket_size;
    const [start, end] = [instant(from.window_start) / 1000, instant(from.window_end) / 1000];
    const windowOf = (at) => windowAt(Math.max(at, start), size, grid);
    const byTime = new Map();
    const totals = { utilized: ZERO, overage: ZERO, lacking: ZERO, charge: ZERO };
    const charge = (window, values) => {
      const { id, price, amount, factor, trueUp } = this.termsAt(window.start, timezone, info);
      const parts = values.flatMap((value) => chargeParts(price, most(value, ZERO)));
      if (values.length > 0) byTime.set(id, [...(byTime.get(id) ?? []), ...parts]);
      const usage = amountOf(parts);
      if (amount === null) return void (totals.charge = totals.charge.plus(usage));
      const held = Math.min(window.end, end) - Math.max(window.start, start);
      const share = new Fraction(BigInt(held), BigInt(window.end - window.start));
      const one = committed(usage, { amount: amount.times(share), factor, trueUp });
      for (const name of Object.keys(totals)) totals[name] = totals[name].plus(one[name]);
    };
    const seen = new Set();
    for (const { start: at, values } of windows) {
      const window = windowOf(at);
      seen.add(window.start);
      charge(window, values);
    }
    // What is lacking is charged of windows without usage, too, as soon as they are over.
    const until = Math.min(end, instant(from.as_of) / 1000);
    for (let at = start; at < until; ) {
      const window = windowOf(at);
      const isOver = Math.min(window.end, end) <= until;
      if (isOver && !seen.has(window.start) && this.termsAt(window.start, timezone, info).trueUp) charge(window, []);
      at = window.end;
    }
    this.takes('the commitment of each window, with its times of day');
    if (from.breakdown) this.breakdown([...byTime.values()].flatMap(addedUp));
    for (const [field, name] of [
      ['computed_commitment_utilized_amount', 'utilized'],
      ['computed_overage_amount', 'overage'],
      ['computed_true_up_amount', 'lacking'],
    ])
      this.number(`commitment_info.${field}`, info[field], this.money(totals[name]));
    return { base: amountOf([...byTime.values()].flat()), charge: totals.charge };
  }

  /** What holds in the window that begins then. */
  termsAt(at, timezone, info) {
    const { price, window_terms } = this.from;
    const minutes = ({ hour, minute }) => hour * 60 + minute;
    const now = Math.floor((at + offsetAt(timezone, at)) / MINUTE) % DAY_MINUTES;
    const found = window_terms.time_buckets.find((bucket) => {
      const [from, to] = [minutes(bucket.start), minutes(bucket.end)];
      const until = to > from ? to : to + DAY_MINUTES;
      return (from <= now && now < until) || (from <= now + DAY_MINUTES && now + DAY_MINUTES < until);
    });
    if (found === undefined) {
      const amount = window_terms.amount === null ? null : decimal(window_terms.amount, 'a commitment');
      const trueUp = amount !== null && info.true_up_enabled;
      return { id: null, price, amount, factor: decimal(info.overage_factor ?? '1', 'a factor'), trueUp };
    }
    const own = found.price ?? price;
    const value = decimal(found.commitment_value, 'a commitment');
    const amount = found.commitment_type === 'quantity' ? amountOf(chargeParts(own, value)) : value;
    const factor = decimal(found.overage_factor ?? '1', 'a factor');
    return { id: found.id, price: own, amount, factor, trueUp: found.true_up_enabled };
  }

  committed(base, info) {
    const { line } = this;
    const amount = decimal(info.amount, `${line.id}: commitment_info.amount`);
    const factor = decimal(info.overage_factor ?? '1', `${line.id}: commitment_info.overage_factor`);
    if (info.duration) {
      this.takes(`what was drawn of its commitment of ${info.amount} in earlier periods of the term`);
      const stated = ['utilized', 'overage', 'true_up'].map((part) =>
        decimal(info[part === 'utilized' ? 'computed_commitment_utilized_amount' : `computed_${part}_amount`], part),
      );
      return sumOf(stated);
    }
    const trueUp = info.true_up_enabled && this.invoice.billing_reason !== 'THRESHOLD_BILLING';
    const computed = committed(base, { amount, factor, trueUp });
    this.takes(`the commitment of its period, ${info.amount}`);
    this.number(
      'commitment_info.computed_commitment_utilized_amount',
      info.computed_commitment_utilized_amount,
      this.money(computed.utilized),
    );
    this.number('commitment_info.computed_overage_amount', info.computed_overage_amount, this.money(computed.overage));
    this.number('commitment_info.computed_true_up_amount', info.computed_true_up_amount, this.money(computed.lacking));
    return computed.charge;
  }

  /** Under the commitment of the subscription: a line for what lies within, and one beside it for what is above. */
  shared(whole) {
    const { line, from } = this;
    const info = line.commitment_info;
    const isAbove = this.reason.startsWith('overage: ');
    const isLess = this.reason.includes('less ');
    this.number('computed_from.base_amount', from.base_amount, isAbove ? ZERO : whole);
    this.takes('how much of the commitment of the subscription was left for it');
    if (isLess || !info) return;
    const field = isAbove ? 'computed_overage_amount' : 'computed_commitment_utilized_amount';
    this.number('amount', line.amount, decimal(info[field], `${line.id}: commitment_info.${field}`));
  }

  /** What the charge costs now, less what was billed for it before. */
  correction(whole, left) {
    const { line, from } = this;
    const before = decimal(from.billed_before.amount, `${line.id}: billed before`);
    const difference = whole.minus(before);
    this.takes(`${from.billed_before.amount}, which other invoices have billed for the charge`);
    if (from.base_amount !== undefined && from.base_amount !== null)
      return this.takes(`${line.amount}: what the commitment makes of the difference`);
    const isPart =
      difference.compare(ZERO) < 0 && this.amount.compare(difference) > 0 && this.amount.compare(ZERO) <= 0;
    if (isPart) return this.takes(`${line.amount}: as much of ${textOf(difference)} as the invoice had room for`);
    this.number('amount', line.amount, difference);
    const units = most(ZERO, left.units).rounded(18).minus(decimal(from.billed_before.quantity, 'units billed before'));
    this.number('quantity', line.quantity, units);
  }

  trueUp() {
    const { line, from } = this;
    const [, used, amount] = /^true_up: (-?[0-9.]+) of (-?[0-9.]+) were used$/.exec(this.reason) ?? [];
    if (used === undefined) return this.takes('all of it: what was lacking to a commitment');
    const lacking = most(ZERO, this.money(decimal(amount, 'a commitment')).minus(decimal(used, 'what was used')));
    this.number('amount', line.amount, this.money(lacking));
    this.number('computed_from.base_amount', from.base_amount, decimal(used, 'what was used'));
    if (line.commitment_info)
      this.number(
        'commitment_info.computed_true_up_amount',
        line.commitment_info.computed_true_up_amount,
        this.money(lacking),
      );
    this.takes(`that ${used} of ${amount} were used in the term`);
  }

  priceUnit(exact) {
    const { line, entry } = this;
    if (!entry.price_unit) return;
    const rate = decimal(entry.price_unit.conversion_rate, `${line.id}: conversion rate`);
    const stated = decimal(line.price_unit_amount, `${line.id}: price_unit_amount`);
    const from = this.money(exact).equals(this.amount) ? [exact, this.amount] : [this.amount];
    const [first, ...others] = from.map((amount) => amount.over(rate).rounded(18));
    if (!others.some((one) => one.equals(stated))) this.number('price_unit_amount', line.price_unit_amount, first);
  }
}

/** What is above the commitment of a subscription costs so many times as much, over all its lines. */
function checkOverage(lines, places, report) {
  const shared = lines.map(({ line }) => line).filter((line) => line.computed_from?.drawn_from === 'subscription');
  if (shared.length === 0 || shared.some((line) => line.computed_from.reason?.includes('less '))) return;
  const isAbove = (line) => line.computed_from.reason?.startsWith('overage: ') ?? false;
  const first = shared.filter((line) => !isAbove(line));
  const above = sumOf(
    first.map((line) => decimal(line.computed_from.base_amount, 'a base').minus(decimal(line.amount, 'an amount'))),
  );
  const factor = decimal(shared[0].commitment_info?.overage_factor ?? '1', 'a factor');
  const overage = sumOf(shared.filter(isAbove).map((line) => decimal(line.amount, 'an amount')));
  const periods = new Set(shared.map(({ period_start, period_end }) => `${period_start}/${period_end}`));
  if (periods.size === 1)
    report.number('invoice', 'overage of the commitment', textOf(overage), above.times(factor).rounded(places));
  else report.takes('invoice', 'the overage of the commitment, which is of several periods');
}

/** In whole minor units: each share rounded down, the units that are left to the largest remainders, of equal ones to the last. */
function spread(amount, weights, places) {
  const whole = sumOf(weights);
  if (amount.isZero() || whole.isZero()) return weights.map(() => ZERO);
  const unit = new Fraction(1n, power(places));
  const shares = weights.map((weight, index) => {
    const exact = amount.times(weight).over(whole);
    const part = new Fraction((exact.n * power(places)) / exact.d, power(places));
    return { index, part, remainder: exact.minus(part) };
  });
  const parts = shares.map(({ part }) => part);
  let left = amount.minus(sumOf(parts));
  for (const { index } of shares.sort((a, b) => b.remainder.compare(a.remainder) || b.index - a.index)) {
    if (left.compare(ZERO) <= 0) break;
    parts[index] = parts[index].plus(unit);
    left = left.minus(unit);
  }
  return parts;
}

/** What gives back what other lines charged takes its discounts and its tax with it, as those lines had them. */
const givesBack = ({ line }) => decimal(line.amount, `${line.id}: amount`).compare(ZERO) < 0;

/** First the coupons of lines, then those of the invoice, each by what the ones before it left, as the document orders them. */
function checkCoupons({ invoice, lines, coupons, minor_units: places }, report) {
  const taken = new Map(lines.filter((entry) => !givesBack(entry)).map(({ line }) => [line.id, takenOff(line)]));
  const rooms = new Map();
  let isSpread = true;
  for (const [index, coupon] of coupons.entries()) {
    const { terms, line_id, coupon_association_id } = coupon;
    const name = `coupons[${index}] (${terms?.name ?? coupon.coupon_id})`;
    const stated = decimal(coupon.discounted_amount, `${name}: discounted_amount`);
    const price = decimal(coupon.original_price, `${name}: original_price`);
    const isFixed = terms?.type === 'fixed';
    if (!terms || (isFixed && invoice.billing_reason === 'SUBSCRIPTION_UPDATE')) {
      report.takes('invoice', `${coupon.discounted_amount}, which ${name} takes off`);
      isSpread &&= line_id !== null;
      if (taken.has(line_id)) taken.get(line_id).own = taken.get(line_id).own.plus(stated);
      continue;
    }
    const one = line_id === null ? null : taken.get(line_id);
    if (one === undefined) {
      report.differs('invoice', `${name}: line`, line_id, 'a line that charges something');
      continue;
    }
    const lefts = one === null ? [...taken.values()].map(leftOf) : [leftOf(one)];
    // One amount for all lines of what a subscription has the coupon for.
    const key = coupon_association_id ?? `${coupon.coupon_id}/${line_id}`;
    const room = isFixed ? (rooms.get(key) ?? decimal(terms.amount_off, `${name}: amount_off`)) : price;
    const off = isFixed ? room : price.times(decimal(terms.percentage_off, `${name}: percentage_off`)).over(HUNDRED);
    const expected = [off.rounded(places), room, price, sumOf(lefts)].reduce(least);
    report.number('invoice', `${name}: discounted_amount`, coupon.discounted_amount, expected);
    rooms.set(key, room.minus(expected));
    if (one !== null) {
      report.number('invoice', `${name}: original_price`, coupon.original_price, one.amount);
      one.own = one.own.plus(expected);
      continue;
    }
    // It may work on what is charged at some time only: then the document does not say on which lines.
    isSpread &&= price.equals(sumOf(lefts));
    if (!isSpread) continue;
    const parts = spread(expected, lefts, places);
    for (const [at, line] of [...taken.values()].entries()) line.ofInvoice = line.ofInvoice.plus(parts[at]);
  }
  const over = (field) => sumOf([...taken.values()].map((one) => one[field]));
  for (const { line, own, ofInvoice } of taken.values()) {
    report.number(line.id, 'line_item_discount', line.line_item_discount, own);
    if (isSpread) report.number(line.id, 'invoice_level_discount', line.invoice_level_discount, ofInvoice);
  }
  if (!isSpread) {
    const stated = sumOf([...taken.values()].map(({ line }) => decimal(line.invoice_level_discount, 'a discount')));
    const ofInvoice = coupons.filter(({ line_id }) => line_id === null);
    const expected = sumOf(ofInvoice.map((one) => decimal(one.discounted_amount, 'a discount')));
    report.number('invoice', 'invoice_level_discount of all lines', textOf(stated), expected);
    report.takes('invoice', `${textOf(expected)}, which coupons take off the invoice: on which lines they worked`);
  } else if (coupons.length > 0)
    report.takes('invoice', `that ${textOf(over('own').plus(over('ofInvoice')))} is what these coupons agree on`);
  takesGivenBack(lines, 'discount', report);
}

const HUNDRED = new Fraction(100n);
const takenOff = (line) => ({ line, amount: decimal(line.amount, 'an amount'), own: ZERO, ofInvoice: ZERO });
const leftOf = ({ amount, own, ofInvoice }) => amount.minus(own).minus(ofInvoice);

function takesGivenBack(lines, what, report) {
  const fields =
    what === 'tax' ? ['tax_amount', 'included_tax_amount'] : ['line_item_discount', 'invoice_level_discount'];
  for (const { line } of lines.filter(givesBack)) {
    const amount = sumOf(fields.map((field) => decimal(line[field] ?? '0', `${line.id}: ${field}`)));
    if (!amount.isZero()) report.takes(line.id, `${textOf(amount)} of ${what} that goes with what it gives back`);
  }
}

/** What discounts and credits leave is taxed, rate by rate; what each comes to is spread over the lines. */
function checkTaxes({ lines, taxes, minor_units: places }, report) {
  const number = (line, field) => decimal(line[field] ?? '0', `${line.id}: ${field}`);
  const net = ({ line }, fields) =>
    fields.reduce((left, field) => left.minus(number(line, field)), number(line, 'amount'));
  const discounts = ['line_item_discount', 'invoice_level_discount'];
  const amountsLess = (fields) => lines.map((entry) => (givesBack(entry) ? ZERO : net(entry, fields)));
  const rates = taxes.filter(({ is_given_back }) => !is_given_back);
  const hasCredits = lines.some(({ line }) => !number(line, 'prepaid_credits_applied').isZero());
  const afterCredits = amountsLess([...discounts, 'prepaid_credits_applied']);
  let computed = taxed(afterCredits, rates, places);
  const isStated = () => rates.every((rate, index) => decimal(rate.tax_amount, 'a tax').equals(computed[index].tax));
  // A setting says whether credits are taxed when they are spent.
  if (hasCredits && !isStated()) computed = taxed(amountsLess(discounts), rates, places);
  const weights = (hasCredits && !isStated() ? amountsLess(discounts) : afterCredits).map((one) => most(ZERO, one));
  const shares = computed.map(({ tax }) => spread(tax, weights, places));
  for (const [index, rate] of rates.entries()) {
    const field = (name) => `taxes[${index}] (${rate.name}): ${name}`;
    report.number('invoice', field('taxable_amount'), rate.taxable_amount, computed[index].base);
    report.number('invoice', field('tax_amount'), rate.tax_amount, computed[index].tax);
  }
  for (const [at, entry] of lines.entries()) {
    const { line } = entry;
    for (const [field, behavior] of [
      ['tax_amount', 'exclusive'],
      ['included_tax_amount', 'inclusive'],
    ]) {
      const own = (line.taxes ?? []).filter(({ tax_behavior }) => tax_behavior === behavior);
      const byRate = sumOf(own.map((one) => decimal(one.tax_amount, `${line.id}: a tax`)));
      if (line[field] !== undefined) report.number(line.id, field, line[field], byRate);
    }
    if (givesBack(entry)) continue;
    for (const [index, rate] of rates.entries()) {
      const own = (line.taxes ?? []).filter(({ tax_rate_id }) => tax_rate_id === rate.tax_rate_id);
      const stated = sumOf(own.map((one) => decimal(one.tax_amount, `${line.id}: a tax`)));
      report.number(line.id, `tax of ${rate.name}`, textOf(stated), shares[index][at]);
    }
  }
  for (const { name, tax_rate_type, percentage_value, fixed_value, tax_behavior } of rates)
    report.takes(
      'invoice',
      `that it is taxed with ${name}: ${tax_rate_type === 'fixed' ? fixed_value : `${percentage_value} %`}, ${tax_behavior}`,
    );
  takesGivenBack(lines, 'tax', report);
}

function taxed(amounts, rates, places) {
  const base = most(ZERO, sumOf(amounts));
  const value = (rate) =>
    decimal(rate.tax_rate_type === 'fixed' ? rate.fixed_value : rate.percentage_value, `${rate.name}: its value`);
  const taxOn = (of, rate) => {
    if (of.isZero()) return ZERO;
    return (rate.tax_rate_type === 'fixed' ? value(rate) : of.times(value(rate)).over(HUNDRED)).rounded(places);
  };
  const inclusive = rates.filter(({ tax_behavior }) => tax_behavior === 'inclusive');
  const summed = (type) => sumOf(inclusive.filter(({ tax_rate_type }) => tax_rate_type === type).map(value));
  // Amounts that hold taxes: each rate is of what is left without all of them.
  const inside = most(ZERO, base.minus(summed('fixed')))
    .times(HUNDRED)
    .over(summed('percentage').plus(HUNDRED));
  let left = base;
  const contained = new Map();
  for (const rate of inclusive) {
    contained.set(rate, least(left, taxOn(rate.tax_rate_type === 'fixed' ? base : inside, rate)));
    left = left.minus(contained.get(rate));
  }
  return rates.map((rate) => ({ base: left, tax: contained.get(rate) ?? taxOn(left, rate) }));
}

/** Of which the document says the terms, so that it is computed and not only added up. */
const COMPUTED_BY = { total_discount: ({ coupons }) => coupons, total_tax: ({ taxes }) => taxes };

function checkTotals(proof, report) {
  const { invoice, lines, minor_units } = proof;
  const own = (field) => decimal(invoice[field], `invoice: ${field}`);
  const over = (field) => sumOf(lines.map(({ line }) => decimal(line[field] ?? '0', `${line.id}: ${field}`)));
  report.same('invoice', 'minor_units', minor_units, minorUnits(invoice.currency));
  report.number('invoice', 'subtotal', invoice.subtotal, over('amount'));
  const discounts = over('line_item_discount').plus(over('invoice_level_discount'));
  for (const [field, spread] of [
    ['total_discount', discounts],
    ['total_prepaid_credits_applied', over('prepaid_credits_applied')],
    ['total_tax', lines.some(({ line }) => line.tax_amount) ? over('tax_amount') : null],
  ]) {
    if (spread !== null && !(spread.isZero() && lines.length === 0))
      report.number('invoice', field, invoice[field], spread);
    if (!own(field).isZero() && !COMPUTED_BY[field]?.(proof))
      report.takes('invoice', `${field} of ${invoice[field]}: by which rates and coupons it came about`);
  }
  const before = own('subtotal')
    .minus(own('total_discount'))
    .minus(own('total_prepaid_credits_applied'))
    .plus(own('total_tax'));
  const floor = (number) => (invoice.invoice_type === 'CREDIT' ? number : most(ZERO, number));
  report.number('invoice', 'total', invoice.total, floor(before));
  report.number('invoice', 'amount_due', invoice.amount_due, own('total').minus(own('adjustment_amount')));
  report.number(
    'invoice',
    'amount_remaining',
    invoice.amount_remaining,
    floor(own('amount_due').minus(own('amount_paid'))),
  );
  if (!own('amount_paid').isZero()) report.takes('invoice', `amount_paid of ${invoice.amount_paid}`);
  if (!own('adjustment_amount').isZero()) report.takes('invoice', `adjustment_amount of ${invoice.adjustment_amount}`);
}

/**
 * `proof` is the document; `events` is a function that answers the lines of the file, from its first each time; null where there are none.
 * Answers {differences, stated}: what is otherwise than stated, and what could not be computed.
 */
export async function verify(proof, events = null) {
  if (proof?.format !== FORMAT)
    throw new Unreadable(`the format is ${JSON.stringify(proof?.format)}, and not ${FORMAT}`);
  const { invoice, lines, minor_units: places } = proof;
  const report = new Report();
  const usage = lines.filter(({ counted }) => counted !== null);
  const measured = events === null ? new Map() : await readEvents(usage, events, report);
  for (const entry of lines)
    new LineCheck(entry, { invoice, places, measured: measured.get(entry.line.id), report }).run();
  checkOverage(lines, places, report);
  if (proof.coupons) checkCoupons(proof, report);
  if (proof.taxes) checkTaxes(proof, report);
  checkTotals(proof, report);
  return report;
}

/** Whether one event is in the trees of the lines: from its leaf up to the roots of the document. */
export function verifyEvent(proof, { event_id, invoice_id, lines }) {
  const report = new Report();
  report.same('event', 'invoice_id', invoice_id, proof.invoice.id);
  for (const { line_id, leaf, leaf_hash, path, root, index, event_count } of lines) {
    report.same(line_id, 'leaf.event_id', leaf.event_id, event_id);
    let hash = leafHash([leaf.event_id, leaf.timestamp_us, leaf.external_customer_id, leaf.value, leaf.group]);
    report.same(line_id, 'leaf_hash', leaf_hash, hash.toString('hex'));
    for (const { side, hash: beside } of path) {
      const other = Buffer.from(beside, 'hex');
      hash = side === 'left' ? sha256(NODE, other, hash) : sha256(NODE, hash, other);
    }
    const seal = proof.lines.find(({ line }) => line.id === line_id)?.seal;
    report.same(line_id, 'root', root, hash.toString('hex'));
    report.same(line_id, 'root in the proof of the invoice', seal?.root, root);
    report.same(line_id, 'event_count', event_count, seal?.event_count);
    if (!(index >= 0 && index < event_count)) report.differs(line_id, 'index', index, `less than ${event_count}`);
  }
  if (lines.length === 0) report.differs('event', 'lines', 'none', 'at least one');
  return report;
}

// ---------------------------------------------------------------------------------------------------------------------
// The command.

const USAGE = 'verify-invoice: say which files: proof.json [events.ndjson] [--event event-proof.json]';

function printed(proof, { differences, stated }) {
  const { invoice, lines } = proof;
  const names = new Map(lines.map(({ line }) => [line.id, line.display_name ?? line.id]));
  const nameOf = (line) => (names.has(line) ? `${names.get(line)} (${line})` : line);
  const out = [
    `invoice ${invoice.invoice_number ?? invoice.id}: ${invoice.total} ${invoice.currency}, ${lines.length} lines`,
  ];
  for (const { line, what } of stated) out.push(`taken as stated: ${nameOf(line)}: ${what}`);
  for (const { line, field, stated: said, computed, digit } of differences)
    out.push(
      `DIFFERS: ${nameOf(line)}: ${field}: stated ${said}, computed ${computed}${digit === '' ? '' : ` (${digit})`}`,
    );
  out.push(differences.length === 0 ? 'all that can be computed agrees' : `${differences.length} differences`);
  return out.join('\n');
}

async function main(args) {
  const at = args.indexOf('--event');
  const eventFile = at < 0 ? undefined : args[at + 1];
  const files = args.filter((_arg, index) => at < 0 || (index !== at && index !== at + 1));
  const [proofFile, eventsFile, ...more] = files;
  const isWrong = files.some((file) => file.startsWith('-')) || (at >= 0 && eventFile === undefined);
  if (proofFile === undefined || more.length > 0 || isWrong) {
    console.error(USAGE);
    return 2;
  }
  try {
    const proof = JSON.parse(readFileSync(proofFile, 'utf8'));
    const lines = () => createInterface({ input: createReadStream(eventsFile), crlfDelay: Number.POSITIVE_INFINITY });
    const report = await verify(proof, eventsFile === undefined ? null : lines);
    if (eventFile !== undefined) {
      const { differences } = verifyEvent(proof, JSON.parse(readFileSync(eventFile, 'utf8')));
      report.differences.push(...differences);
    }
    console.log(printed(proof, report));
    return report.differences.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(`verify-invoice: ${error.message}`);
    return 2;
  }
}

const isCommand =
  process.argv[1] !== undefined && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href;
if (isCommand)
  void main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
