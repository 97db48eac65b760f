/**
 * Caches the serialized text of an answer for as long as its sources are unchanged (docs/decisions/0007-cached-answers.md). Values that
 * change with time, such as the instant and the usage so far, are inserted between its pieces.
 */
import type { z } from 'zod';
import { completeKeys, valueText } from '../../core/foundation/json/complete-keys.ts';

export type AnswerMoment = Readonly<Record<string, unknown>>;

/** Cached answer of a route (route.ts). */
export type CachedAnswerRead<CachedRecord extends object = object> = {
  /** Sources of the answer. The text is valid while they are identical. It is stored on the first source and freed together with that. */
  readonly of: readonly [record: CachedRecord, ...others: unknown[]];
  /**
   * Builds the answer from the cached record and the current values. Pass a constant function: identity is compared, and no closure is
   * allocated per read.
   */
  show(record: CachedRecord, moment: AnswerMoment): object;
  /** Primitive values at this moment, keyed by the names that `show` uses. */
  readonly moment?: AnswerMoment;
};

type SerializedAnswer = {
  /** Pieces of the text. Values are inserted between them, in the order of the shape, so there is one piece more than values. */
  readonly pieces: readonly string[];
  readonly names: readonly string[];
};

/** Latest serialized text with its inputs. */
type SerializedCacheEntry = Pick<CachedAnswerRead, 'of' | 'show'> & {
  readonly shape: z.core.$ZodType;
  readonly text: SerializedAnswer;
};

/**
 * Key under which the text is stored on the cached record itself: a map with hundreds of thousands of entries would be rebuilt each time it
 * is full.
 */
const TEXT = Symbol('text');
type HasSerializedAnswer = { [TEXT]?: SerializedCacheEntry };

export function serializeCachedRead(shape: z.core.$ZodType, read: CachedAnswerRead): string {
  const { pieces, names } = getSerializedAnswer(shape, read);
  let result = pieces[0]!;
  for (let at = 0; at < names.length; at++) result += valueText(read.moment![names[at]!]) + pieces[at + 1]!;
  return result;
}

/** Builds the text in advance, if it is missing. */
export function prepareText(shape: z.core.$ZodType, read: CachedAnswerRead): void {
  getSerializedAnswer(shape, read);
}

function getSerializedAnswer(shape: z.core.$ZodType, read: CachedAnswerRead): SerializedAnswer {
  const holder = read.of[0] as HasSerializedAnswer;
  const known = holder[TEXT];
  if (known !== undefined && known.shape === shape && isSameRead(known, read)) return known.text;
  const { of, show } = read;
  const text = made(shape, read);
  holder[TEXT] = { shape, of, show, text };
  return text;
}

function isSameRead({ of, show }: SerializedCacheEntry, read: CachedAnswerRead): boolean {
  if (show !== read.show) return false;
  for (let at = 0; at < of.length; at++) if (of[at] !== read.of[at]) return false;
  return true;
}

/** Separator that never is part of an answer's text, because Postgres does not store this character. */
const MARK = '\u0000';

function made(shape: z.core.$ZodType, read: CachedAnswerRead): SerializedAnswer {
  const marks = Object.fromEntries(Object.keys(read.moment ?? {}).map((name) => [name, `${MARK}${name}${MARK}`]));
  const body = JSON.stringify(completeKeys(shape, read.show(read.of[0], marks)));
  const parts = body.split(/"\\u0000([\w.]+)\\u0000"/);
  const names = parts.filter((_, index) => index % 2 === 1);
  return { pieces: parts.filter((_, index) => index % 2 === 0), names: sharedNames(shape, names) };
}

/** Returns the latest array of the shape if it is equal, because hundreds of thousands of entries have equal names. */
function sharedNames(shape: z.core.$ZodType, names: readonly string[]): readonly string[] {
  const last = lastNames.get(shape);
  if (last?.length === names.length && names.every((name, index) => name === last[index])) return last;
  lastNames.set(shape, names);
  return names;
}

const lastNames = new WeakMap<z.core.$ZodType, readonly string[]>();
