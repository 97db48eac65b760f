/**
 * The text of an answer that is kept, made once as long as it says the same (docs/decisions/0007-cached-answers.md): what goes by the
 * moment, as the instant of which it is and what was used until then, is put between its pieces.
 */
import type { z } from 'zod';
import { completeKeys, valueText } from '../../core/json/complete-keys.ts';

export type AnswerMoment = Readonly<Record<string, unknown>>;

/** What a route says from what is kept (route.ts). */
export type CachedAnswerRead<Kept extends object = object> = {
  /** While these are the same, it says the same. The text is kept with the first, and ends with it. */
  readonly of: readonly [kept: Kept, ...others: unknown[]];
  /** What is kept, with these for what changes meanwhile. A function of its own: nothing is made for each read. */
  show(record: Kept, moment: AnswerMoment): object;
  /** What it says at this moment: values that are no objects. The names are those that `show` goes by. */
  readonly moment?: AnswerMoment;
};

type SerializedAnswer = {
  /** One more than there are values of the moment; between them these, in the order of the shape. */
  readonly pieces: readonly string[];
  readonly names: readonly string[];
};

/** What was said last, and its text. */
type SerializedCacheEntry = Pick<CachedAnswerRead, 'of' | 'show'> & {
  readonly shape: z.core.$ZodType;
  readonly text: SerializedAnswer;
};

/** On what is kept itself: a map of hundreds of thousands would be made anew as a whole each time that its places are used up. */
const TEXT = Symbol('text');
type HasSerializedAnswer = { [TEXT]?: SerializedCacheEntry };

export function serializeCachedRead(shape: z.core.$ZodType, read: CachedAnswerRead): string {
  const { pieces, names } = getSerializedAnswer(shape, read);
  let result = pieces[0]!;
  for (let at = 0; at < names.length; at++) result += valueText(read.moment![names[at]!]) + pieces[at + 1]!;
  return result;
}

/** Makes it, where it is not made already, before it is asked for. */
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

/** No text of an answer contains it: Postgres stores none with this character. */
const MARK = '\u0000';

function made(shape: z.core.$ZodType, read: CachedAnswerRead): SerializedAnswer {
  const marks = Object.fromEntries(Object.keys(read.moment ?? {}).map((name) => [name, `${MARK}${name}${MARK}`]));
  const body = JSON.stringify(completeKeys(shape, read.show(read.of[0], marks)));
  const parts = body.split(/"\\u0000([\w.]+)\\u0000"/);
  const names = parts.filter((_, index) => index % 2 === 1);
  return { pieces: parts.filter((_, index) => index % 2 === 0), names: sharedNames(shape, names) };
}

/** Hundreds of thousands say the same names: the last that were made of the shape are theirs, too, where they are the same. */
function sharedNames(shape: z.core.$ZodType, names: readonly string[]): readonly string[] {
  const last = lastNames.get(shape);
  if (last?.length === names.length && names.every((name, index) => name === last[index])) return last;
  lastNames.set(shape, names);
  return names;
}

const lastNames = new WeakMap<z.core.$ZodType, readonly string[]>();
