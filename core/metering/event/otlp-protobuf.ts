/**
 * Reads a metrics request of OTLP as protobuf into the shape of its JSON form, and writes the answers (docs/rules/opentelemetry.md). Fields
 * that become no usage, such as exemplars and buckets, are skipped.
 */
import { invalid } from '../../foundation/error.ts';

type Read = (reader: Reader) => unknown;
type Field = { readonly name: string; readonly wire: number; readonly read: Read; readonly isList: boolean };
type Message = Readonly<Record<number, Field>>;

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
/** Maximum number of messages of a request: a body of 8 MiB could have millions of empty ones. */
const MESSAGES_MAX = 1_000_000;
/** Maximum depth of values in values. */
const DEPTH_MAX = 64;

const field = (name: string, wire: number, read: Read, isList = false): Field => ({ name, wire, read, isList });
const text = (name: string) => field(name, BYTES, (reader) => reader.text());
const uint = (name: string) => field(name, VARINT, (reader) => Number(reader.varint()));
const bool = (name: string) => field(name, VARINT, (reader) => reader.varint() !== 0n);
const int64 = (name: string) => field(name, VARINT, (reader) => BigInt.asIntN(64, reader.varint()).toString());
const fixed64 = (name: string) => field(name, FIXED64, (reader) => reader.fixed64().toString());
const sfixed64 = (name: string) => field(name, FIXED64, (reader) => BigInt.asIntN(64, reader.fixed64()).toString());
const double = (name: string) => field(name, FIXED64, (reader) => reader.double());
const one = (name: string, message: () => Message) => field(name, BYTES, (reader) => reader.message(message()));
const list = (name: string, message: () => Message) => field(name, BYTES, (reader) => reader.message(message()), true);

const ARRAY: Message = { 1: list('values', () => VALUE) };
const ATTRIBUTES: Message = { 1: list('values', () => ATTRIBUTE) };
const VALUE: Message = {
  1: text('stringValue'),
  2: bool('boolValue'),
  3: int64('intValue'),
  4: double('doubleValue'),
  5: one('arrayValue', () => ARRAY),
  6: one('kvlistValue', () => ATTRIBUTES),
  7: field('bytesValue', BYTES, (reader) => reader.hex()),
};
const ATTRIBUTE: Message = { 1: text('key'), 2: one('value', () => VALUE) };
const attributes = list('attributes', () => ATTRIBUTE);
const times = { 2: fixed64('startTimeUnixNano'), 3: fixed64('timeUnixNano') };
const sums = { 4: fixed64('count'), 5: double('sum') };
const NUMBER: Message = { ...times, 4: double('asDouble'), 6: sfixed64('asInt'), 7: attributes, 8: uint('flags') };
const HISTOGRAM: Message = { ...times, ...sums, 9: attributes, 10: uint('flags') };
const EXPONENTIAL: Message = { ...times, ...sums, 1: attributes, 10: uint('flags') };
const SUMMARY: Message = { ...times, ...sums, 7: attributes, 8: uint('flags') };
const points = (point: Message): Message => ({
  1: list('dataPoints', () => point),
  2: uint('aggregationTemporality'),
  3: bool('isMonotonic'),
});
const METRIC: Message = {
  1: text('name'),
  3: text('unit'),
  5: one('gauge', () => points(NUMBER)),
  7: one('sum', () => points(NUMBER)),
  9: one('histogram', () => points(HISTOGRAM)),
  10: one('exponentialHistogram', () => points(EXPONENTIAL)),
  11: one('summary', () => points(SUMMARY)),
};
const SCOPE: Message = { 1: text('name'), 2: text('version'), 3: attributes };
const SCOPE_METRICS: Message = { 1: one('scope', () => SCOPE), 2: list('metrics', () => METRIC) };
const RESOURCE: Message = { 1: attributes };
const RESOURCE_METRICS: Message = { 1: one('resource', () => RESOURCE), 2: list('scopeMetrics', () => SCOPE_METRICS) };
const REQUEST: Message = { 1: list('resourceMetrics', () => RESOURCE_METRICS) };

/** Parses a request; throws if the bytes are no such message. */
export function parseOtlpProtobuf(bytes: Uint8Array): unknown {
  return new Reader(bytes).all(REQUEST);
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #end: number;
  #messages = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.length;
  }

  all(message: Message): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    while (this.#at < this.#end) {
      const tag = Number(this.varint());
      const wire = tag % 8;
      const known = message[Math.floor(tag / 8)];
      if (known === undefined || known.wire !== wire) this.#skip(wire);
      else if (known.isList) ((found[known.name] ??= []) as unknown[]).push(known.read(this));
      else found[known.name] = known.read(this);
    }
    return found;
  }

  message(message: Message): Record<string, unknown> {
    const end = this.#end;
    if (++this.#messages > MESSAGES_MAX) throw invalid('body', `must not hold more than ${MESSAGES_MAX} messages`);
    if (++this.#depth > DEPTH_MAX) throw invalid('body', `is nested deeper than ${DEPTH_MAX} levels`);
    const length = this.#length();
    this.#end = this.#at + length;
    const found = this.all(message);
    this.#end = end;
    this.#depth--;
    return found;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.#at >= this.#end) throw malformed();
      const byte = this.#bytes[this.#at++]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw malformed();
  }

  fixed64(): bigint {
    return this.#view.getBigUint64(this.#take(8), true);
  }

  /** A number that JSON has no notation for is text, as in the JSON form. */
  double(): number | string {
    const value = this.#view.getFloat64(this.#take(8), true);
    return Number.isFinite(value) ? value : String(value);
  }

  text(): string {
    const bytes = this.#slice();
    try {
      return UTF8.decode(bytes);
    } catch {
      throw malformed();
    }
  }

  hex(): string {
    return Array.from(this.#slice(), (byte) => byte.toString(16).padStart(2, '0')).join('');
  }

  #slice(): Uint8Array {
    const length = this.#length();
    const from = this.#take(length);
    return this.#bytes.subarray(from, from + length);
  }

  /** Length of what follows, which lies inside of the message. */
  #length(): number {
    const length = Number(this.varint());
    if (length > this.#end - this.#at) throw malformed();
    return length;
  }

  #take(length: number): number {
    if (length > this.#end - this.#at) throw malformed();
    const from = this.#at;
    this.#at += length;
    return from;
  }

  #skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === FIXED64) this.#take(8);
    else if (wire === BYTES) this.#take(this.#length());
    else if (wire === FIXED32) this.#take(4);
    else throw malformed();
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const malformed = () => invalid('body', 'must be a metrics request of OTLP as protobuf');

type PartialSuccess = { readonly rejectedDataPoints: string; readonly errorMessage: string };

/** Writes an `ExportMetricsServiceResponse`. */
export function formatOtlpAnswer(partialSuccess: PartialSuccess | null): Uint8Array {
  if (partialSuccess === null) return new Uint8Array();
  const { rejectedDataPoints, errorMessage } = partialSuccess;
  const inner = [
    ...tagged(1, VARINT),
    ...varint(BigInt(rejectedDataPoints)),
    ...lengthFirst(2, encodeText(errorMessage)),
  ];
  return Uint8Array.from(lengthFirst(1, inner));
}

/** Writes a `google.rpc.Status` with a message alone: a client decides by the HTTP status. */
export function formatOtlpError(message: string): Uint8Array {
  return Uint8Array.from(lengthFirst(2, encodeText(message)));
}

const encodeText = (text: string) => [...new TextEncoder().encode(text)];
const tagged = (number: number, wire: number) => varint(BigInt(number * 8 + wire));
const lengthFirst = (number: number, bytes: readonly number[]) => [
  ...tagged(number, BYTES),
  ...varint(BigInt(bytes.length)),
  ...bytes,
];

function varint(value: bigint): number[] {
  return value < 0x80n ? [Number(value)] : [Number(value & 0x7fn) | 0x80, ...varint(value >> 7n)];
}
