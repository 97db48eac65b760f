#!/usr/bin/env node
/**
 * npm run verify-invoice -- proof.json [events.ndjson] [--event event-proof.json]      or: node verify-invoice.mjs …
 *
 * Checks an invoice of Farthing: computes every line from its events and every total from the lines, and names the first digit that
 * differs. docs/proof.md describes the documents. The program is this one file. It uses no code of the service, no network and no
 * packages, so anyone who gets an invoice can read, copy and run it with Node 20 or newer.
 *
 * Exit codes: 0 all agrees (facts that had to be taken as stated are printed) · 1 something differs · 2 it could not be checked.
 */
import { hash } from 'node:crypto';
import { createReadStream, readFileSync, realpathSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const FORMAT = 'farthing-invoice-proof-1';

// ---------------------------------------------------------------------------------------------------------------------
// Numbers: fractions of BigInts, always exact. A quantity is an integer, in units of 10^-24.

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
  /** Rounds to this number of decimals, half away from zero. */
  rounded = (places) => new Fraction(divided(this.n * power(places), this.d), power(places));
}

const ZERO = new Fraction(0n);
const ONE = new Fraction(1n);
const most = (a, b) => (a.compare(b) >= 0 ? a : b);
const least = (a, b) => (a.compare(b) <= 0 ? a : b);
const sumOf = (numbers) => numbers.reduce((sum, one) => sum.plus(one), ZERO);
const quantityOf = (scaled) => new Fraction(scaled, UNIT);

/** Parses decimal text. Anything else is an error, so a missing number is never read as zero. */
function decimal(text, what) {
  const parts = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(String(text));
  if (parts === null) throw new Unreadable(`${what} is ${JSON.stringify(text)}, which is no decimal number`);
  const [, sign, whole, fraction = ''] = parts;
  const n = BigInt(whole + fraction);
  return new Fraction(sign === '-' ? -n : n, power(fraction.length));
}

/** Formats a number with as many decimals as it has, and at most `places`. */
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

/**
 * Parses JSON. An object becomes a map, in which the last of two equal keys wins. A number becomes {number: its text}.
 */
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

/** A number is {number: its text}, or a JavaScript number if a double holds it exactly. */
const isNumber = (value) => typeof value === 'number' || typeof value?.number === 'string';
const numberText = (value) => (typeof value === 'number' ? String(value) : value.number);

/** A double keeps 15 digits. So only a text that may contain a longer number or an exponent needs the exact parser. */
function readEvent(text) {
  if (/[0-9.]{16,}|[0-9][eE]/.test(text)) return readJson(text);
  try {
    const event = JSON.parse(text);
    // Nested values are never read. An empty map replaces a nested object, because {"number": …} would be taken for a number.
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

/** Parses a property to a quantity, times 10^24; undefined if it is not a number. */
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
  // All digits lie after the 24th decimal place, so the quantity is 0.
  if (digits.length + up < -PLACES) return 0n;
  const shift = up + PLACES;
  const scaled = shift >= 0 ? BigInt(digits) * power(shift) : divided(BigInt(digits), power(-shift));
  if (scaled >= power(24 + PLACES)) return undefined;
  return sign === '-' ? -scaled : scaled;
}

const JSON_NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

/** Formats equal numbers as equal texts: 1e6, 1000000 and 1000000.0 are the same. */
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

/** Formats a property as the text by which values are compared and grouped; undefined if it has none. */
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

/** Parses RFC 3339 text to microseconds since 1970; finer digits are cut off. */
export function instant(text) {
  const parts = INSTANT.exec(text ?? '');
  const ms = parts === null ? Number.NaN : Date.parse(`${parts[1]}T${parts[2]}${parts[4].toUpperCase()}`);
  if (Number.isNaN(ms)) throw new Unreadable(`${JSON.stringify(text)} is no instant`);
  return ms * 1000 + Number((parts[3] ?? '').slice(0, 6).padEnd(6, '0'));
}

// ---------------------------------------------------------------------------------------------------------------------
// The tree of RFC 9162, 2.1.

const sha256 = (...parts) => hash('sha256', Buffer.concat(parts), 'buffer');
const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);
const utf8 = new TextEncoder();
const byteLength = globalThis.Buffer?.byteLength ?? ((text) => utf8.encode(text).length);
const netstring = (text) => `${byteLength(text)}:${text},`;
const leafBytes = (fields) => utf8.encode(fields.map(netstring).join(''));
const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const fromHex = (text) => Uint8Array.from(text.matchAll(/[0-9a-f]{2}/giy), ([digits]) => Number.parseInt(digits, 16));

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
    return toHex(last === undefined ? sha256() : others.reduce((right, left) => sha256(NODE, left, right), last));
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

/** Milliseconds by which the clock of the time zone is ahead of UTC. */
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

/** Milliseconds by which the clock jumps between two instants; Infinity if it does not jump. */
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

/** Finds the half-open window that contains an instant. */
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
// Expressions of meters, over fractions. sqrt, log and powers with fractions are not computed here: the result of an
// expression that uses them is taken as stated.

class Unusable extends Error {}
class NotComputed extends Error {}

const TOKEN =
  /\s*(?:([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|("[^"\\\n]*"|'[^'\\\n]*')|(&&|\|\||==|!=|<=|>=|[-+*/()<>!?:,]))/y;

function tokensOf(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; text.slice(at).trim() !== ''; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const [found, number, name, string, sign] = TOKEN.exec(text) ?? [];
    // Digits followed directly by letters are hexadecimal or unsigned numbers, which meters do not have.
    if (found === undefined || (number && /[A-Za-z0-9_.]/.test(text[TOKEN.lastIndex] ?? ''))) throw new NotComputed();
    tokens.push(number ? { number } : name ? { name } : string ? { string: string.slice(1, -1) } : { sign });
  }
  return tokens;
}

const LEVELS = [['||'], ['&&'], ['==', '!=', '<', '<=', '>', '>='], ['+', '-'], ['*', '/']];
const ARGUMENTS = { min: 2, max: 2, pow: 2, abs: 1, floor: 1, ceil: 1, round: 1, double: 1 };

function parsed(text) {
  const tokens = tokensOf(text);
  let at = 0;
  const takes = (...signs) => (signs.includes(tokens[at]?.sign) ? tokens[at++].sign : undefined);
  const needs = (sign) => {
    if (!takes(sign)) throw new NotComputed();
  };
  const whole = () => {
    const condition = binary(0);
    if (!takes('?')) return condition;
    const yes = binary(0);
    needs(':');
    return { op: '?', of: [condition, yes, whole()] };
  };
  const binary = (level) => {
    if (level === LEVELS.length) return unary();
    let left = binary(level + 1);
    for (let op = takes(...LEVELS[level]); op !== undefined; op = takes(...LEVELS[level]))
      left = { op, of: [left, binary(level + 1)] };
    return left;
  };
  const unary = () => {
    const op = takes('!', '-');
    return op === undefined ? primary() : { op: op === '-' ? 'negated' : '!', of: [unary()] };
  };
  const primary = () => {
    if (takes('(')) {
      const inner = whole();
      needs(')');
      return inner;
    }
    const token = tokens[at++] ?? {};
    if (token.number) return { constant: numeral(token.number) };
    if (token.string !== undefined) return { constant: token.string };
    if (!token.name) throw new NotComputed();
    if (token.name === 'true' || token.name === 'false') return { constant: token.name === 'true' };
    if (!takes('(')) return { property: token.name };
    const of = [];
    do of.push(whole());
    while (takes(','));
    needs(')');
    if (ARGUMENTS[token.name] !== of.length) throw new NotComputed();
    return { op: token.name, of };
  };
  const tree = whole();
  if (at < tokens.length) throw new NotComputed();
  return tree;
}

/** Parses decimal text that may have an exponent. */
function numeral(text) {
  const [, digits, fraction = '', exponent = '0'] = /^([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(text);
  const up = Number(exponent) - fraction.length;
  if (Math.abs(up) > 1000) throw new NotComputed();
  const mantissa = BigInt(digits + fraction);
  return up >= 0 ? new Fraction(mantissa * power(up)) : new Fraction(mantissa, power(-up));
}

/**
 * Names of the properties that are text: those compared with text, or with another text property. All others are
 * numbers.
 */
function textProperties(tree) {
  const names = new Set();
  const comparisons = [];
  const visit = (node) => {
    if (node.op === '==' || node.op === '!=') comparisons.push(node.of);
    for (const inner of node.of ?? []) visit(inner);
  };
  visit(tree);
  const isText = (node) => typeof node.constant === 'string' || names.has(node.property);
  for (let before = -1; before < names.size; ) {
    before = names.size;
    for (const [left, right] of comparisons) {
      if (isText(left) && right.property) names.add(right.property);
      if (isText(right) && left.property) names.add(left.property);
    }
  }
  return names;
}

const LARGEST = new Fraction(power(309));
const bounded = (number) => {
  if (number.compare(LARGEST) >= 0 || ZERO.minus(number).compare(LARGEST) >= 0) throw new Unusable();
  return number;
};
const floorOf = ({ n, d }) => (n - (((n % d) + d) % d)) / d;
const NUMERIC = {
  '+': (a, b) => a.plus(b),
  '-': (a, b) => a.minus(b),
  '*': (a, b) => bounded(a.times(b)),
  '/': (a, b) => {
    if (b.isZero()) throw new Unusable();
    return bounded(a.over(b));
  },
  negated: (a) => ZERO.minus(a),
  double: (a) => a,
  min: least,
  max: most,
  abs: (a) => most(a, ZERO.minus(a)),
  floor: (a) => new Fraction(floorOf(a)),
  ceil: (a) => new Fraction(-floorOf(ZERO.minus(a))),
  round: (a) => a.rounded(0),
  pow: (a, b) => {
    if (b.n % b.d !== 0n || abs(b.n / b.d) > 64n) throw new NotComputed();
    const exponent = b.n / b.d;
    if (a.isZero() && exponent < 0n) throw new Unusable();
    const whole = bounded(new Fraction(a.n ** abs(exponent), a.d ** abs(exponent)));
    return exponent < 0n ? bounded(ONE.over(whole)) : whole;
  },
};
const ORDERS = {
  '<': (sign) => sign < 0,
  '<=': (sign) => sign <= 0,
  '>': (sign) => sign > 0,
  '>=': (sign) => sign >= 0,
};

/**
 * Compiles an expression to a function from the properties of an event to its quantity, times 10^24. The function returns
 * undefined if the event has no quantity, and throws NotComputed if this program cannot compute it.
 */
export function compiledExpression(text) {
  const tree = parsed(text);
  const texts = textProperties(tree);
  const property = (name, properties) => {
    const value = properties.get(name);
    if (texts.has(name)) {
      if (value === undefined) return '';
      if (typeof value !== 'string') throw new Unusable();
      return value;
    }
    if (value === undefined) return ZERO;
    const number = isNumber(value) || typeof value === 'string' ? exactly(value) : undefined;
    if (number === undefined) throw new Unusable();
    return number;
  };
  const run = ({ op, of = [], constant, property: name }, properties) => {
    if (constant !== undefined) return constant;
    if (name !== undefined) return property(name, properties);
    if (op === '?') return run(run(of[0], properties) ? of[1] : of[2], properties);
    if (op === '!') return !run(of[0], properties);
    if (op === '&&' || op === '||') return logical(op === '||', of, properties);
    const values = of.map((node) => run(node, properties));
    if (op === '==' || op === '!=') {
      const [a, b] = values;
      return (a instanceof Fraction ? a.equals(b) : a === b) === (op === '==');
    }
    if (ORDERS[op]) return ORDERS[op](values[0].compare(values[1]));
    return NUMERIC[op](...values);
  };
  // An operand that cannot be evaluated does not matter if the other operand decides the result.
  const logical = (deciding, [left, right], properties) => {
    let first;
    try {
      first = run(left, properties);
    } catch (error) {
      if (!(error instanceof Unusable) || run(right, properties) !== deciding) throw error;
      return deciding;
    }
    return first === deciding ? deciding : run(right, properties);
  };
  return (properties) => {
    try {
      const { n, d } = run(tree, properties);
      const scaled = divided(n * UNIT, d);
      return abs(scaled) >= power(24 + PLACES) ? undefined : scaled;
    } catch (error) {
      // A TypeError means that the expression is invalid. The event then has no quantity, as if its properties were unusable.
      if (error instanceof Unusable || error instanceof TypeError) return undefined;
      throw error;
    }
  };
}

/** Parses a property to a number of an expression, without rounding. */
function exactly(property) {
  const text = isNumber(property) ? numberText(property) : property;
  if (quantity(property) === undefined) return undefined;
  const [, sign, whole, fraction = '', exponent = '0'] = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$/.exec(
    text.trim(),
  );
  const n = BigInt(whole + fraction);
  if (n === 0n) return ZERO;
  const up = Number(exponent) - fraction.length;
  // All digits lie after the 400th decimal place, so the number is 0.
  if (up < -10_000) return ZERO;
  const number = up >= 0 ? new Fraction(n * power(up)) : new Fraction(n, power(-up)).rounded(400);
  return sign === '-' ? ZERO.minus(number) : number;
}

function expressionOf({ expression }) {
  if (!expression) return null;
  try {
    return compiledExpression(expression);
  } catch (error) {
    if (error instanceof NotComputed) return null;
    throw error;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// From events to a quantity.

// `GOLDEN=write npm test -- test/core/metering/aggregation-files.test.ts` generates this block from core/metering/aggregations/.
const AGGREGATIONS = {
  COUNT: {
    value_kind: 'none',
    chain_rule: 'additive',
    number: (of) => new Fraction(BigInt(of.count)),
  },
  SUM: {
    value_kind: 'number',
    chain_rule: 'additive',
    number: (of) => quantityOf(of.sum),
  },
  AVG: {
    value_kind: 'number',
    chain_rule: 'shared',
    number: (of) => quantityOf(divided(of.sum, BigInt(of.count))),
  },
  COUNT_UNIQUE: {
    value_kind: 'identity',
    chain_rule: 'shared',
    number: (of) => new Fraction(BigInt(of.values.size)),
  },
  LATEST: {
    value_kind: 'number',
    chain_rule: 'shared',
    number: (of) => quantityOf(of.newest),
  },
  SUM_WITH_MULTIPLIER: {
    value_kind: 'number',
    chain_rule: 'additive',
    number: (of, { multiplier }) => quantityOf(of.sum).times(decimal(multiplier, 'multiplier')),
  },
  MAX: {
    value_kind: 'number',
    chain_rule: 'shared',
    number: (of) => quantityOf(of.greatest),
  },
  WEIGHTED_SUM: {
    value_kind: 'number',
    chain_rule: 'integral',
    number: (of, { start, end }) => quantityOf(divided(of.sum * BigInt(end) - of.weighted, BigInt(end - start))),
  },
};
// End of the written block.

/** The measure of one group of events in one interval, as the meter aggregates it. */
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
    if (this.count === 0) return ZERO;
    const aggregation = AGGREGATIONS[type];
    if (!aggregation) throw new Unreadable(`the aggregation ${type} is not known`);
    return aggregation.number(this, { start, end, multiplier });
  }
}

/** The measure of an interval, split into the windows and groups of the meter, if it has any. */
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
  /** Returns the quantity, and the windows in order of time; `windows` is null if the meter has none. */
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

/** The integral of a level (WEIGHTED_SUM) over the time of a line. Each value counts from its event on, or from the begin of the line. */
class Level {
  sum = 0n;
  constructor({ chain, period_start, period_end }) {
    this.start = instant(period_start);
    this.end = instant(period_end);
    this.length = BigInt(instant(chain.whole_end) - instant(chain.whole_start));
  }
  /** Adds a value of a level, which counts until its customer leaves. */
  add(time, value, until) {
    const [from, to] = [Math.max(time, this.start), Math.min(until, this.end)];
    if (from < to) this.sum += value * BigInt(to - from);
  }
  answer() {
    return { quantity: quantityOf(divided(this.sum, this.length)), windows: null, integral: new Fraction(this.sum) };
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
    const { chain } = line.computed_from;
    this.level = chain?.rule === 'integral' ? new Level({ chain, ...line }) : null;
    this.expression = expressionOf(counted.meter.aggregation);
    /** Whether the result of the expression was taken as stated for at least one event. */
    this.isStated = false;
    /**
     * Whether the result of the expression was neither computed nor stated for at least one event. The quantity of the line is then
     * unknown.
     */
    this.isUnknown = false;
    this.customers = new Map(
      counted.customers.map(({ external_customer_id, times }) => [
        external_customer_id,
        times && times.map(({ start, end }) => [instant(start), instant(end)]),
      ]),
    );
    // One measure for each limit of free units. It is null if the limit began before the line, is an amount of money or applies to a level:
    // the events of the line do not show how much of such a limit is used.
    this.limits = (line.computed_from.allowances ?? []).map(({ windows, grants }) =>
      windows.map(({ start, end }) =>
        instant(start) < this.start || isOfMoney({ grants }) || this.level
          ? null
          : new Stretch(counted, instant(start), instant(end)),
      ),
    );
    this.parts = (line.computed_from.allowance_parts ?? []).map(
      ({ start, end }) => new Stretch(counted, instant(start), instant(end)),
    );
  }
  /** Returns the value of an event for this line, or a text that says why the line does not count the event. */
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
    const { value_kind } = AGGREGATIONS[type] ?? {};
    if (value_kind === 'none') return { value: null, text: '', group };
    if (expression) return this.expressed(event, { group, value_kind });
    if (value_kind === 'identity') {
      const text = identity(event.properties.get(field));
      return text === undefined ? `its ${field ?? 'value'} cannot be told apart` : { value: text, text, group };
    }
    const value = quantity(event.properties.get(field));
    return value === undefined
      ? `its ${field ?? 'value'} is no number`
      : { value, text: textOf(quantityOf(value), PLACES), group };
  }
  /** Evaluates the expression for an event. A result that cannot be computed is taken as stated. */
  expressed(event, { group, value_kind }) {
    const said = event.values.get(this.id);
    const computed = this.computed(event.properties);
    if (computed === null) {
      if (said === undefined) this.isUnknown = true;
      this.isStated = true;
    }
    const value = computed === null ? quantity(said) : computed;
    if (value === undefined) return 'its expression gives no number';
    const text = textOf(quantityOf(value), PLACES);
    if (computed !== null && said !== undefined && quantity(said) !== value)
      return `its expression gives ${text}, and not ${JSON.stringify(said)}`;
    return value_kind === 'identity'
      ? { value: canonical(text), text: canonical(text), group }
      : { value, text, group };
  }
  /** The instant from which the customer is not counted any more. */
  leaves(customer) {
    const times = this.customers.get(customer);
    return times ? Math.max(...times.map(([, end]) => end)) : Number.POSITIVE_INFINITY;
  }
  /** Returns the measured quantity. A level (WEIGHTED_SUM) is averaged over the whole period. */
  answer() {
    return this.level ? this.level.answer() : this.whole.answer();
  }
  /** Evaluates the expression; null if this program cannot compute it. */
  computed(properties) {
    try {
      return this.expression === null ? null : this.expression(properties);
    } catch (error) {
      if (error instanceof NotComputed) return null;
      throw error;
    }
  }
  add(event, { value, text, group }) {
    if (this.last !== undefined) {
      const order = this.last.time - event.time || Buffer.compare(Buffer.from(this.last.id), Buffer.from(event.id));
      if (order > 0) throw new OutOfOrder();
      if (order === 0) return false;
    }
    this.last = event;
    this.tree.add(sha256(LEAF, leafBytes([event.id, String(event.time), event.customer, text, group])));
    this.whole.add(event.time, value, group);
    this.level?.add(event.time, value, this.leaves(event.customer));
    for (const limit of this.limits) for (const stretch of limit) stretch?.add(event.time, value, group);
    for (const part of this.parts) part.add(event.time, value, group);
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

/** Streams the events if those of each line arrive in order, and otherwise sorts them in memory. */
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
    // A file of the customer's own records names no lines, so the rules decide which lines count an event.
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

/** Splits the charge for a number of units into its parts, such as tiers. 0 units cost nothing. */
function chargeParts(price, units) {
  if (units.isZero()) return [];
  const part = (tier, count, { unit_amount, flat_amount }) => {
    const [unit, flat] = [decimal(unit_amount, 'a unit amount'), decimal(flat_amount ?? '0', 'a flat amount')];
    return { tier, units: count, unit_amount: unit, flat_amount: flat, amount: count.times(unit).plus(flat) };
  };
  if (price.billing_model === 'FLAT_FEE') return [part(null, units, { unit_amount: price.amount })];
  if (price.billing_model === 'PACKAGE') {
    const { divide_by, round } = price.transform_quantity ?? {};
    if (!(divide_by > 0)) throw new Unreadable('a price of packages does not say how large they are');
    const size = units.d * BigInt(divide_by);
    const packages = round === 'down' ? units.n / size : (units.n + size - 1n) / size;
    return packages === 0n ? [] : [part(null, new Fraction(packages), { unit_amount: price.amount })];
  }
  if (price.billing_model !== 'TIERED') throw new Unreadable(`the price model ${price.billing_model} is not known`);
  if (!price.tiers?.length) throw new Unreadable('a price of tiers has none');
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

/** Adds up the parts of many windows by tier. */
function addedUp(parts) {
  const byTier = new Map();
  for (const part of parts) {
    const before = byTier.get(part.tier);
    if (before === undefined) byTier.set(part.tier, { ...part });
    else for (const field of ['units', 'flat_amount', 'amount']) before[field] = before[field].plus(part[field]);
  }
  return [...byTier.values()].sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0));
}

/** A grant may be an amount of money. Then its limit and its use are costs of usage, not units. */
const isOfMoney = ({ grants }) => grants?.measure === 'amount';
const limitOf = (allowance, window) => decimal(window.limit ?? allowance.limit, 'a limit');

function aboveLimit(allowance) {
  if (allowance.limit === null) return ZERO;
  const over = (window, count) => most(ZERO, decimal(count, 'what was used').minus(limitOf(allowance, window)));
  return sumOf(allowance.windows.map((window) => over(window, window.after).minus(over(window, window.before))));
}

/** Intervals between the bounds of several limits that apply at the same time. */
function cutsOf(allowances, { window_start, window_end }) {
  const [start, end] = [instant(window_start), instant(window_end)];
  const units = allowances.filter((one) => !isOfMoney(one));
  const bounds = units.flatMap(({ windows }) => windows.flatMap((one) => [instant(one.start), instant(one.end)]));
  const cuts = [...new Set([start, ...bounds.filter((at) => start < at && at < end), end])].sort((a, b) => a - b);
  return units.length < 2 || cuts.length <= 2 ? [] : cuts.slice(1).map((until, index) => [cuts[index], until]);
}

/** Units to charge under several limits: in each interval, the limit that leaves the most units to charge decides. */
function aboveAny(allowances, parts) {
  const counts = allowances.map(() => new Map());
  const growth = (allowance, used, part) => {
    if (allowance.limit === null) return ZERO;
    const [start, end] = [instant(part.start), instant(part.end)];
    const window = allowance.windows.find((one) => instant(one.start) <= start && end <= instant(one.end));
    if (window === undefined) return ZERO;
    const before = used.get(window) ?? decimal(window.before, 'what was used');
    const after = before.plus(decimal(part.used, 'what was used'));
    used.set(window, after);
    const over = (count) => most(ZERO, count.minus(limitOf(allowance, window)));
    return over(after).minus(over(before));
  };
  return sumOf(
    parts.map((part) => allowances.map((one, index) => growth(one, counts[index], part)).reduce((a, b) => most(a, b))),
  );
}

/** Units to charge after entitlements: in each reset period the first units up to the limit are free. */
function billable({ quantity: measured, windows }, { allowances: all, allowance_parts: parts }) {
  const used = most(measured, ZERO);
  const allowances = (all ?? []).filter((one) => !isOfMoney(one));
  if (allowances.length === 0) return { units: used, windows, free: null };
  if (windows === null) {
    const above = parts?.length ? [aboveAny(allowances, parts)] : allowances.map(aboveLimit);
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

/** Cost after grants of money. If some units are free too, the larger of both costs counts. */
function lessGranted(cost, { free }, stated) {
  const above = stated.filter(isOfMoney).map(aboveLimit);
  if (above.length === 0) return cost;
  const charged = above.reduce(most, ZERO);
  return free === null ? least(charged, cost) : most(charged, cost);
}

/**
 * Splits the cost of usage by a commitment: the cost within the committed amount, the cost above it times the factor,
 * and the amount lacking if it is charged. `used` was drawn from the commitment before.
 */
function committed(base, { amount, factor, trueUp, used = ZERO }) {
  const above = aboveOf(used.plus(base), amount).minus(aboveOf(used, amount));
  const parts = {
    utilized: base.minus(above),
    overage: above.times(factor),
    lacking: trueUp ? most(ZERO, amount.minus(used).minus(base)) : ZERO,
  };
  return { ...parts, charge: sumOf(Object.values(parts)) };
}

const aboveOf = (used, amount) => most(ZERO, used.minus(amount));

/** Rounds the cumulative sums of the parts and takes their differences, so that the rounded parts add up to the rounded charge. */
function roundedParts({ utilized, overage, lacking }, places) {
  const within = utilized.rounded(places);
  const used = utilized.plus(overage).rounded(places);
  const charge = utilized.plus(overage).plus(lacking).rounded(places);
  return { utilized: within, overage: used.minus(within), lacking: charge.minus(used), charge };
}

/** Charge of one period of a term: the difference that it makes to the rounded charge of the term. */
function roundedCharge(base, { used = ZERO, ...terms }, places) {
  const before = roundedParts(committed(used, { ...terms, trueUp: false }), places);
  const after = roundedParts(committed(used.plus(base), terms), places);
  const [utilized, overage] = [after.utilized.minus(before.utilized), after.overage.minus(before.overage)];
  return { utilized, overage, lacking: after.lacking, charge: after.charge.minus(before.charge) };
}

/** Rounds each part by itself, as earlier versions did: their invoices must pass, too. */
function partsRoundedAlone(exact, places) {
  const { utilized, overage, lacking, charge } = exact;
  return {
    utilized: utilized.rounded(places),
    overage: overage.rounded(places),
    lacking: lacking.rounded(places),
    charge,
  };
}

const PARTS = ['utilized', 'overage', 'lacking'];

// ---------------------------------------------------------------------------------------------------------------------
// Chains: usage lines that follow one another in a period and are charged as one. A line costs what the chain costs until its end less
// what it costs until its begin. A line here is {from, start, end, measured}, in milliseconds, in order of time.

const CHAIN_VERSION = 1;

/** Formats terms so that equal amounts are equal texts: 1 and 1.00 are the same. */
function termsText({ billing_model, currency, tier_mode, amount, tiers, transform_quantity }) {
  const number = (text) => textOf(decimal(text ?? '0', 'a term'));
  const terms = {
    FLAT_FEE: () => [number(amount)],
    PACKAGE: () => [number(amount), transform_quantity?.divide_by, transform_quantity?.round ?? 'up'],
    TIERED: () => [
      tier_mode,
      tiers
        .map((tier) => [open(tier) ? '' : number(tier.up_to), number(tier.unit_amount), number(tier.flat_amount)])
        .sort((a, b) => (a[0] === '' || b[0] === '' ? (a[0] === '') - (b[0] === '') : Number(a[0]) - Number(b[0]))),
    ],
  }[billing_model];
  return JSON.stringify([billing_model, String(currency).toLowerCase(), ...(terms?.() ?? [])]);
}

const costOf = (price, units) => amountOf(chargeParts(price, most(units, ZERO)));
const negated = (part) => ({
  ...part,
  units: ZERO.minus(part.units),
  flat_amount: ZERO.minus(part.flat_amount),
  amount: ZERO.minus(part.amount),
});

/** Joins adjacent lines with equal terms to runs. */
function runsOf(entries) {
  const runs = [];
  for (const entry of entries) {
    const last = runs.at(-1);
    if (last?.terms === entry.terms) last.units = last.units.plus(entry.units);
    else runs.push({ ...entry });
  }
  return runs;
}

/**
 * Cost of all runs. A negative run is subtracted from the runs before it, the latest first, and then from later ones.
 */
function costOfRuns(entries) {
  const runs = runsOf(entries);
  const left = runs.map(({ units }) => most(units, ZERO));
  for (const [index, { units }] of runs.entries()) {
    let owed = most(ZERO.minus(units), ZERO);
    const others = [...left.keys()].filter((other) => other !== index);
    for (const other of [...others.filter((one) => one < index).reverse(), ...others.filter((one) => one > index)]) {
      const taken = least(owed, left[other]);
      left[other] = left[other].minus(taken);
      owed = owed.minus(taken);
    }
  }
  return sumOf(runs.map(({ price }, index) => costOf(price, left[index])));
}

/**
 * Joins the limits of several lines. With windows, each reset period occurs once, with the use before its first line.
 */
function joinedLimits(lines, isWindowed) {
  const all = lines.flatMap(({ from }) => (from.allowances?.length ? [from.allowances] : []));
  const allowances = (all[0] ?? []).map((allowance, index) => {
    const windows = all.flatMap((one) => one[index]?.windows ?? []);
    if (!isWindowed) return { ...allowance, windows };
    const merged = new Map();
    for (const one of windows) merged.set(one.start, { ...one, before: merged.get(one.start)?.before ?? one.before });
    return { ...allowance, windows: [...merged.values()].sort((a, b) => instant(a.start) - instant(b.start)) };
  });
  const hasParts = lines.some(({ from }) => from.allowance_parts?.length);
  const own = ({ from, measured }) => ({
    start: from.window_start,
    end: from.window_end,
    used: textOf(measured.quantity, PLACES),
  });
  const parts = lines.flatMap((line) => (line.from.allowance_parts?.length ? line.from.allowance_parts : [own(line)]));
  return { allowances, allowance_parts: hasParts && !isWindowed ? parts : [] };
}

/** Units to charge for the first lines of the chain after free units: by bucket, and in total. */
function prefixOf(lines, isWindowed) {
  const buckets = new Map();
  for (const { measured } of lines)
    for (const { start, values } of measured.windows ?? [{ start: 0, values: [measured.quantity] }])
      buckets.set(start, sumOf([buckets.get(start) ?? ZERO, ...values]));
  const quantity = sumOf(lines.map(({ measured }) => measured.quantity));
  const limits = joinedLimits(lines, isWindowed);
  if (limits.allowances.length === 0) return { buckets, units: most(quantity, ZERO), free: null, limits };
  const windows = [...buckets].sort(([a], [b]) => a - b).map(([start, value]) => ({ start, values: [value] }));
  const left = billable({ quantity, windows: isWindowed ? windows : null }, limits);
  const rest = left.windows?.map(({ start, values }) => [start, most(sumOf(values), ZERO)]) ?? [[0, left.units]];
  return { buckets: new Map(rest), units: left.units, free: left.free, limits };
}

/**
 * Costs by line: each event is charged by the line in force. In each window the tiers continue across lines with equal
 * terms.
 */
function additiveCosts(lines, isWindowed) {
  const terms = lines.map(({ from }) => termsText(from.price));
  const prefixes = lines.map((_, index) => prefixOf(lines.slice(0, index + 1), isWindowed));
  const inBucket = (prefix, bucket) => prefix?.buckets.get(bucket) ?? ZERO;
  let until_begin = ZERO;
  return lines.map((_, index) => {
    const prefix = prefixes[index];
    const entries = (bucket) =>
      lines.slice(0, index + 1).map(({ from }, place) => ({
        price: from.price,
        terms: terms[place],
        units: inBucket(prefixes[place], bucket).minus(inBucket(prefixes[place - 1], bucket)),
      }));
    const cost = sumOf([...prefix.buckets.keys()].map((bucket) => costOfRuns(entries(bucket))));
    const until_end = lessGranted(cost, prefix, prefix.limits.allowances);
    const parts = [...prefix.buckets.keys()].flatMap((bucket) => partsAdded(entries(bucket)));
    const before = prefixes[index - 1];
    const line = {
      until_begin,
      until_end,
      units: prefix.units.minus(before?.units ?? ZERO),
      free: prefix.free && prefix.free.minus(before?.free ?? ZERO),
      parts: addedUp(parts).filter(({ units, amount }) => !units.isZero() || !amount.isZero()),
    };
    until_begin = until_end;
    return line;
  });
}

/** Parts by tier that the last line adds to its run. */
function partsAdded(entries) {
  const last = entries.at(-1);
  if (last.units.isZero()) return [];
  const run = runsOf(entries.slice(0, -1)).at(-1);
  const used = run?.terms === last.terms ? most(run.units, ZERO) : ZERO;
  const parts = chargeParts(last.price, most(used.plus(last.units), ZERO));
  return [...parts, ...chargeParts(last.price, used).map(negated)];
}

/**
 * How long each line applies between two instants. The first line counts from the start, the last one until the end,
 * and a gap counts for the line before it.
 */
function timesIn(lines, start, end) {
  const those = lines.filter((line) => line.start < end && line.end > start);
  return lines.map((line) => {
    const index = those.indexOf(line);
    if (index < 0) return ZERO;
    const from = index === 0 ? start : line.start;
    return new Fraction(BigInt((those[index + 1]?.start ?? end) - from));
  });
}

/**
 * Costs of one quantity that the lines share. Each pays its own price for its share of the period, in each window of
 * the meter separately.
 */
function sharedCosts(lines, { whole, window }) {
  const { from, measured } = lines[0];
  const left = billable(measured, from);
  const shares =
    left.windows === null
      ? [{ values: [left.units], weights: resetWeights(lines, from, whole) ?? timesIn(lines, whole.start, whole.end) }]
      : left.windows.map(({ start, values }) => {
          const { end } = window(start);
          return { values, weights: timesIn(lines, Math.max(start, whole.start), Math.min(end, whole.end)) };
        });
  const units = most(left.units, ZERO);
  return costsOfShares(lines, shares).map((cost) => ({ ...cost, units, free: left.free }));
}

/**
 * Weights of the lines if one limit with several reset periods leaves units to charge; otherwise null. The units that a
 * reset period leaves are weighted by the time of each line in that period.
 */
function resetWeights(lines, { allowances, allowance_parts }, whole) {
  const [allowance, ...others] = allowances ?? [];
  if (!allowance || allowance.limit === null || others.length > 0 || allowance_parts?.length) return null;
  if (allowance.windows.length < 2) return null;
  const left = allowance.windows.map((one) => {
    const times = timesIn(
      lines,
      Math.max(instant(one.start) / 1000, whole.start),
      Math.min(instant(one.end) / 1000, whole.end),
    );
    return { above: most(ZERO, aboveLimit({ ...allowance, windows: [one] })), times, time: sumOf(times) };
  });
  if (left.every(({ above }) => above.isZero())) return null;
  if (left.some(({ above, time }) => !above.isZero() && time.isZero())) return null;
  return lines.map((_, index) =>
    sumOf(left.map(({ above, times, time }) => (time.isZero() ? ZERO : above.times(times[index]).over(time)))),
  );
}

/**
 * Costs of one integral over time that the lines share. Each pays its own price of the whole quantity, times its part of
 * the integral. Lines with equal terms whose integrals add up to 0 or less pay nothing.
 */
function integralCosts(lines, { whole }) {
  const length = new Fraction(BigInt(whole.end - whole.start) * 1000n * UNIT);
  const integrals = lines.map(({ measured }) => measured.integral ?? measured.quantity.times(length));
  const quantity = sumOf(integrals).over(length).rounded(PLACES);
  const left = billable({ quantity, windows: null }, joinedLimits(lines, false));
  const runs = runsOf(
    lines.map(({ from }, index) => ({ terms: termsText(from.price), units: integrals[index], first: index })),
  );
  const runOf = (index) => runs.findLast(({ first }) => first <= index);
  const weights = integrals.map((own, index) => (runOf(index).units.compare(ZERO) > 0 ? own : ZERO));
  const shares = sumOf(weights).compare(ZERO) > 0 ? [{ values: [left.units], weights }] : [];
  return costsOfShares(lines, shares).map((cost, index) => ({
    ...cost,
    units: integrals[index].over(length).rounded(PLACES),
    free: left.free && (index === 0 ? left.free : ZERO),
  }));
}

function costsOfShares(lines, shares) {
  let until_begin = ZERO;
  return lines.map(({ from: { price } }, index) => {
    const parts = shares.flatMap(({ values, weights }) => {
      if (weights[index].isZero()) return [];
      const share = weights[index].over(sumOf(weights));
      return values
        .flatMap((value) => chargeParts(price, most(value, ZERO)))
        .map((part) => ({
          ...part,
          units: part.units.times(share),
          flat_amount: part.flat_amount.times(share),
          amount: part.amount.times(share),
        }));
    });
    const line = { until_begin, until_end: until_begin.plus(amountOf(parts)), parts: addedUp(parts) };
    until_begin = line.until_end;
    return line;
  });
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

/** Describes the first digit in which two numbers differ. */
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
  /** Paths of the fields of the document that are taken as stated; `x.*` covers all fields below x. */
  fields = new Set();
  /** Usage lines whose quantity is taken as stated. */
  uncounted = new Set();
  #tried = 0;
  differs(line, field, stated, computed) {
    const digit = firstDifference(String(stated), String(computed));
    this.differences.push({ line, field, stated: String(stated), computed: String(computed), digit });
  }
  /** Records a fact that is taken as stated, and the fields that are therefore not computed. */
  takes(line, what, fields = []) {
    this.stated.push({ line, what });
    for (const field of fields) this.fields.add(field);
  }
  /** Whether the field at a path, or a record that contains it, is taken as stated. */
  isStated(path) {
    const parts = path.split(/(?=[.[])/);
    return parts.some((_, index) => {
      const head = parts.slice(0, index + 1).join('');
      return this.fields.has(head) || (index + 1 < parts.length && this.fields.has(`${head}.*`));
    });
  }
  same(line, field, stated, computed) {
    if (String(stated) !== String(computed)) this.differs(line, field, stated, computed);
  }
  /** Compares a stated decimal with the computed one; a missing decimal is a difference. */
  number(line, field, stated, computed) {
    if (stated === null || stated === undefined) this.differs(line, field, 'nothing', textOf(computed));
    else if (!decimal(stated, `${line}: ${field}`).equals(computed))
      this.differs(line, field, stated, textOf(computed));
  }
  /** Begins an attempt to read the events. Differences of an earlier attempt, in the wrong order, are removed. */
  attempt() {
    if (this.#tried++ > 0) this.differences.length = 0;
    return this;
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The document, field by field. `~` before a kind: the field is taken as stated. Such fields are agreed terms, texts for people, and ids
// and dates that no charge depends on. All other fields are computed again or compared. `?` after a kind: the value may be null. `?` after
// a key: the field may be missing. `*` is every other key.

const maybe = (of) => ({ '?': of });

const KEPT = {
  tenant_id: '~text',
  environment_id: '~text',
  status: '~text',
  created_at: '~instant',
  updated_at: '~instant',
  created_by: '~text',
  updated_by: '~text',
};

const PAYMENT_STATUSES = 'INITIATED|PENDING|PROCESSING|SUCCEEDED|OVERPAID|FAILED|REFUNDED|PARTIALLY_REFUNDED|VOIDED';

const INVOICE = {
  id: 'text',
  customer_id: 'text',
  subscription_id: '~text?',
  subscription_customer_id: '~text?',
  invoice_type: '~SUBSCRIPTION|ONE_OFF|CREDIT',
  invoice_status: 'FINALIZED|VOIDED|SKIPPED',
  payment_status: `~${PAYMENT_STATUSES}`,
  billing_reason: '~text',
  currency: 'text',
  subtotal: 'decimal',
  total_discount: 'decimal',
  total_prepaid_credits_applied: 'decimal',
  total_tax: 'decimal',
  total: 'decimal',
  adjustment_amount: 'decimal',
  amount_due: 'decimal',
  amount_paid: 'decimal',
  'total_credits_applied_after_tax?': 'decimal',
  amount_remaining: 'decimal',
  overpaid_amount: 'decimal?',
  refunded_amount: '~decimal',
  'prepaid_credits_returned?': '~decimal',
  invoice_number: '~text?',
  idempotency_key: '~text?',
  billing_sequence: '~integer?',
  description: '~text?',
  billing_period: '~text?',
  period_start: '~instant?',
  period_end: '~instant?',
  issue_date: '~instant?',
  due_date: '~instant?',
  paid_at: '~instant?',
  voided_at: '~instant?',
  finalized_at: '~instant?',
  last_computed_at: '~instant?',
  invoice_pdf_url: '~text?',
  recalculated_invoice_id: '~text?',
  is_manually_edited: '~truth',
  metadata: '~any',
  version: '~integer',
  ...KEPT,
};

const TIER = { up_to: '~number?', unit_amount: '~decimal', flat_amount: '~decimal?', '*': '~any' };

const PRICE = {
  currency: 'text',
  billing_model: '~FLAT_FEE|PACKAGE|TIERED',
  amount: '~decimal?',
  tier_mode: '~SLAB|VOLUME?',
  tiers: maybe([TIER]),
  transform_quantity: maybe({ divide_by: '~integer', 'round?': '~up|down?' }),
  '*': '~any',
};

const STRETCH = { start: 'instant', end: 'instant' };

const COUNTED_OF = {
  customers: [{ external_customer_id: 'text', times: maybe([STRETCH]) }],
  timezone: 'timezone',
  billing_anchor: 'instant',
};

/** The lines of one source (the plan, or an add-on) on one meter that follow one another in a period and are charged as one. */
const CHAIN = {
  version: 'integer',
  rule: 'additive|shared|integral',
  whole_start: '~instant',
  whole_end: '~instant',
  begins: '~instant',
  'level_since?': 'instant?',
  lines: [{ line_item_id: '~text', start: '~instant', end: '~instant' }],
  until_begin: 'decimal',
  until_end: 'decimal',
};

const FROM = {
  price: maybe(PRICE),
  meter_id: 'text?',
  meter_version: 'text?',
  window_start: 'instant?',
  window_end: 'instant?',
  quantity: 'decimal?',
  event_count: 'integer?',
  high_water: maybe({ '*': 'text' }),
  as_of: '~instant?',
  buckets: '~any',
  breakdown: maybe([
    {
      tier: 'integer?',
      units: 'decimal',
      unit_amount: 'decimal',
      flat_amount: 'decimal',
      amount: 'decimal',
      'time_bucket?': '~any',
    },
  ]),
  proration: 'decimal?',
  reason: '~text?',
  kind: 'overage|true_up|unused_time|resumed|late_events|corrected_events|threshold_surplus?',
  less: maybe({ amount: 'decimal', quantity: 'decimal?', invoiced: '~before_period_end|by_other_invoices' }),
  of_term: maybe({ used: 'decimal', committed: 'decimal', 'since?': 'instant?', 'is_last?': 'truth?' }),
  base_amount: 'decimal?',
  window_terms: maybe({ amount: '~decimal?', time_buckets: '~any' }),
  allowances: maybe([
    {
      limit: '~decimal?',
      windows: [{ start: '~instant', end: '~instant', before: 'decimal', after: 'decimal', 'limit?': '~decimal' }],
      'grants?': '~any',
    },
  ]),
  allowance_parts: maybe([{ start: '~instant', end: '~instant', used: 'decimal' }]),
  carried_amount: 'decimal?',
  'chain?': maybe(CHAIN),
  counted: maybe(COUNTED_OF),
  share: maybe({ part_ms: 'integer', whole_ms: '~integer', 'before_ms?': '~integer?' }),
  billed_before: maybe({ amount: 'decimal', quantity: 'decimal' }),
  edited: maybe({ amount: 'decimal', quantity: 'decimal' }),
  drawn_from: 'subscription?',
};

const LINE = {
  id: '~text',
  invoice_id: 'text',
  customer_id: 'text',
  subscription_id: '~text?',
  subscription_line_item_id: '~text?',
  parent_line_item_id: '~text?',
  entity_id: '~text?',
  entity_type: '~text?',
  plan_display_name: '~text?',
  price_id: '~text?',
  price_type: 'text?',
  meter_id: 'text?',
  meter_display_name: '~text?',
  price_unit_id: '~text?',
  price_unit: 'text?',
  price_unit_amount: 'decimal?',
  display_name: '~text?',
  quantity: 'decimal',
  amount: 'decimal',
  currency: 'text',
  period_start: 'instant?',
  period_end: 'instant?',
  prepaid_credits_applied: 'decimal',
  line_item_discount: 'decimal',
  invoice_level_discount: 'decimal',
  tax_amount: 'decimal',
  included_tax_amount: 'decimal',
  taxes: maybe([{ tax_rate_id: 'text', tax_behavior: 'exclusive|inclusive', tax_amount: 'decimal' }]),
  adjusted_entitlement_quantity: 'decimal?',
  commitment_info: maybe({
    type: '~amount|quantity',
    amount: '~decimal',
    quantity: '~decimal?',
    duration: '~text?',
    overage_factor: '~decimal?',
    true_up_enabled: '~truth',
    is_windowed: '~truth',
    computed_true_up_amount: 'decimal',
    computed_overage_amount: 'decimal',
    computed_commitment_utilized_amount: 'decimal',
  }),
  metadata: '~any',
  computed_from: maybe(FROM),
  ...KEPT,
};

const METER = {
  id: 'text',
  version: 'integer',
  event_name: '~text',
  aggregation: {
    type: `~${Object.keys(AGGREGATIONS).join('|')}`,
    field: '~text?',
    expression: '~text?',
    multiplier: '~decimal?',
    bucket_size: '~MINUTE|15MIN|30MIN|HOUR|3HOUR|6HOUR|12HOUR|DAY|WEEK|MONTH?',
    group_by: '~text?',
  },
  filters: [{ key: '~text', values: ['~text'] }],
  reset_usage: '~text',
};

const COUPON = {
  coupon_id: 'text',
  coupon_association_id: '~text?',
  line_id: 'text?',
  terms: maybe({
    id: 'text',
    type: 'fixed|percentage',
    amount_off: 'decimal?',
    percentage_off: 'decimal?',
    '*': '~any',
  }),
  original_price: 'decimal',
  discounted_amount: 'decimal',
};

const TAX = {
  tax_rate_id: 'text',
  name: '~text',
  tax_rate_type: 'percentage|fixed',
  percentage_value: 'decimal?',
  fixed_value: 'decimal?',
  tax_behavior: 'exclusive|inclusive',
  is_given_back: 'truth',
  taxable_amount: 'decimal',
  tax_amount: 'decimal',
};

const DOCUMENT = {
  format: 'text',
  minor_units: 'integer',
  invoice: INVOICE,
  lines: [
    {
      line: LINE,
      price_unit: maybe({ code: '~text', conversion_rate: '~decimal' }),
      counted: maybe({
        meter: METER,
        ...COUNTED_OF,
        window_start: 'instant',
        window_end: 'instant',
        marks: { '*': 'text' },
        ends: '~any',
      }),
      seal: maybe({ event_count: 'integer', root: 'text', sealed_at: '~instant' }),
      not_sealed: 'text?',
    },
  ],
  coupons: [COUPON],
  taxes: [TAX],
};

const doesNotThrow = (work) => {
  try {
    work();
    return true;
  } catch {
    return false;
  }
};
const KINDS = {
  any: () => true,
  text: (value) => typeof value === 'string',
  decimal: (value) => typeof value === 'string' && doesNotThrow(() => decimal(value, '')),
  number: (value) => Number.isSafeInteger(value) || KINDS.decimal(value),
  integer: (value) => Number.isSafeInteger(value),
  truth: (value) => typeof value === 'boolean',
  instant: (value) => typeof value === 'string' && doesNotThrow(() => instant(value)),
  timezone: (value) => typeof value === 'string' && doesNotThrow(() => offsetAt(value, 0)),
};

/** Checks that the document has each field and no other. Fields that are taken as stated are added to the report. */
function checkShape(shape, value, path, report) {
  if (typeof shape === 'string') return checkValue(shape, value, path, report);
  if (shape['?'] !== undefined) return value === null ? undefined : checkShape(shape['?'], value, path, report);
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return report.differs('document', path, JSON.stringify(value), 'a list');
    for (const [index, one] of value.entries()) checkShape(shape[0], one, `${path}[${index}]`, report);
    return;
  }
  if (!isObject(value)) return report.differs('document', path, JSON.stringify(value), 'an object');
  const under = (key) => (path === '' ? key : `${path}.${key}`);
  const { '*': others, ...own } = shape;
  const keys = new Map(
    Object.entries(own).map(([key, of]) => [key.replace(/\?$/, ''), { of, isOptional: key.endsWith('?') }]),
  );
  for (const [key, { of, isOptional }] of keys)
    if (Object.hasOwn(value, key)) checkShape(of, value[key], under(key), report);
    else if (!isOptional) report.differs('document', under(key), 'nothing', 'a field of every such document');
    // An older document may lack the field; its value is then taken as empty.
    else if (typeof of !== 'string' || of.startsWith('~')) report.fields.add(under(key));
  if (others?.startsWith('~')) report.fields.add(under('*'));
  for (const key of Object.keys(value)) {
    if (keys.has(key)) continue;
    // A field of a newer service is reported, because this program does not know it.
    checkShape(others ?? '~any', value[key], under(key), report);
  }
}

function checkValue(shape, value, path, report) {
  const [, stated, kind, nullable] = /^(~?)(.*?)(\??)$/.exec(shape);
  if (stated) report.fields.add(path);
  if (value === null && nullable) return;
  const fits = KINDS[kind]?.(value) ?? kind.split('|').includes(value);
  if (!fits) report.differs('document', path, JSON.stringify(value), KINDS[kind] ? `a ${kind}` : `one of ${kind}`);
}

// ---------------------------------------------------------------------------------------------------------------------
// Lines.

const CORRECTIONS = ['late_events', 'corrected_events', 'threshold_surplus'];
const COMPUTED = ['computed_commitment_utilized_amount', 'computed_overage_amount', 'computed_true_up_amount'];

/** Checks one line; `measured` is the quantity of its events, undefined if no events were given. */
class LineCheck {
  constructor(entry, { index, invoice, places, events, lines, drawn, report }) {
    const measured = events.get(entry.line.id);
    Object.assign(this, { entry, index, invoice, places, measured, events, lines, drawn, report });
    this.line = entry.line;
    this.from = entry.line.computed_from;
    this.kind = this.from?.kind ?? null;
    this.amount = decimal(this.line.amount, `${this.line.id}: amount`);
  }
  path = (field) => `lines[${this.index}].${field}`;
  /** Records a fact of this line that is taken as stated; `fields` are fields of the line. */
  takes = (what, fields = []) =>
    this.report.takes(
      this.line.id,
      what,
      fields.map((field) => this.path(field)),
    );
  /** Records that the quantity is taken as stated. */
  quantityTaken(what, fields) {
    this.report.uncounted.add(this.line.id);
    this.takes(what, fields);
  }
  amountTaken = (what) => this.takes(what, ['line.amount', 'line.quantity', 'line.price_unit_amount']);
  number = (field, stated, computed) => this.report.number(this.line.id, field, stated, computed);
  same = (field, stated, computed) => this.report.same(this.line.id, field, stated, computed);
  /** Checks that a field is empty, because it applies to other lines only. */
  nothing = (field, stated) => {
    if (stated !== null && stated !== undefined)
      this.report.differs(this.line.id, field, JSON.stringify(stated), 'nothing');
  };
  money = (amount) => amount.rounded(this.places);
  /** Number of decimals to which quotients are compared. */
  digits = 40;

  run() {
    const { line, invoice, entry } = this;
    this.same('invoice_id', line.invoice_id, invoice.id);
    this.same('customer_id', line.customer_id, invoice.customer_id);
    this.same('currency', line.currency, invoice.currency);
    this.number('amount', line.amount, this.money(this.amount));
    if (!this.from) return this.byHand();
    if (this.from.edited) this.asComputed();
    const { from } = this;
    if (from.price) this.same('computed_from.price.currency', from.price.currency, invoice.currency);
    const isUsage = Boolean(from.meter_id) && this.kind !== 'true_up';
    this.same('price_type', line.price_type, isUsage ? 'USAGE' : 'FIXED');
    this.same('meter_id', line.meter_id, from.meter_id);
    if (!from.edited) this.same('price_unit', line.price_unit, entry.price_unit?.code ?? null);
    if (!from.edited && !entry.price_unit) this.nothing('price_unit_amount', line.price_unit_amount);
    if (!from.less && this.kind !== 'threshold_surplus' && !CORRECTIONS.includes(this.kind))
      this.nothing('computed_from.carried_amount', from.carried_amount);
    else this.takes('what of it is carried to the next invoice', ['line.computed_from.carried_amount']);
    if (this.kind !== 'true_up') this.term();
    if (isUsage) return this.usage();
    for (const field of ['meter_version', 'window_start', 'window_end', 'event_count', 'high_water', 'counted'])
      this.nothing(`computed_from.${field}`, from[field]);
    this.notCounted();
    for (const field of ['allowances', 'allowance_parts', 'less', 'billed_before', 'drawn_from'])
      if (this.kind !== 'true_up') this.nothing(`computed_from.${field}`, from[field]);
    this.nothing('adjusted_entitlement_quantity', line.adjusted_entitlement_quantity);
    if (this.kind === 'true_up') return this.trueUp();
    this.nothing('commitment_info', line.commitment_info);
    this.nothing('computed_from.base_amount', from.base_amount);
    if (!from.price) return this.takes('all of it: it says no price', ['line']);
    return this.fixed();
  }

  /** Only a charge under a commitment of the subscription, or under a commitment over several periods, has `of_term`. */
  term() {
    const { line, from } = this;
    const isDrawn = from.drawn_from === 'subscription' || Boolean(line.commitment_info?.duration);
    if (CORRECTIONS.includes(this.kind) || !isDrawn) return this.nothing('computed_from.of_term', from.of_term);
    if (!from.of_term) return;
    const { used, committed: amount } = from.of_term;
    const fields = ['used', 'since', 'is_last'].map((field) => `line.computed_from.of_term.${field}`);
    this.takes(`that ${used} of ${amount} were used in the term before`, fields);
  }

  notCounted() {
    const { counted, seal, not_sealed } = this.entry;
    this.nothing('counted', counted);
    this.nothing('seal', seal);
    this.nothing('not_sealed', not_sealed);
  }

  byHand() {
    const { line } = this;
    this.notCounted();
    this.nothing('commitment_info', line.commitment_info);
    this.nothing('adjusted_entitlement_quantity', line.adjusted_entitlement_quantity);
    const said = [
      'price_type',
      'meter_id',
      'price_unit',
      'price_unit_amount',
      'quantity',
      'period_start',
      'period_end',
    ];
    this.takes('all of it: it was written by hand', ['line.amount', ...said.map((field) => `line.${field}`)]);
  }

  /** Reports values that were edited by hand, and checks the computed values from before the edit. */
  asComputed() {
    const { line, from } = this;
    const { amount, quantity } = from.edited;
    this.amountTaken(
      `${line.amount} for ${line.quantity}, as it was edited by hand: computed were ${amount} for ${quantity}`,
    );
    this.takes('what else was edited of it', ['line.price_unit', 'line.period_start', 'line.period_end']);
    this.line = { ...line, amount, quantity, price_unit_amount: null };
    this.amount = decimal(amount, `${line.id}: computed_from.edited.amount`);
    this.entry = { ...this.entry, price_unit: null };
  }

  breakdown(parts) {
    const stated = this.from.breakdown ?? [];
    this.same('computed_from.breakdown: parts', stated.length, parts.length);
    for (const [index, part] of parts.entries()) {
      if (stated[index] === undefined) return;
      const field = (name) => `computed_from.breakdown[${index}].${name}`;
      this.same(field('tier'), stated[index].tier, part.tier);
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
    const isBack = this.kind === 'unused_time';
    if (!isBack && this.kind !== 'resumed') {
      this.nothing('computed_from.kind', this.kind);
      this.nothing('parent_line_item_id', line.parent_line_item_id);
      this.number('amount', line.amount, expected);
    } else {
      const size = isBack ? ZERO.minus(this.amount) : this.amount;
      const cent = new Fraction(1n, power(this.places));
      if (size.compare(ZERO) < 0 || (isBack && size.compare(expected.plus(cent)) > 0))
        this.number('amount', line.amount, isBack ? ZERO.minus(expected) : expected);
      const why = isBack
        ? `unused time of at most ${textOf(expected)}, limited by what other invoices have billed`
        : 'what other invoices have not billed of the period';
      this.takes(`${line.amount}: ${why}`, ['line.amount', 'line.computed_from.kind', 'line.price_unit_amount']);
    }
    this.priceUnit(exact);
  }

  share() {
    const { line, from } = this;
    const periods = ['line.period_start', 'line.period_end'];
    if (!from.proration && !from.share) {
      this.takes('the whole period that it is for', periods);
      return { share: ONE, before: ZERO };
    }
    if (!from.share) {
      const fields = ['line.computed_from.proration', ...periods];
      this.takes(`its share ${from.proration}, rounded to 18 decimals`, fields);
      return { share: decimal(from.proration, `${line.id}: proration`), before: ZERO };
    }
    const { part_ms, whole_ms, before_ms } = from.share;
    if (whole_ms <= 0) throw new Unreadable(`${line.id}: a period of ${whole_ms} ms is none`);
    const share = new Fraction(BigInt(part_ms), BigInt(whole_ms));
    this.number('computed_from.proration', from.proration, share.rounded(18));
    const length = (instant(line.period_end) - instant(line.period_start)) / 1000;
    if (this.kind === null) this.same('computed_from.share.part_ms', part_ms, length);
    else this.takes('the period that it is for', periods);
    this.takes(`the length of its whole period, ${whole_ms} ms`);
    if (before_ms) this.takes(`that ${before_ms} ms of it lie before`);
    return { share, before: new Fraction(BigInt(before_ms ?? 0), BigInt(whole_ms)) };
  }

  // Methods for usage lines.

  /** Checks that the line and the document state the same facts about the counted events. */
  agreesWithItself() {
    const { line, from, entry } = this;
    const { counted, seal, not_sealed } = entry;
    if (counted === null) {
      this.nothing('seal', seal);
      if (!not_sealed) return this.report.differs(line.id, 'counted', 'nothing', 'what a usage line counted');
      const fields = [
        'quantity',
        'event_count',
        'meter_version',
        'window_start',
        'window_end',
        'high_water',
        'counted',
      ];
      return this.takes(`what was counted: ${not_sealed}`, [
        ...fields.map((field) => `line.computed_from.${field}`),
        'line.meter_id',
        'line.period_start',
        'line.period_end',
        'not_sealed',
      ]);
    }
    if (not_sealed) this.report.differs(line.id, 'events', 'the line', `not what its events come to: ${not_sealed}`);
    else if (seal === null) this.report.differs(line.id, 'seal', 'nothing', 'the root of its events');
    if (seal !== null && not_sealed !== null) this.nothing('not_sealed', not_sealed);
    this.same('counted.meter.id', counted.meter.id, line.meter_id);
    this.same('computed_from.meter_version', from.meter_version, counted.meter.version);
    for (const field of ['window_start', 'window_end']) {
      if (from[field] === null) this.report.differs(line.id, `computed_from.${field}`, 'nothing', counted[field]);
      else this.same(`counted.${field}`, instant(counted[field]), instant(from[field]));
    }
    this.period();
    if (from.counted === null)
      this.takes('whose events they are, and by which clock', [
        'counted.customers',
        'counted.timezone',
        'counted.billing_anchor',
      ]);
    else
      for (const field of ['customers', 'timezone', 'billing_anchor'])
        this.same(
          `computed_from.counted.${field}`,
          JSON.stringify(from.counted[field]),
          JSON.stringify(counted[field]),
        );
    const marks = Object.entries(from.high_water ?? {}).map(([partition, offset]) => {
      const end = counted.ends?.[partition];
      return `${partition}: ${end !== undefined && offsetOf(end) < offsetOf(offset) ? end : offset}`;
    });
    const stated = Object.entries(counted.marks).map(([partition, offset]) => `${partition}: ${offset}`);
    this.same('counted.marks', stated.sort().join(), marks.sort().join());
    if (seal === null) return;
    if (line.parent_line_item_id) {
      const kept = 'line.computed_from.event_count';
      if (from.event_count !== seal.event_count)
        this.takes(`${from.event_count} events, of which the rest is corrected later`, [kept]);
      else this.report.fields.add(this.path(kept));
    } else this.same('computed_from.event_count', from.event_count, seal.event_count);
  }

  /** The period shown to the customer must be the period whose events were counted. */
  period() {
    const { line, from, entry } = this;
    if (
      line.period_start === null ||
      line.period_end === null ||
      from.window_start === null ||
      from.window_end === null
    )
      return this.report.differs(line.id, 'period', `${line.period_start} to ${line.period_end}`, 'that of its events');
    const [start, end] = [instant(from.window_start), instant(from.window_end)];
    if (from.edited) return;
    if (from.chain) return this.periodInChain(start, end);
    // A correction has the period of the corrected charge, but its events may have been counted until an earlier end.
    if (!line.parent_line_item_id || end > instant(line.period_end))
      this.same('period_end', instant(line.period_end), end);
    else if (end !== instant(line.period_end)) this.takes('until when its period lasts', ['line.period_end']);
    if (entry.counted.meter.reset_usage !== 'NEVER') this.same('period_start', instant(line.period_start), start);
    else {
      if (instant(line.period_start) < start) this.same('period_start', instant(line.period_start), start);
      this.takes('from when on its period lasts: what it counts never begins anew', ['line.period_start']);
    }
  }

  /** Checks the interval in which the line is active, and the interval of the events that its chain counts for it. */
  periodInChain(start, end) {
    const { line, from } = this;
    const { lines, rule } = from.chain;
    const period = [instant(line.period_start), instant(line.period_end)];
    const own = lines.find(
      (one) => instant(one.start) === period[0] && one.line_item_id === line.subscription_line_item_id,
    );
    if (own === undefined || (line.parent_line_item_id === null && instant(own.end) !== period[1])) {
      // An invoice for a spend threshold is made during the period, and counts until an earlier end.
      if (own && this.invoice.billing_reason === 'THRESHOLD_BILLING')
        return this.takes('until when its period lasts', ['line.period_end']);
      return this.report.differs(line.id, 'computed_from.chain.lines', JSON.stringify(lines), 'the period of the line');
    }
    if (rule === 'additive') this.same('period_start', period[0], start);
    if (rule === 'shared') this.same('computed_from.window_start', start, instant(lines[0].start));
    const until = rule === 'shared' ? this.countedUntil(instant(lines.at(-1).end)) : period[1];
    if (line.parent_line_item_id && end < until) this.takes('until when its period lasts', ['line.period_end']);
    else this.same('computed_from.window_end', end, until);
  }

  /** End of counting for a chain: an invoice for a spend threshold, made during the period, counts until its own end. */
  countedUntil(end) {
    const { billing_reason, period_end } = this.invoice;
    return billing_reason === 'THRESHOLD_BILLING' && period_end ? Math.min(end, instant(period_end)) : end;
  }

  usage() {
    const { line, from } = this;
    const isCorrection = Boolean(line.parent_line_item_id) && CORRECTIONS.includes(this.kind);
    const isSurplus = !isCorrection && this.kind === 'threshold_surplus';
    if (!isCorrection) {
      this.nothing('parent_line_item_id', line.parent_line_item_id);
      this.nothing('computed_from.billed_before', from.billed_before);
    }
    if (this.kind === 'overage' && from.drawn_from !== 'subscription')
      this.report.differs(line.id, 'computed_from.drawn_from', from.drawn_from, 'subscription');
    if (!isCorrection && !isSurplus && this.kind !== 'overage') this.nothing('computed_from.kind', this.kind);
    this.nothing('computed_from.proration', from.proration);
    this.nothing('computed_from.share', from.share);
    if (!from.price) return this.report.differs(line.id, 'computed_from.price', 'nothing', 'the price of the usage');
    this.agreesWithItself();
    const measured = this.measure();
    if (from.chain) return this.usageInChain(measured, { isCorrection, isSurplus });
    const left = billable(measured, from);
    this.free(left, isCorrection || isSurplus || this.kind === 'overage');
    if (isCorrection || isSurplus) this.nothing('commitment_info', line.commitment_info);
    if (isSurplus) return this.surplus();
    const priced = this.priced(left);
    if (priced === undefined) {
      // Without this cost, the draws of other lines on the commitment cannot be computed either.
      if (from.drawn_from === 'subscription') this.drawn.push({ line, isKnown: false });
      return;
    }
    const { base, charge } = priced;
    const whole = this.money(charge);
    if (isCorrection) this.correction(whole, left);
    else if (from.drawn_from === 'subscription') this.shared(whole, left);
    else {
      const less = this.less();
      this.number('amount', textOf(this.amount.plus(less.amount)), whole);
      if (less.quantity !== null)
        this.number(
          'quantity',
          textOf(decimal(line.quantity, `${line.id}: quantity`).plus(less.quantity)),
          most(ZERO, left.units).rounded(18),
        );
      if (line.commitment_info) this.number('computed_from.base_amount', from.base_amount, base);
      else if (from.less) this.number('computed_from.base_amount', from.base_amount, whole);
      else this.nothing('computed_from.base_amount', from.base_amount);
    }
    this.priceUnit(charge);
  }

  /** Checks a line that is charged with others: its cost is the difference that it makes to the cost of the chain. */
  usageInChain(measured, { isCorrection, isSurplus }) {
    const { line, from } = this;
    const cost = this.inChain(measured, isCorrection || isSurplus);
    const left = { units: cost.units, free: cost.free, windows: [] };
    if (cost.units === null) {
      if (!isCorrection && !isSurplus && this.kind !== 'overage')
        this.takes('how many units are free', ['line.adjusted_entitlement_quantity']);
      else this.nothing('adjusted_entitlement_quantity', line.adjusted_entitlement_quantity);
    } else this.free(left, isCorrection || isSurplus || this.kind === 'overage');
    if (isCorrection || isSurplus) this.nothing('commitment_info', line.commitment_info);
    if (isSurplus) return this.surplus();
    const base = cost.until_end.minus(cost.until_begin);
    const whole = this.money(cost.until_end).minus(this.money(cost.until_begin));
    if (isCorrection) this.correction(whole, left);
    else if (from.drawn_from === 'subscription') this.shared(whole, { units: cost.units ?? ZERO });
    else this.ownInChain({ base, whole, units: cost.units });
    this.priceUnit(base);
  }

  ownInChain({ base, whole, units }) {
    const { line, from } = this;
    const less = this.less();
    const amount = this.amount.plus(less.amount);
    if (line.commitment_info) {
      // A commitment rounds the sum over the chain, so a line may differ by one cent, which another line of the chain offsets.
      const charge = this.money(this.committed(base, line.commitment_info));
      const cent = new Fraction(1n, power(this.places));
      const off = amount.minus(charge);
      if (off.compare(cent) > 0 || off.compare(ZERO.minus(cent)) < 0) this.number('amount', textOf(amount), charge);
      this.takes(`${line.amount}: how its chain is rounded`, ['line.amount', 'line.price_unit_amount']);
      this.near('computed_from.base_amount', from.base_amount, base);
      this.report.fields.add(this.path('line.computed_from.drawn_from'));
    } else {
      this.number('amount', textOf(amount), whole);
      if (from.less) this.number('computed_from.base_amount', from.base_amount, whole);
      else this.nothing('computed_from.base_amount', from.base_amount);
    }
    if (units === null) this.takes('how many units these are', ['line.quantity', 'line.computed_from.less.quantity']);
    else if (less.quantity !== null)
      this.number(
        'quantity',
        textOf(decimal(line.quantity, `${line.id}: quantity`).plus(less.quantity)),
        units.rounded(18),
      );
  }

  /**
   * Compares a quotient up to `digits` decimals. Quotients are stated with 60 digits; later digits are taken as stated.
   */
  near(field, stated, computed) {
    if (stated === null || stated === undefined) return this.number(field, stated, computed);
    const off = decimal(stated, `${this.line.id}: ${field}`).minus(computed);
    if (off.isZero()) return;
    if (new Fraction(abs(off.n), off.d).compare(new Fraction(1n, power(this.digits))) >= 0)
      this.number(field, stated, computed);
    else this.report.fields.add(this.path(`line.${field}`));
  }

  /**
   * Computes the cost of the chain until the line begins, and until it ends. The costs are taken as stated for a correction or surplus
   * (`isBeside`), and if another invoice charges a line of the chain.
   */
  inChain(measured, isBeside) {
    const { from, entry } = this;
    const { chain } = from;
    if (chain.version !== CHAIN_VERSION)
      throw new Unreadable(`rule ${chain.version} of lines that are charged together is not known`);
    const { type } = entry.counted?.meter.aggregation ?? {};
    if (type) this.same('computed_from.chain.rule', chain.rule, AGGREGATIONS[type]?.chain_rule ?? 'shared');
    else this.report.fields.add(this.path('line.computed_from.chain.rule'));
    if (chain.rule === 'integral')
      this.same('computed_from.chain.level_since', instant(chain.level_since), instant(from.window_start));
    else this.nothing('computed_from.chain.level_since', chain.level_since);
    const [only, ...others] = chain.lines;
    const isWhole = only?.start === chain.whole_start && only?.end === chain.whole_end;
    if (others.length > 0) this.takes('with which lines it is charged as one, and the whole period of these');
    else if (!isWhole) this.takes('the length of its whole period');
    const lines = this.chainLines(measured);
    const untils = { until_begin: decimal(chain.until_begin, 'a cost'), until_end: decimal(chain.until_end, 'a cost') };
    const isKnown = lines.every((one) => one?.from.price) && !this.lacksWindows(lines);
    if (isBeside || !isKnown) {
      const fields = ['chain.until_begin', 'chain.until_end', 'breakdown'];
      this.takes(
        'what the other lines of its chain come to',
        fields.map((field) => `line.computed_from.${field}`),
      );
      return { ...untils, units: null, free: null };
    }
    const cost = this.chainCosts(lines)[lines.findIndex(({ id }) => id === this.line.id)];
    if (cost === undefined) throw new Unreadable(`${this.line.id} is not in its own chain`);
    // Without events the integrals of other lines are derived from their rounded quantities.
    const isRounded = chain.rule === 'integral' && lines.some((one) => !one.measured.integral) && lines.length > 1;
    this.digits = isRounded ? 15 : 40;
    for (const field of Object.keys(untils)) this.near(`computed_from.chain.${field}`, chain[field], cost[field]);
    this.breakdownNear(cost.parts);
    return cost;
  }

  lacksWindows(lines) {
    return this.isWindowed() && lines.some((one) => one?.measured.windows === null);
  }

  /** The lines of the chain in order of time; undefined for a line of another invoice. */
  chainLines(own) {
    const { chain } = this.from;
    const whole = JSON.stringify(chain.lines);
    return chain.lines.map(({ line_item_id, start, end }) => {
      const found = this.lines.find(({ line }) => {
        const there = line.computed_from;
        return (
          line.subscription_line_item_id === line_item_id &&
          there?.chain &&
          !CORRECTIONS.includes(there.kind) &&
          JSON.stringify(there.chain.lines) === whole &&
          (there.kind ?? null) === (line_item_id === this.line.subscription_line_item_id ? this.kind : null)
        );
      });
      if (found === undefined) return undefined;
      const { line } = found;
      const measured = line.id === this.line.id ? own : this.measuredBy(found);
      return {
        id: line.id,
        from: line.computed_from,
        measured,
        start: instant(start) / 1000,
        end: instant(end) / 1000,
      };
    });
  }

  measuredBy({ line }) {
    const events = this.events.get(line.id);
    if (events && !events.isUnknown) return events.answer();
    return { quantity: decimal(line.computed_from.quantity, `${line.id}: computed_from.quantity`), windows: null };
  }

  chainCosts(lines) {
    const { chain } = this.from;
    if (chain.rule === 'additive') return additiveCosts(lines, this.isWindowed());
    const whole = { start: instant(chain.whole_start) / 1000, end: instant(chain.whole_end) / 1000 };
    if (chain.rule === 'integral') return integralCosts(lines, { whole });
    const { timezone, billing_anchor, meter } = this.entry.counted ?? {};
    const grid = { timezone, anchor: billing_anchor && Math.floor(instant(billing_anchor) / 1000) };
    return sharedCosts(lines, { whole, window: (at) => windowAt(at, meter.aggregation.bucket_size, grid) });
  }

  breakdownNear(parts) {
    const stated = this.from.breakdown ?? [];
    this.same('computed_from.breakdown: parts', stated.length, parts.length);
    for (const [index, part] of parts.entries()) {
      if (stated[index] === undefined) return;
      const field = (name) => `computed_from.breakdown[${index}].${name}`;
      this.same(field('tier'), stated[index].tier, part.tier);
      for (const name of ['units', 'unit_amount', 'flat_amount', 'amount'])
        this.near(field(name), stated[index][name], part[name]);
    }
  }

  /** The part of the charge that other invoices have billed. */
  less() {
    const { line, from } = this;
    if (!from.less) return { amount: ZERO, quantity: ZERO };
    const { amount, quantity } = from.less;
    this.takes(`${amount}, which other invoices have billed of the charge`);
    if (quantity === null)
      this.takes('how many units these are', ['line.quantity', 'line.computed_from.less.quantity']);
    return {
      amount: decimal(amount, `${line.id}: computed_from.less`),
      quantity: quantity === null ? null : decimal(quantity, `${line.id}: computed_from.less`),
    };
  }

  /** Checks the number of free units. */
  free(left, isBeside) {
    const { line, from } = this;
    const stated = line.adjusted_entitlement_quantity;
    if (left.free === null || isBeside) return this.nothing('adjusted_entitlement_quantity', stated);
    if (from.windowsUnknown || (left.windows === null && this.isWindowed()))
      return this.takes('how many units are free, window by window', ['line.adjusted_entitlement_quantity']);
    this.number('adjusted_entitlement_quantity', stated, left.free);
  }

  isWindowed() {
    return Boolean(this.entry.counted?.meter.aggregation.bucket_size);
  }

  /** Quantity of the line: from the events, or as stated if none were given. */
  measure() {
    const { line, from, entry, measured } = this;
    const stated = { quantity: decimal(from.quantity, `${line.id}: computed_from.quantity`), windows: null };
    const used = (from.allowances ?? []).map((_, index) => `line.computed_from.allowances[${index}].windows`);
    const parts = (from.allowance_parts ?? []).map((_, index) => `line.computed_from.allowance_parts[${index}].used`);
    const fields = ['line.computed_from.quantity', 'seal', ...used, ...parts];
    this.cuts();
    if (entry.counted === null) {
      this.quantityTaken('its quantity: the document does not say what was counted', fields);
      return stated;
    }
    if (measured === undefined) {
      const definition = ['counted.meter', 'counted.customers', 'counted.timezone', 'counted.billing_anchor'];
      this.quantityTaken(`its quantity of ${from.quantity}: no events were given`, [...fields, ...definition]);
      return stated;
    }
    const { tree, limits, parts: counted } = measured;
    if (measured.isUnknown) {
      this.quantityTaken(
        `its quantity of ${from.quantity}: what the expression of the meter makes of events is not computed here`,
        fields,
      );
      return stated;
    }
    if (entry.seal) {
      this.same('seal.event_count', entry.seal.event_count, tree.size);
      this.same('seal.root', entry.seal.root, tree.root());
    }
    if (measured.isStated) this.takes('what the expression of the meter makes of each event, which the tree holds');
    // Without windows the quantity does not depend on the time zone, so the events cannot confirm it: it is taken as stated.
    if (!this.isWindowed())
      this.report.fields.add(this.path('counted.timezone')).add(this.path('counted.billing_anchor'));
    const answer = measured.answer();
    this.number('computed_from.quantity', from.quantity, answer.quantity);
    if (from.allowances?.some(({ grants }) => grants))
      this.takes('in which stretches of time its grants make usage free, and up to what');
    for (const [index, allowance] of (from.allowances ?? []).entries())
      for (const [at, window] of allowance.windows.entries())
        this.limit(window, limits[index][at], `computed_from.allowances[${index}].windows[${at}]`);
    for (const [index, part] of (from.allowance_parts ?? []).entries())
      if (measured.level)
        this.takes(`what was used of a limit: ${part.used}`, [`line.computed_from.allowance_parts[${index}].used`]);
      else this.number(`computed_from.allowance_parts[${index}].used`, part.used, counted[index].answer().quantity);
    return answer;
  }

  /** Checks that the intervals of `allowance_parts` are those between the bounds of the limits. */
  cuts() {
    const { from } = this;
    // With windows, free units are computed for each window, so the line has no such intervals.
    const cuts = this.isWindowed() ? [] : cutsOf(from.allowances ?? [], from);
    const said = (from.allowance_parts ?? []).map(({ start, end }) => [instant(start), instant(end)]);
    if (said.length === 0 && cuts.length > 0) this.takes('how its limits hold beside each other');
    else if (JSON.stringify(said) !== JSON.stringify(cuts))
      this.report.differs(this.line.id, 'computed_from.allowance_parts', JSON.stringify(said), JSON.stringify(cuts));
  }

  limit(window, stretch, field) {
    if (stretch === null)
      return this.takes(
        `what was used of a limit before the line began, or in money: ${window.before}, and until its end ${window.after}`,
        [`line.${field}`],
      );
    this.number(`${field}.before`, window.before, ZERO);
    this.number(`${field}.after`, window.after, stretch.answer().quantity);
  }

  /** Cost of the quantity before and after a commitment of the line; undefined if it cannot be computed. */
  priced(left) {
    const { line, from } = this;
    const { price } = from;
    const info = from.drawn_from === 'subscription' ? null : line.commitment_info;
    if (this.isWindowed() && left.windows !== null && info?.is_windowed && from.window_terms) {
      this.report.fields.add(this.path('line.computed_from.drawn_from'));
      return this.byWindow(left, info);
    }
    const hasTimes = (from.breakdown ?? []).some((part) => part.time_bucket);
    if ((this.isWindowed() && left.windows === null) || hasTimes || info?.is_windowed) {
      const why =
        hasTimes || info?.is_windowed
          ? 'a commitment of windows or times of day'
          : 'what the windows of the meter hold, because they are not computed here';
      this.takes(
        `${line.amount}: ${why}`,
        [
          'amount',
          'quantity',
          'price_unit_amount',
          'commitment_info',
          'computed_from.breakdown',
          'computed_from.less',
          'computed_from.base_amount',
          'computed_from.drawn_from',
          'computed_from.of_term',
          'computed_from.kind',
          'computed_from.billed_before',
        ].map((field) => `line.${field}`),
      );
      return undefined;
    }
    const values = this.isWindowed() ? left.windows.flatMap(({ values }) => values) : [left.units];
    const parts = values.flatMap((value) => chargeParts(price, most(value, ZERO)));
    this.breakdown(this.isWindowed() ? addedUp(parts) : parts);
    const base = lessGranted(amountOf(parts), left, from.allowances ?? []);
    if (!info) return { base, charge: base };
    // If the commitment does not change the line, an omitted `drawn_from` would have no effect, so the field is taken as stated.
    this.report.fields.add(this.path('line.computed_from.drawn_from'));
    return { base, charge: this.committed(base, info) };
  }

  /**
   * Applies the commitment to each window, in proportion if only a part of the window lies in the interval of the line. A
   * window that begins in a time bucket has the commitment of that bucket.
   */
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
    // The lacking amount is also charged for windows without usage, as soon as they are over.
    const until = Math.min(end, instant(from.as_of) / 1000);
    for (let at = start; at < until; ) {
      const window = windowOf(at);
      const isOver = Math.min(window.end, end) <= until;
      if (isOver && !seen.has(window.start) && this.termsAt(window.start, timezone, info).trueUp) charge(window, []);
      at = window.end;
    }
    this.takes('the commitment of each window, with its times of day');
    if (from.breakdown) this.breakdown([...byTime.values()].flatMap(addedUp));
    this.parts(info, [roundedParts(totals, this.places), partsRoundedAlone(totals, this.places)]);
    return { base: amountOf([...byTime.values()].flat()), charge: totals.charge };
  }

  /** Terms of the window that begins at an instant. */
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
    const stated = COMPUTED.map((field) => decimal(info[field], field));
    const { of_term } = this.from;
    if (info.duration && !of_term) {
      this.takes(`what was drawn of its commitment of ${info.amount} in earlier periods of the term`);
      return sumOf(stated);
    }
    if (of_term) this.number('computed_from.of_term.committed', of_term.committed, amount);
    const isLast = !info.duration || of_term.is_last === true;
    const trueUp = info.true_up_enabled && isLast && this.invoice.billing_reason !== 'THRESHOLD_BILLING';
    const used = of_term ? decimal(of_term.used, `${line.id}: what was used of its term`) : ZERO;
    const terms = { amount, factor, trueUp, used };
    this.takes(`the commitment of its period, ${info.amount}`);
    const alone = partsRoundedAlone(committed(base, terms), this.places);
    return this.parts(info, [roundedCharge(base, terms, this.places), alone]).charge;
  }

  /**
   * Compares the parts of the commitment with the first of the rounding rules that the line follows. If it follows none,
   * the first rule is reported.
   */
  parts(info, rules) {
    const whole = this.amount.plus(decimal(this.from.less?.amount ?? '0', `${this.line.id}: computed_from.less`));
    const keeps = (rule) =>
      this.money(rule.charge).equals(whole) &&
      PARTS.every((part, index) => decimal(info[COMPUTED[index]], COMPUTED[index]).equals(rule[part]));
    const rule = rules.find(keeps) ?? rules[0];
    for (const [index, part] of PARTS.entries())
      this.number(`commitment_info.${COMPUTED[index]}`, info[COMPUTED[index]], rule[part]);
    return rule;
  }

  /**
   * Checks a line under the commitment of the subscription: one line has the part within the commitment, and a second
   * one the part above it.
   */
  shared(whole, left) {
    const { line, from } = this;
    const info = line.commitment_info;
    const isAbove = this.kind === 'overage';
    this.number('computed_from.base_amount', from.base_amount, isAbove ? ZERO : whole);
    const isKnown = Boolean(from.of_term?.since) && !from.less;
    this.drawn.push({ line, isKnown, isAbove, base: whole, units: most(ZERO, left.units).rounded(18) });
    if (isKnown) this.report.fields.add(this.path('line.price_unit_amount'));
    else
      this.takes('how much of the commitment of the subscription was left for it', [
        'line.amount',
        'line.quantity',
        'line.price_unit_amount',
        'line.computed_from.of_term',
      ]);
    if (!info) return this.report.differs(line.id, 'commitment_info', 'nothing', 'the commitment of the subscription');
    const own = isAbove ? 'computed_overage_amount' : 'computed_commitment_utilized_amount';
    const { amount } = this.less();
    for (const field of COMPUTED)
      this.number(`commitment_info.${field}`, info[field], field === own ? this.amount.plus(amount) : ZERO);
  }

  /** A correction is the present cost of the charge less the amount billed before. */
  correction(whole, left) {
    const { line, from } = this;
    const why = this.path('line.computed_from.kind');
    this.report.fields.add(why);
    if (from.billed_before === null)
      return this.amountTaken(`${line.amount}: what was billed of its charge before is not recorded`);
    const before = decimal(from.billed_before.amount, `${line.id}: billed before`);
    const difference = whole.minus(before);
    this.takes(`${from.billed_before.amount}, which other invoices have billed for the charge`);
    if (from.base_amount !== undefined && from.base_amount !== null) {
      this.takes('what the commitment makes of the difference', [
        'line.computed_from.base_amount',
        'line.computed_from.billed_before',
        'line.computed_from.drawn_from',
      ]);
      return this.amountTaken(`${line.amount}: what the commitment makes of the difference`);
    }
    const isPart =
      difference.compare(ZERO) < 0 && this.amount.compare(difference) > 0 && this.amount.compare(ZERO) <= 0;
    if (isPart) {
      this.report.fields.add(this.path('line.computed_from.billed_before'));
      return this.amountTaken(`${line.amount}: as much of ${textOf(difference)} as the invoice had room for`);
    }
    this.report.fields.add(this.path('line.computed_from.drawn_from'));
    this.number('amount', line.amount, difference);
    if (left.units === null)
      return this.takes('how many units these are', ['line.quantity', 'line.computed_from.billed_before.quantity']);
    const units = most(ZERO, left.units).rounded(18).minus(decimal(from.billed_before.quantity, 'units billed before'));
    this.number('quantity', line.quantity, units);
  }

  /** A surplus is the amount invoiced during the period in excess of the final cost. */
  surplus() {
    const { line, from } = this;
    this.number('computed_from.base_amount', from.base_amount, ZERO);
    this.nothing('computed_from.breakdown', from.breakdown);
    this.nothing('computed_from.less', from.less);
    if (this.amount.compare(ZERO) > 0) this.number('amount', line.amount, ZERO);
    this.takes('whether the subscription commits to it', ['line.computed_from.drawn_from']);
    this.amountTaken(`${line.amount}: what was invoiced too much before the period was over`);
  }

  trueUp() {
    const { line, from } = this;
    const info = line.commitment_info;
    this.nothing('parent_line_item_id', line.parent_line_item_id);
    this.nothing('computed_from.price', from.price);
    this.number('quantity', line.quantity, ONE);
    this.takes('the time that it is for', ['line.period_start', 'line.period_end']);
    if (!from.of_term)
      return this.report.differs(line.id, 'computed_from.of_term', 'nothing', 'what was used of the commitment');
    const used = decimal(from.of_term.used, 'what was used');
    const amount = decimal(from.of_term.committed, 'a commitment');
    const lacking = this.money(most(ZERO, this.money(amount).minus(used)));
    this.number('amount', line.amount, lacking);
    this.number('computed_from.base_amount', from.base_amount, used);
    const said = {
      computed_commitment_utilized_amount: ZERO,
      computed_overage_amount: ZERO,
      computed_true_up_amount: lacking,
    };
    if (info) for (const field of COMPUTED) this.number(`commitment_info.${field}`, info[field], said[field]);
    for (const field of [
      'quantity',
      'proration',
      'share',
      'breakdown',
      'allowances',
      'allowance_parts',
      'less',
      'billed_before',
      'drawn_from',
    ])
      this.nothing(`computed_from.${field}`, from[field]);
    this.takes(`that ${from.of_term.used} of ${from.of_term.committed} were used in the term`, [
      'line.computed_from.of_term.since',
      'line.computed_from.of_term.is_last',
    ]);
  }

  priceUnit(exact) {
    const { line, entry } = this;
    if (!entry.price_unit) return;
    const rate = decimal(entry.price_unit.conversion_rate, `${line.id}: conversion rate`);
    if (rate.isZero()) throw new Unreadable(`${line.id}: a conversion rate of 0 is none`);
    const from = this.money(exact).equals(this.amount) ? [exact, this.amount] : [this.amount];
    const [first, ...others] = from.map((amount) => amount.over(rate).rounded(18));
    const stated = line.price_unit_amount;
    if (stated === null || !others.some((one) => one.equals(decimal(stated, `${line.id}: price_unit_amount`))))
      this.number('price_unit_amount', stated, first);
  }
}

function offsetOf(text) {
  if (!/^[0-9]+$/.test(String(text))) throw new Unreadable(`${JSON.stringify(text)} is no offset of the log`);
  return BigInt(text);
}

/** Usage above the commitment of a subscription costs the factor times as much, over all lines. */
function checkOverage(lines, places, report) {
  const shared = lines.map(({ line }) => line).filter((line) => line.computed_from?.drawn_from === 'subscription');
  if (shared.length === 0 || shared.some((line) => line.computed_from.less)) return;
  const isAbove = (line) => line.computed_from.kind === 'overage';
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

/**
 * Checks the draws on the commitment of a subscription in one term. Within one billing period the lines draw in their
 * order; in a longer term each draws its share of the rest. The use earlier in the term is taken as stated.
 */
function checkPools(drawn, lines, places, report) {
  const pools = grouped(drawn, ({ line }) => instant(line.computed_from.of_term?.since ?? '1970-01-01T00:00:00Z'));
  for (const those of pools.values()) {
    if (!those.every(({ isKnown }) => isKnown)) {
      // Other invoices have billed a part of these charges, so the draws are taken as stated.
      for (const { line, isKnown } of those)
        if (isKnown) takeField(lines, line, ['line.amount', 'line.quantity', 'line.computed_from.of_term'], report);
      continue;
    }
    checkPool(those, places, report);
  }
  checkTrueUps(pools, lines, report);
}

function takeField(lines, line, fields, report) {
  report.takes(
    line.id,
    'how much of the commitment of the subscription was left for it',
    fields.map((field) => `lines[${lines.findIndex((entry) => entry.line.id === line.id)}].${field}`),
  );
}

const termOf = ({ line }) => {
  const { used, committed: amount } = line.computed_from.of_term;
  return { used: decimal(used, `${line.id}: what was used`), amount: decimal(amount, `${line.id}: a commitment`) };
};

function checkPool(those, places, report) {
  const { used: drawn, amount: whole } = termOf(those[0]);
  for (const one of those)
    for (const field of ['used', 'amount'])
      if (!termOf(one)[field].equals(termOf(those[0])[field]))
        report.differs(one.line.id, `computed_from.of_term: ${field}`, textOf(termOf(one)[field]), 'that of its term');
  const [used, amount] = [drawn.rounded(places), whole.rounded(places)];
  const info = those[0].line.commitment_info;
  const first = those.filter(({ isAbove }) => !isAbove);
  const bases = first.map(({ base }) => base);
  const above = aboveOf(used.plus(sumOf(bases)), amount).minus(aboveOf(used, amount));
  const within = info.duration ? partsOf(sumOf(bases).minus(above), bases, places) : inTurn(bases, { used, amount });
  const over = bases.map((base, index) => base.minus(within[index]));
  const factor = decimal(info.overage_factor ?? '1', 'a factor');
  const overage = partsOf(above.times(factor).rounded(places), over, places);
  for (const [index, one] of first.entries()) {
    const [inside, outside] = [one.line, behind(those, one)?.line];
    const units = unitsAbove(one, { above: over[index], within: within[index], outside });
    const utilized = 'computed_commitment_utilized_amount';
    report.number(inside.id, `commitment_info.${utilized}`, inside.commitment_info[utilized], within[index]);
    report.number(inside.id, 'quantity', inside.quantity, one.units.minus(units));
    if (over[index].isZero() !== (outside === undefined))
      report.differs(inside.id, 'the line beside it', outside?.id ?? 'nothing', `${textOf(over[index])} above`);
    if (outside === undefined) continue;
    const charged = 'computed_overage_amount';
    report.number(outside.id, `commitment_info.${charged}`, outside.commitment_info[charged], overage[index]);
    report.number(outside.id, 'quantity', outside.quantity, units);
  }
}

/**
 * Units above the commitment: all units of a charge are on one line, and on the overage line if nothing is within.
 * Earlier versions split them in proportion.
 */
function unitsAbove({ base, units }, { above, within, outside }) {
  if (outside === undefined || base.isZero()) return ZERO;
  const whole = within.isZero() ? units : ZERO;
  const inProportion = units.times(above).over(base).rounded(18);
  return decimal(outside.quantity, `${outside.id}: quantity`).equals(inProportion) ? inProportion : whole;
}

/** Returns the overage line of a line, which directly follows it. */
function behind(those, one) {
  const next = those[those.indexOf(one) + 1];
  return next?.isAbove ? next : undefined;
}

function inTurn(bases, { used, amount }) {
  let before = used;
  return bases.map((base) => {
    const above = aboveOf(before.plus(base), amount).minus(aboveOf(before, amount));
    before = before.plus(base);
    return base.minus(above);
  });
}

/**
 * Splits a total in proportion, rounded down. The remaining minor units go to the largest remainders; of equal remainders,
 * the last comes first.
 */
function partsOf(total, weights, places) {
  if (total.isZero()) return weights.map(() => ZERO);
  const whole = sumOf(weights);
  const parts = weights.map((weight, index) => {
    const exact = total.times(weight).over(whole);
    const units = floorOf(exact.times(new Fraction(power(places))));
    return { index, units, remainder: exact.minus(new Fraction(units, power(places))) };
  });
  const { n, d } = total.times(new Fraction(power(places)));
  const left = n / d - parts.reduce((sum, { units }) => sum + units, 0n);
  const first = [...parts].sort((a, b) => b.remainder.compare(a.remainder) || b.index - a.index).slice(0, Number(left));
  for (const one of first) one.units += 1n;
  return parts.map(({ units }) => new Fraction(units, power(places)));
}

/** Checks the use that a true-up states for its term: the earlier use plus the cost of the term's lines on this invoice. */
function checkTrueUps(pools, lines, report) {
  const isCorrected = lines.some(({ line }) => CORRECTIONS.includes(line.computed_from?.kind));
  if (isCorrected) return;
  for (const { line } of lines) {
    const { kind, of_term } = line.computed_from ?? {};
    if (kind !== 'true_up' || !of_term?.since) continue;
    const those = pools.get(instant(of_term.since));
    if (!those?.every(({ isKnown }) => isKnown)) continue;
    const { used, amount } = termOf(those[0]);
    const drawn = sumOf(those.filter(({ isAbove }) => !isAbove).map(({ base }) => base));
    report.number(line.id, 'computed_from.of_term.used', of_term.used, used.plus(drawn));
    report.number(line.id, 'computed_from.of_term.committed', of_term.committed, amount);
  }
}

/**
 * Splits an amount in proportion, in whole minor units and rounded down. The remaining units go to the largest
 * remainders; of equal remainders, the last comes first.
 */
function spread(amount, weights, places) {
  const whole = sumOf(weights);
  if (amount.isZero() || whole.isZero()) return weights.map(() => ZERO);
  const unit = new Fraction(1n, power(places));
  const shares = weights.map((weight, index) => {
    const exact = amount.times(weight).over(whole);
    const part = new Fraction(floorOf(exact.over(unit))).times(unit);
    return { index, part, rest: exact.minus(part) };
  });
  const parts = shares.map(({ part }) => part);
  let left = amount.minus(sumOf(parts));
  for (const { index } of shares.toSorted((a, b) => b.rest.compare(a.rest) || b.index - a.index)) {
    if (left.compare(ZERO) <= 0) break;
    parts[index] = parts[index].plus(unit);
    left = left.minus(unit);
  }
  return parts;
}

const of = (record, field) => decimal(record[field], field);
const isBack = (line) => of(line, 'amount').compare(ZERO) < 0;

/**
 * Checks the amount that a coupon takes off. `left` is the amount still left to discount. `returned` is the amount of
 * discounts that the invoice credits, or null.
 */
function takesOff(coupon, { name, path, left, rooms, returned, places }, report) {
  const { terms, coupon_id, coupon_association_id, line_id } = coupon;
  report.same(name, 'terms.id', terms.id, coupon_id);
  const isFixed = terms.type === 'fixed';
  const [own, other] = isFixed ? ['amount_off', 'percentage_off'] : ['percentage_off', 'amount_off'];
  if (terms[other] !== null) report.differs(name, `terms.${other}`, terms[other], 'nothing');
  if (terms[own] === null) return report.differs(name, `terms.${own}`, 'nothing', 'what the coupon takes off');
  // A fixed coupon of a subscription has one amount for all its lines.
  const key = coupon_association_id ?? `${coupon_id}/${line_id}`;
  const value = of(terms, own);
  const room = isFixed ? (rooms.get(key) ?? value) : of(coupon, 'original_price').times(value).over(HUNDRED);
  const expected = least(left, room.rounded(places));
  const off = of(coupon, 'discounted_amount');
  // On the invoice of a subscription change, a fixed coupon takes off at most the discount that the credited lines give
  // back, which may be less than its full amount. On other invoices it applies in full.
  const isLess = isFixed && returned !== null && off.compare(expected) < 0 && off.compare(ZERO) >= 0;
  if (!isLess) report.number(name, 'discounted_amount', coupon.discounted_amount, expected);
  else {
    report.takes(name, `${coupon.discounted_amount} of ${terms.amount_off}, what is left of it`);
    if (off.compare(returned) > 0) report.number(name, 'discounted_amount', coupon.discounted_amount, returned);
  }
  // Slightly different terms may give the same amount, so the term is taken as stated.
  report.fields.add(`${path}.terms.${own}`);
  rooms.set(key, room.minus(off));
}

/** Sum of the discounts that the invoice of a change credits; null for any other invoice, and for an invoice without credits. */
function discountsReturned({ billing_reason }, lines) {
  if (billing_reason !== 'SUBSCRIPTION_UPDATE' || !lines.some(isBack)) return null;
  const given = lines
    .filter(isBack)
    .map((line) => of(line, 'line_item_discount').plus(of(line, 'invoice_level_discount')));
  return ZERO.minus(sumOf(given));
}

/**
 * Checks the coupons in the order of the document: first those of lines, then those of the invoice. Each applies to the
 * rest that the ones before it left.
 */
function checkDiscounts({ invoice, lines: entries, coupons, minor_units: places }, report) {
  const lines = entries.map(({ line }) => line);
  const returned = discountsReturned(invoice, lines);
  const indexes = new Map(lines.map(({ id }, index) => [id, index]));
  const taken = lines.map(() => ({ line: ZERO, invoice: ZERO }));
  const rooms = new Map();
  const leftOf = (index) => of(lines[index], 'amount').minus(taken[index].line).minus(taken[index].invoice);
  let isSpread = true;
  const inAll = sumOf(coupons.map((coupon) => of(coupon, 'discounted_amount')));
  if (coupons.length > 0) report.takes('invoice', `that ${textOf(inAll)} is what these coupons agree on`);
  for (const [at, coupon] of coupons.entries()) {
    const path = `coupons[${at}]`;
    const { terms, line_id } = coupon;
    const name = `${path} (${coupon.coupon_id})`;
    const index = line_id === null ? null : indexes.get(line_id);
    if (index === undefined) {
      report.differs(name, 'line_id', line_id, 'a line of the invoice');
      continue;
    }
    const [price, off] = [of(coupon, 'original_price'), of(coupon, 'discounted_amount')];
    const left = index === null ? price : least(price, most(ZERO, leftOf(index)));
    if (terms === null) report.takes(name, `${coupon.discounted_amount}: its terms are not recorded`, [path]);
    else takesOff(coupon, { name, path, left, rooms, returned, places }, report);
    if (index !== null) {
      report.number(name, 'original_price', coupon.original_price, of(lines[index], 'amount'));
      taken[index].line = taken[index].line.plus(off);
      continue;
    }
    const lefts = lines.map((line, place) => (isBack(line) ? ZERO : most(ZERO, leftOf(place))));
    const sums = [sumOf(lefts), most(ZERO, sumOf(lines.map((_, place) => leftOf(place))))];
    if (sums.some((sum) => sum.equals(price)))
      for (const [place, part] of spread(off, lefts, places).entries())
        taken[place].invoice = taken[place].invoice.plus(part);
    else {
      // The coupon may apply to the charges of certain times only; the document does not name their lines.
      isSpread = false;
      if (price.compare(sums[0]) > 0) report.number(name, 'original_price', coupon.original_price, sums[0]);
      report.takes(name, `that it works on ${coupon.original_price} of the invoice`, [`${path}.original_price`]);
    }
  }
  for (const [index, line] of lines.entries()) {
    if (isBack(line)) {
      for (const field of ['line_item_discount', 'invoice_level_discount'])
        if (!of(line, field).isZero()) {
          report.takes(line.id, `${line[field]} of ${field}, which it gives back`);
          if (of(line, field).compare(ZERO) > 0) report.differs(line.id, field, line[field], 'at most 0');
        }
      continue;
    }
    report.number(line.id, 'line_item_discount', line.line_item_discount, taken[index].line);
    if (isSpread) report.number(line.id, 'invoice_level_discount', line.invoice_level_discount, taken[index].invoice);
  }
  if (isSpread) return;
  const ofInvoice = coupons.filter(({ line_id }) => line_id === null);
  const expected = sumOf(ofInvoice.map((one) => of(one, 'discounted_amount')));
  const spreadOut = sumOf(lines.filter((line) => !isBack(line)).map((line) => of(line, 'invoice_level_discount')));
  report.number('invoice', 'invoice_level_discount of all lines', textOf(spreadOut), expected);
  report.takes('invoice', 'how its discounts are spread over its lines, because not all coupons work on all of them');
}

const taxOf = (line, behavior) =>
  sumOf((line.taxes ?? []).filter((tax) => tax.tax_behavior === behavior).map((tax) => of(tax, 'tax_amount')));
const rateKey = ({ tax_rate_id, tax_behavior }) => `${tax_rate_id} ${tax_behavior}`;

/** Checks the tax of each rate, and the share of each line in it. */
function checkTaxes(proof, report) {
  const { invoice, lines: entries, taxes } = proof;
  const lines = entries.map(({ line }) => line);
  for (const line of lines) {
    report.number(line.id, 'tax_amount', line.tax_amount, taxOf(line, 'exclusive'));
    report.number(line.id, 'included_tax_amount', line.included_tax_amount, taxOf(line, 'inclusive'));
  }
  for (const tax of taxes) {
    const isFixed = tax.tax_rate_type === 'fixed';
    const [own, other] = isFixed ? ['fixed_value', 'percentage_value'] : ['percentage_value', 'fixed_value'];
    if (tax[own] === null) report.differs(nameOf(tax), own, 'nothing', 'the terms of the rate');
    if (tax[other] !== null) report.differs(nameOf(tax), other, tax[other], 'nothing');
  }
  // An invoice that was skipped, or void before it was final, is not taxed. The tax that its lines credit is taken as
  // stated.
  if (invoice.finalized_at === null && taxes.length === 0) {
    const said = lines.flatMap((line, index) => (line.taxes === null ? [] : [`lines[${index}].line.taxes`]));
    if (said.length > 0) report.takes('invoice', 'the tax that its lines give back: it was never final', said);
    return;
  }
  const applied = taxes.filter(({ is_given_back }) => !is_given_back);
  const back = taxes.filter(({ is_given_back }) => is_given_back);
  const charged = lines.filter((line) => !isBack(line));
  sharesAddUp({ taxes: applied, lines: charged, what: 'of what is charged' }, report);
  sharesAddUp({ taxes: back, lines: lines.filter(isBack), what: 'given back' }, report);
  for (const tax of back) {
    const those = lines.filter((line) => isBack(line) && shareOf(line, tax) !== null);
    report.number(nameOf(tax), 'taxable_amount given back', tax.taxable_amount, sumOf(those.map(netOf)));
    const terms = ['percentage_value', 'fixed_value', 'tax_rate_type'];
    report.takes(
      nameOf(tax),
      `${tax.tax_amount} of tax, as it was billed with what is given back`,
      terms.map((field) => `taxes[${taxes.indexOf(tax)}].${field}`),
    );
  }
  if (applied.length > 0) checkRates(applied, proof, report);
}

const HUNDRED = new Fraction(100n);

function grouped(those, keyOf) {
  const groups = new Map();
  for (const one of those) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}

const nameOf = ({ tax_rate_id, name }) => `tax ${name} (${tax_rate_id})`;
const netOf = (line) =>
  of(line, 'amount').minus(of(line, 'line_item_discount')).minus(of(line, 'invoice_level_discount'));

/** Tax of a line by one rate; null if the line does not have the rate. */
function shareOf(line, tax) {
  const own = (line.taxes ?? []).filter((one) => rateKey(one) === rateKey(tax));
  return own.length === 0 ? null : sumOf(own.map((one) => of(one, 'tax_amount')));
}

/** The tax of each rate is the sum over the lines, and no line has another rate. */
function sharesAddUp({ taxes, lines, what }, report) {
  const byRate = grouped(taxes, rateKey);
  for (const [first, ...others] of byRate.values()) {
    const stated = sumOf([first, ...others].map((tax) => of(tax, 'tax_amount')));
    const sum = sumOf(lines.map((line) => shareOf(line, first) ?? ZERO));
    report.number(nameOf(first), `tax_amount ${what}`, textOf(stated), sum);
  }
  for (const line of lines)
    for (const tax of line.taxes ?? [])
      if (!byRate.has(rateKey(tax))) report.differs(line.id, 'taxes', rateKey(tax), `a rate of the invoice, ${what}`);
}

function checkRates(applied, { lines: entries, taxes, minor_units: places }, report) {
  const lines = entries.map(({ line }) => line);
  // Credited lines are taxed only if they were not taxed before; amounts paid by credits are taxed if a setting says so.
  // The document states neither, so all four combinations are tried.
  const bases = [false, true].flatMap((withBack) =>
    [false, true].map((withCredits) =>
      lines.map((line) => {
        if (isBack(line) && !withBack) return ZERO;
        return withCredits ? netOf(line) : netOf(line).minus(of(line, 'prepaid_credits_applied'));
      }),
    ),
  );
  const answers = bases.map((amounts) => taxesOn(amounts, applied, places));
  const agrees = (answer) =>
    applied.every(
      (tax, index) =>
        of(tax, 'taxable_amount').equals(answer[index].taxable) && of(tax, 'tax_amount').equals(answer[index].tax),
    );
  const found = Math.max(answers.findIndex(agrees), 0);
  const computed = answers[found];
  for (const [index, tax] of applied.entries()) {
    report.number(nameOf(tax), 'taxable_amount', tax.taxable_amount, computed[index].taxable);
    report.number(nameOf(tax), 'tax_amount', tax.tax_amount, computed[index].tax);
    // Slightly different terms may give the same tax, so they are taken as stated.
    const path = `taxes[${taxes.indexOf(tax)}]`;
    for (const field of ['percentage_value', 'fixed_value']) report.fields.add(`${path}.${field}`);
    if (computed[index].isLimited) report.fields.add(`${path}.tax_rate_type`);
  }
  for (const { name, tax_rate_type, percentage_value, fixed_value, tax_behavior } of applied) {
    const terms = tax_rate_type === 'fixed' ? fixed_value : `${percentage_value} %`;
    report.takes('invoice', `that it is taxed with ${name}: ${terms}, ${tax_behavior}`);
  }
  const weights = bases[found].map((amount) => most(ZERO, amount));
  const shares = spreadOver(applied, weights, places);
  for (const [at, line] of lines.entries()) {
    if (isBack(line)) continue;
    for (const those of grouped(applied, rateKey).values()) {
      const expected = sumOf(those.map((tax) => shares.get(tax)[at]));
      report.number(line.id, `tax of ${those[0].name}`, textOf(shareOf(line, those[0]) ?? ZERO), expected);
    }
  }
}

/**
 * Splits the tax over the lines. Inclusive tax is split as one sum first and then by rate, so that no line has more tax
 * than its amount.
 */
function spreadOver(applied, weights, places) {
  const tax = (one) => of(one, 'tax_amount');
  const inclusive = applied.filter(({ tax_behavior }) => tax_behavior === 'inclusive');
  let left = spread(sumOf(inclusive.map(tax)), weights, places);
  const shares = new Map();
  for (const one of inclusive) {
    shares.set(one, spread(tax(one), left, places));
    left = left.map((amount, index) => amount.minus(shares.get(one)[index]));
  }
  for (const one of applied) if (!shares.has(one)) shares.set(one, spread(tax(one), weights, places));
  return shares;
}

/**
 * Taxable amount and tax of each rate. Both inclusive and exclusive rates apply to the amount without all inclusive
 * tax.
 */
function taxesOn(amounts, applied, places) {
  const base = most(ZERO, sumOf(amounts));
  const value = (tax) => decimal((isFixed(tax) ? tax.fixed_value : tax.percentage_value) ?? '0', 'a rate');
  const isFixed = ({ tax_rate_type }) => tax_rate_type === 'fixed';
  const inclusive = applied.filter((tax) => tax.tax_behavior === 'inclusive');
  const fixed = sumOf(inclusive.filter(isFixed).map(value));
  const percent = sumOf(inclusive.filter((tax) => !isFixed(tax)).map(value));
  const inner = most(ZERO, base.minus(fixed)).times(HUNDRED).over(percent.plus(HUNDRED));
  const taxOn = (net, tax) => {
    if (net.isZero()) return ZERO;
    return (isFixed(tax) ? value(tax) : net.times(value(tax)).over(HUNDRED)).rounded(places);
  };
  let left = base;
  const answers = new Map();
  for (const tax of inclusive) {
    const own = taxOn(isFixed(tax) ? base : inner, tax);
    const amount = least(left, own);
    left = left.minus(amount);
    answers.set(tax, {
      tax: amount,
      isLimited: base.isZero() || inner.isZero() || !own.equals(amount) || left.isZero(),
    });
  }
  return applied.map((tax) => {
    const answer = answers.get(tax) ?? { tax: taxOn(left, tax), isLimited: left.isZero() };
    return { ...answer, taxable: left };
  });
}

function checkStatus({ invoice }, report) {
  const expects = (field, isThere) => {
    const stated = invoice[field];
    if ((stated !== null) !== isThere)
      report.differs(
        'invoice',
        field,
        stated,
        `${isThere ? 'something' : 'nothing'}, because it is ${invoice.invoice_status}`,
      );
  };
  expects('voided_at', invoice.invoice_status === 'VOIDED');
  if (invoice.invoice_status !== 'VOIDED')
    for (const field of ['finalized_at', 'invoice_number']) expects(field, invoice.invoice_status === 'FINALIZED');
  const [due, paid, refunded] = ['amount_due', 'amount_paid', 'refunded_amount'].map((field) => of(invoice, field));
  const over = paid.minus(due);
  const { payment_status: status } = invoice;
  const says = (computed) => report.differs('invoice', 'payment_status', status, computed);
  const sums = `${invoice.amount_paid} of ${invoice.amount_due} paid, ${invoice.refunded_amount} given back`;
  if (status === 'SUCCEEDED' && !over.isZero()) says(`what goes with ${sums}`);
  if (status === 'OVERPAID' && over.compare(ZERO) <= 0) says(`what goes with ${sums}`);
  if (status.endsWith('REFUNDED') && refunded.isZero()) says(`what goes with ${sums}`);
  if (['PENDING', 'FAILED', 'PROCESSING'].includes(status) && over.compare(ZERO) > 0) says(`what goes with ${sums}`);
  if (!refunded.isZero())
    return report.takes('invoice', `refunded_amount of ${invoice.refunded_amount}`, ['invoice.overpaid_amount']);
  if (over.compare(ZERO) > 0) report.number('invoice', 'overpaid_amount', invoice.overpaid_amount, over);
  else if (invoice.overpaid_amount !== null)
    report.differs('invoice', 'overpaid_amount', invoice.overpaid_amount, 'nothing');
}

/** Credits applied after tax are a part of the paid amount. An earlier version did not have them. */
function checkCreditsAfterTax(invoice, report) {
  report.fields.add('invoice.total_credits_applied_after_tax');
  if (invoice.total_credits_applied_after_tax === undefined) return;
  const [credits, paid] = ['total_credits_applied_after_tax', 'amount_paid'].map((field) => of(invoice, field));
  const isPart = credits.compare(ZERO) >= 0 && (credits.isZero() || credits.compare(paid) <= 0);
  if (!isPart)
    report.differs(
      'invoice',
      'total_credits_applied_after_tax',
      invoice.total_credits_applied_after_tax,
      `a part of ${invoice.amount_paid}, which was paid in all`,
    );
  if (!credits.isZero())
    report.takes(
      'invoice',
      `total_credits_applied_after_tax of ${invoice.total_credits_applied_after_tax}: from which credits`,
    );
}

function checkTotals(proof, report) {
  const { invoice, lines, minor_units } = proof;
  const own = (field) => decimal(invoice[field], `invoice: ${field}`);
  const over = (field) => sumOf(lines.map(({ line }) => decimal(line[field], `${line.id}: ${field}`)));
  report.same('invoice', 'minor_units', minor_units, minorUnits(invoice.currency));
  if (lines.length === 0)
    report.takes('invoice', 'whose it is: it has no lines', [
      'invoice.id',
      'invoice.customer_id',
      'invoice.currency',
      'minor_units',
    ]);
  report.number('invoice', 'subtotal', invoice.subtotal, over('amount'));
  const discounts = over('line_item_discount').plus(over('invoice_level_discount'));
  for (const [field, spread] of [
    ['total_discount', discounts],
    ['total_prepaid_credits_applied', over('prepaid_credits_applied')],
    ['total_tax', over('tax_amount')],
  ])
    report.number('invoice', field, invoice[field], spread);
  if (!own('total_prepaid_credits_applied').isZero())
    report.takes(
      'invoice',
      `total_prepaid_credits_applied of ${invoice.total_prepaid_credits_applied}: from which credits`,
    );
  checkDiscounts(proof, report);
  checkTaxes(proof, report);
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
  report.fields.add('invoice.amount_paid');
  if (!own('amount_paid').isZero()) report.takes('invoice', `amount_paid of ${invoice.amount_paid}`);
  checkCreditsAfterTax(invoice, report);
  if (!own('adjustment_amount').isZero()) report.takes('invoice', `adjustment_amount of ${invoice.adjustment_amount}`);
  checkStatus(proof, report);
}

/**
 * `proof` is the document. `events` is a function that returns the lines of the file, each time from the first; null
 * without a file. Returns {differences, stated, fields}: the differences, the facts that were not computed, and the
 * fields taken as stated.
 */
export async function verify(proof, events = null) {
  if (proof?.format !== FORMAT)
    throw new Unreadable(`the format is ${JSON.stringify(proof?.format)}, and not ${FORMAT}`);
  const report = new Report();
  checkShape(DOCUMENT, proof, '', report);
  // A document with missing or invalid fields cannot be computed.
  if (report.differences.length > 0) return report;
  const { invoice, lines, minor_units: places } = proof;
  if (new Set(lines.map(({ line }) => line.id)).size < lines.length)
    report.differs('invoice', 'lines', 'one id', 'an id for each line');
  const usage = lines.filter(({ counted, line }) => counted !== null && line.computed_from !== null);
  const measured = events === null ? new Map() : await readEvents(usage, events, report);
  const drawn = [];
  const parts = [
    ...lines.map((entry, index) => () => {
      new LineCheck(entry, { index, invoice, places, events: measured, lines, drawn, report }).run();
    }),
    () => checkOverage(lines, places, report),
    () => checkPools(drawn, lines, places, report),
    () => checkTotals(proof, report),
  ];
  for (const [index, check] of parts.entries())
    try {
      check();
    } catch (error) {
      // Invalid price terms throw one of these errors, which is reported as a difference.
      if (!(error instanceof Unreadable || error instanceof TypeError || error instanceof RangeError)) throw error;
      report.differs(lines[index]?.line.id ?? 'invoice', 'document', error.message, 'what can be computed with');
    }
  return report;
}

/** Side of the sibling hash at each step of the path from a leaf to the root (RFC 9162, 2.1.3.2). */
function sidesOf(index, size) {
  const sides = [];
  let [at, last] = [index, size - 1];
  for (; last > 0; at = Math.floor(at / 2), last = Math.floor(last / 2)) {
    if (at % 2 === 1) sides.push('left');
    else if (at < last) sides.push('right');
  }
  return sides;
}

const EVENT_DOCUMENT = {
  format: 'text',
  invoice_id: 'text',
  event_id: 'text',
  lines: [
    {
      line_id: 'text',
      event_count: 'integer',
      index: 'integer',
      leaf: { event_id: 'text', timestamp_us: 'text', external_customer_id: 'text', value: 'text', group: 'text' },
      leaf_hash: 'text',
      path: [{ side: 'left|right', hash: 'text' }],
      root: 'text',
    },
  ],
};

/**
 * Checks that one event is in the trees of its lines: from its leaf to the roots in the document. `digest` is SHA-256 of several byte
 * arrays; that of a browser is asynchronous.
 */
export async function verifyEvent(proof, shown, digest = sha256) {
  const report = new Report();
  checkShape(EVENT_DOCUMENT, shown, '', report);
  if (report.differences.length > 0) return report;
  const { format, event_id, invoice_id, lines } = shown;
  report.same('event', 'format', format, FORMAT);
  report.same('event', 'invoice_id', invoice_id, proof.invoice.id);
  for (const { line_id, leaf, leaf_hash, path, root, index, event_count } of lines) {
    const seal = proof.lines.find(({ line }) => line.id === line_id)?.seal;
    report.same(line_id, 'leaf.event_id', leaf.event_id, event_id);
    const fields = [leaf.event_id, leaf.timestamp_us, leaf.external_customer_id, leaf.value, leaf.group];
    let hash = await Promise.resolve(digest(LEAF, leafBytes(fields)));
    report.same(line_id, 'leaf_hash', leaf_hash, toHex(hash));
    report.same(line_id, 'event_count', event_count, seal?.event_count);
    if (!(index >= 0 && index < event_count)) {
      report.differs(line_id, 'index', index, `less than ${event_count}`);
      continue;
    }
    // The sides follow from the index of the event, not from the sides that the document states.
    const sides = sidesOf(index, event_count);
    report.same(line_id, 'path: sides', path.map(({ side }) => side).join(), sides.join());
    for (const [step, side] of sides.entries()) {
      const other = fromHex(path[step]?.hash ?? '');
      hash = await Promise.resolve(side === 'left' ? digest(NODE, other, hash) : digest(NODE, hash, other));
    }
    report.same(line_id, 'root', root, toHex(hash));
    report.same(line_id, 'root in the proof of the invoice', seal?.root, root);
  }
  if (lines.length === 0) report.differs('event', 'lines', 'none', 'at least one');
  return report;
}

// ---------------------------------------------------------------------------------------------------------------------
// The command.

const USAGE = 'verify-invoice: say which files: proof.json [events.ndjson] [--event event-proof.json]';

/** Formats the fields that are taken as stated, each once for all lines. */
function fieldsText(fields) {
  const groups = new Map();
  for (const path of fields) {
    const generic = path.replace(/\[[0-9]+\]/g, '');
    const [, group = '', field] = /^(?:(invoice|lines|coupons|taxes)\.)?(.*)$/.exec(generic);
    groups.set(group, (groups.get(group) ?? new Set()).add(field));
  }
  return Array.from(
    groups,
    ([group, names]) => `${group || 'document'}: ${[...names].sort((a, b) => (a < b ? -1 : 1)).join(', ')}`,
  );
}

/** States how far the checks went: an invoice is verified only if the quantities of its usage were counted. */
function verdict(subject, { differences: { length: count }, uncounted }) {
  if (count > 0) return `NOT VERIFIED: ${subject}: ${count} ${count === 1 ? 'difference' : 'differences'}`;
  if (uncounted.size === 0) return `VERIFIED: ${subject}: all that can be computed agrees`;
  const lines = uncounted.size === 1 ? '1 line' : `${uncounted.size} lines`;
  return `AMOUNTS AGREE: ${subject}: the quantities of ${lines} are taken as stated, and not counted from events`;
}

function printed(proof, report) {
  const { differences, stated, fields } = report;
  const { invoice, lines } = proof;
  const names = new Map(lines.map(({ line }) => [line.id, line.display_name ?? line.id]));
  const nameOf = (line) => (names.has(line) ? `${names.get(line)} (${line})` : line);
  const subject = `invoice ${invoice.invoice_number ?? invoice.id}, ${invoice.total} ${invoice.currency}, ${lines.length} lines`;
  const out = [verdict(subject, report)];
  for (const { line, what } of stated) out.push(`taken as stated: ${nameOf(line)}: ${what}`);
  if (fields.size > 0)
    out.push('taken as stated, because the document alone does not show it, or nothing that is charged depends on it:');
  for (const text of fieldsText(fields)) out.push(`  ${text}`);
  for (const { line, field, stated: said, computed, digit } of differences)
    out.push(
      `DIFFERS: ${nameOf(line)}: ${field}: stated ${said}, computed ${computed}${digit === '' ? '' : ` (${digit})`}`,
    );
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
      const { differences } = await verifyEvent(proof, JSON.parse(readFileSync(eventFile, 'utf8')));
      report.differences.push(...differences);
    }
    console.log(printed(proof, report));
    return report.differences.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(`NOT CHECKED: ${error.message}`);
    return 2;
  }
}

// The console imports this file into a browser, which has no process.
const file = globalThis.process?.argv[1];
const isCommand = file !== undefined && import.meta.url === pathToFileURL(realpathSync(file)).href;
if (isCommand)
  void main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
