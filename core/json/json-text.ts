/**
 * An answer as JSON: the text of JSON.stringify over completeKeys, made in steps, so that whoever makes a large one can let others have their
 * turn in between. What is small is one step.
 */
import type { z } from 'zod';
import { completeKeys, unwrap } from './complete-keys.ts';

/** A list of more than these is written item by item, and what has none is written at once. */
const AT_ONCE = 32;

type Fields = Record<string, unknown>;

export function* jsonText(shape: z.core.$ZodType, value: unknown): Generator<void, string> {
  const { def } = unwrap(shape)._zod as { def: { type: string; element?: z.core.$ZodType } };
  if (def.type === 'array' && isLong(value)) return yield* listText(def.element!, value);
  const fields = def.type === 'object' && holdsLong(value) ? shapeOf(def) : undefined;
  if (fields !== undefined) return yield* objectText(fields, value as Fields);
  return JSON.stringify(completeKeys(shape, value));
}

function* listText(element: z.core.$ZodType, items: readonly unknown[]): Generator<void, string> {
  const texts: string[] = [];
  for (const item of items) {
    texts.push(yield* jsonText(element, item));
    yield;
  }
  return `[${texts.join(',')}]`;
}

function* objectText(fields: readonly [string, z.core.$ZodType][], value: Fields): Generator<void, string> {
  const texts: string[] = [];
  for (const [key, field] of fields) texts.push(`${JSON.stringify(key)}:${yield* jsonText(field, value[key])}`);
  return `{${texts.join(',')}}`;
}

/** Undefined where it also has keys that it does not name. */
function shapeOf(def: object): [string, z.core.$ZodType][] | undefined {
  const { shape, catchall } = def as { shape: Record<string, z.core.$ZodType>; catchall?: z.core.$ZodType };
  return catchall && catchall._zod.def.type !== 'never' ? undefined : Object.entries(shape);
}

function isLong(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > AT_ONCE;
}

function holdsLong(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).some(isLong);
}
