/**
 * Encodes answers: every key that the shape declares is present, null if unset, and no other key is sent. The published client rejects an
 * answer that lacks a declared key. Instants are RFC 3339 in UTC with only the necessary digits of a fraction; decimals are text without
 * exponent. One encoder is built per shape and cached.
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';

type Encode = (value: unknown) => unknown;
type AnswerFields = Record<string, unknown>;
// oxlint-disable-next-line typescript/no-explicit-any -- the definitions of zod's kinds have no common type.
type Definition = any;

const encoders = new WeakMap<z.core.$ZodType, Encode>();

export function completeKeys(shape: z.core.$ZodType, value: unknown): unknown {
  return ensureEncoder(shape)(value);
}

/** Encodes a value that is not an object in the default format of answers. */
export function valueText(value: unknown): string {
  return JSON.stringify(timestamp(value));
}

function ensureEncoder(shape: z.core.$ZodType): Encode {
  const known = encoders.get(shape);
  if (known) return known;
  // The encoder is cached before it is built, so that a shape that contains itself does not recurse forever.
  let built: Encode | undefined;
  const encoder: Encode = (value) => {
    if (value === null || value === undefined) return null;
    built ??= build(shape);
    return built(value);
  };
  encoders.set(shape, encoder);
  return encoder;
}

function build(shape: z.core.$ZodType): Encode {
  const definition: Definition = shape._zod.def;
  switch (definition.type) {
    case 'object':
      return objectEncoder(definition);
    case 'array':
      return arrayEncoder(ensureEncoder(definition.element));
    case 'tuple':
      return tupleEncoder(
        definition.items.map(ensureEncoder),
        definition.rest ? ensureEncoder(definition.rest) : plain,
      );
    case 'record':
      return recordEncoder(ensureEncoder(definition.valueType));
    case 'union':
      return unionEncoder(definition.options);
    case 'intersection':
      return intersectionEncoder(ensureEncoder(definition.left), ensureEncoder(definition.right));
    case 'lazy':
      return ensureEncoder(definition.getter());
    case 'pipe':
      return definition.out._zod.def.type === 'transform' ? plain : ensureEncoder(definition.out);
    default:
      if (isTimestamp(shape)) return timestamp;
      // Wrappers, such as optional, nullable, default and readonly, encode as the shape that they wrap.
      return definition.innerType ? ensureEncoder(definition.innerType) : plain;
  }
}

function objectEncoder(definition: Definition): Encode {
  const fields = Object.entries(definition.shape as Record<string, z.core.$ZodType>).map(
    ([key, field]) => [key, ensureEncoder(field)] as const,
  );
  const others =
    definition.catchall && definition.catchall._zod.def.type !== 'never' ? ensureEncoder(definition.catchall) : null;
  return (value) => {
    if (typeof value !== 'object') throw new TypeError(`an object was declared, the answer holds ${typeof value}`);
    const source = value as AnswerFields;
    const answer: AnswerFields = {};
    for (const [key, encode] of fields) answer[key] = encode(source[key]);
    if (others) for (const key of Object.keys(source)) if (!(key in answer)) answer[key] = others(source[key]);
    return answer;
  };
}

function arrayEncoder(encode: Encode): Encode {
  return (value) => {
    if (!Array.isArray(value)) throw new TypeError(`an array was declared, the answer holds ${typeof value}`);
    return value.map(encode);
  };
}

function tupleEncoder(items: Encode[], rest: Encode): Encode {
  return (value) => (value as unknown[]).map((item, index) => (items[index] ?? rest)(item));
}

function recordEncoder(encode: Encode): Encode {
  return (value) => mapFields(value as AnswerFields, encode);
}

function intersectionEncoder(left: Encode, right: Encode): Encode {
  return (value) => ({ ...(left(value) as AnswerFields), ...(right(value) as AnswerFields) });
}

/** Selects the best of several shapes: equal kind, equal literals, then most keys in common. */
function unionEncoder(options: z.core.$ZodType[]): Encode {
  const bare = options.map(unwrap);
  const encodes = bare.map(ensureEncoder);
  return (value) => {
    let best = -1;
    let bestScore = -1;
    for (const [index, option] of bare.entries()) {
      const score = fit(option, value);
      if (score > bestScore) [best, bestScore] = [index, score];
    }
    return best < 0 ? plain(value) : encodes[best]!(value);
  };
}

/** Rates how well a value matches a shape: -1 if it cannot have this shape; a higher number is a better match. */
function fit(option: z.core.$ZodType, value: unknown): number {
  const definition: Definition = unwrap(option)._zod.def;
  if (definition.type === 'array' || definition.type === 'tuple') return Array.isArray(value) ? 1 : -1;
  const isFields =
    typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date) && !Decimal.isDecimal(value);
  if (definition.type === 'record') return isFields ? 0 : -1;
  if (definition.type === 'union')
    return Math.max(...definition.options.map((inner: z.core.$ZodType) => fit(inner, value)));
  if (definition.type !== 'object') return isFields || Array.isArray(value) ? -1 : 0;
  if (!isFields) return -1;
  let score = 0;
  for (const [key, field] of Object.entries(definition.shape as Record<string, z.core.$ZodType>)) {
    const source = (value as AnswerFields)[key];
    const literals = unwrap(field)._zod.values;
    if (literals && source !== undefined && source !== null && !literals.has(source as string)) return -1;
    if (source !== undefined) score += literals ? 100 : 1;
  }
  return score;
}

/** Removes lazy and wrappers such as optional or nullable. */
export function unwrap(shape: z.core.$ZodType): z.core.$ZodType {
  const definition: Definition = shape._zod.def;
  if (definition.type === 'lazy') return unwrap(definition.getter());
  return definition.innerType ? unwrap(definition.innerType) : shape;
}

/** Encodes a value without a shape: only values change, not keys. */
function plain(value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number of the answer is not finite');
  if (typeof value !== 'object') return value;
  if (value instanceof Date) return instantText(value.toISOString());
  if (Decimal.isDecimal(value)) return decimalText(value);
  if (Array.isArray(value)) return value.map(plain);
  return mapFields(value as AnswerFields, plain);
}

function isTimestamp(shape: z.core.$ZodType): boolean {
  const definition: Definition = shape._zod.def;
  return definition.format === 'datetime' || z.globalRegistry.get(shape)?.format === 'date-time';
}

function timestamp(value: unknown): unknown {
  return typeof value === 'string' ? instantText(value) : plain(value);
}

/** Answers write `…:00.000Z` and `…:00.250Z` as `…:00Z` and `…:00.25Z`, the format in which stored instants are returned. */
function instantText(text: string): string {
  if (!text.includes('.')) return text;
  return text.replace(/(:\d\d)(?:\.0+|(\.\d*[1-9])0+)Z$/, '$1$2Z');
}

function decimalText(value: Decimal): string {
  if (!value.isFinite()) throw new TypeError('a decimal of the answer is not finite');
  // `toFixed` without an argument writes no exponent, also for decimals of another decimal.js clone.
  return value.isZero() ? '0' : value.toFixed();
}

function mapFields(value: AnswerFields, encode: Encode): AnswerFields {
  const answer: AnswerFields = {};
  for (const key of Object.keys(value)) {
    const encoded = encode(value[key]);
    // This key must become a property; an assignment would set the prototype instead.
    if (key === '__proto__')
      Object.defineProperty(answer, key, { value: encoded, enumerable: true, configurable: true, writable: true });
    else answer[key] = encoded;
  }
  return answer;
}
