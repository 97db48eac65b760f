/**
 * Reads the units that a rate covers: "the first 1,000 calls", "1,001 to 5,000", "above that"; and the units that it is
 * priced by: "per 1,000 emails".
 */
import type { Decimal } from '../../foundation/decimal.ts';
import { type Cursor, EXTRA } from './cursor.ts';
import { ONE, type RateBound } from './fact.ts';

export function readBound(cursor: Cursor): { bound: RateBound; unit: string | null } | undefined {
  return cursor.try(() => readLimit(cursor)) ?? cursor.try(() => readRange(cursor)) ?? cursor.try(() => open(cursor));
}

/** Reads a limit. `isMost` is true for "up to", which limits the use if the phrase also has a price per interval. */
export function readLimit(cursor: Cursor): { bound: RateBound; unit: string | null; isMost: boolean } | undefined {
  cursor.takes('for', 'on');
  cursor.takes('the');
  const isNext = cursor.takes('next');
  const isMost = !isNext && cursor.takesAll('up', 'to');
  if (!isNext && !isMost && !cursor.takes('first')) return undefined;
  const count = cursor.count();
  if (count === undefined) return undefined;
  const unit = cursor.unit() ?? null;
  return { bound: isNext ? { next: count } : { upTo: count }, unit, isMost };
}

/** Reads "1,001 to 5,000", "from 1,001 to 5,000", "1,001-5,000". */
export function readRange(cursor: Cursor): { bound: RateBound; unit: string | null } | undefined {
  cursor.takes('for');
  cursor.takes('from', 'between');
  const from = cursor.number();
  if (from === undefined || !cursor.takes('to', '-', 'and', 'through')) return undefined;
  const upTo = cursor.count();
  return upTo?.gt(from) ? { bound: { upTo, from }, unit: cursor.unit() ?? null } : undefined;
}

/** Reads "above 5,000", "5,001+", "thereafter", "after that", "then beyond 5,000". */
function open(cursor: Cursor): { bound: RateBound; unit: string | null } | undefined {
  cursor.takes('and', 'then', 'for');
  if (
    cursor.takes('thereafter', 'afterwards') ||
    cursor.takesAll('after', 'that') ||
    cursor.takesAll('above', 'that') ||
    cursor.takesAll('beyond', 'that')
  )
    return { bound: { open: true }, unit: null };
  if (cursor.takes('everything')) cursor.takes('else');
  const isAbove = cursor.takes('above', 'over', 'beyond', 'after', 'from');
  const from = cursor.count();
  const isPlus = cursor.takes('+');
  if (from === undefined || !(isAbove || isPlus)) return undefined;
  return { bound: { open: true, from }, unit: cursor.unit() ?? null };
}

/** Reads "per call", "per 1,000 emails", "each", "/GB". */
export function readPiece(cursor: Cursor): { unit: string | null; per: Decimal; isExtra: boolean } | undefined {
  return cursor.try(() => {
    if (cursor.takes('each', 'apiece')) {
      const unit = cursor.unit() ?? null;
      return { unit, per: ONE, isExtra: false };
    }
    if (!cursor.takes('per', '/', 'for', 'a', 'an', 'every')) return undefined;
    cursor.takes('every', 'each');
    const per = cursor.count() ?? ONE;
    const { token } = cursor;
    const isExtra = token?.kind === 'word' && EXTRA.includes(token.word);
    const unit = cursor.unit();
    return unit === undefined ? undefined : { unit, per, isExtra };
  });
}
