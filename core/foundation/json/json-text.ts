/**
 * Writes an answer as JSON: the text equals JSON.stringify over completeKeys. A large answer is written in steps, so that
 * the caller can run other work in between; a small one is a single step.
 */
import type { z } from 'zod';
import { completeKeys, unwrap } from './complete-keys.ts';

/** A list with more items is written in steps; a value without such a list is written at once. */
const SHORT = 32;
/** Items per step of a long list; a step per item would cost as much as the writing. */
const AT_ONCE = 8;

type JsonFields = Record<string, unknown>;

export function* jsonText(shape: z.core.$ZodType, value: unknown): Generator<void, string> {
  const { def } = unwrap(shape)._zod;
  if (def.type === 'array' && isLong(value)) return yield* listText(shape, value);
  const fields = def.type === 'object' && holdsLong(value) ? listFields(def) : undefined;
  if (fields !== undefined) return yield* objectText(fields, value as JsonFields);
  return JSON.stringify(completeKeys(shape, value));
}

function* listText(shape: z.core.$ZodType, items: readonly unknown[]): Generator<void, string> {
  const { element } = (unwrap(shape)._zod as unknown as { def: { element: z.core.$ZodType } }).def;
  const texts: string[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE) {
    const some = items.slice(from, from + AT_ONCE);
    if (some.some(holdsLong)) for (const item of some) texts.push(yield* jsonText(element, item));
    else texts.push(JSON.stringify(completeKeys(shape, some)).slice(1, -1));
    yield;
  }
  return `[${texts.join(',')}]`;
}

function* objectText(fields: readonly [string, z.core.$ZodType][], value: JsonFields): Generator<void, string> {
  const texts: string[] = [];
  for (const [key, field] of fields) texts.push(`${JSON.stringify(key)}:${yield* jsonText(field, value[key])}`);
  return `{${texts.join(',')}}`;
}

/** Lists the fields of a shape; undefined if the object allows keys that the shape does not name. */
function listFields(def: object): [string, z.core.$ZodType][] | undefined {
  const { shape, catchall } = def as { shape: Record<string, z.core.$ZodType>; catchall?: z.core.$ZodType };
  return catchall && catchall._zod.def.type !== 'never' ? undefined : Object.entries(shape);
}

function isLong(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > SHORT;
}

function holdsLong(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).some(isLong);
}
