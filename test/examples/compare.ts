/**
 * Compares what an operation answered with what an example expects: money numerically ("0.5" = "0.50"), times as
 * instants, ">=5" and ">50" as bounds, objects by the keys that the example names. Answers the differences.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import { parseInstant } from '../../core/foundation/time/instant.ts';

export type Result = Readonly<Record<string, unknown>>;

export function differences(expected: Result, actual: Result, tolerance?: string): string[] {
  return Object.entries(expected).flatMap(([key, value]) => {
    // `status_not` is what `status` must not be; which it is must be said.
    const other = key.endsWith('_not') ? actual[key.slice(0, -'_not'.length)] : undefined;
    if (other !== undefined)
      return isEqual(value, other, tolerance) ? [`${key}: expected another than ${show(value)}`] : [];
    const answer = answerFor(key, value, actual);
    return isEqual(value, answer, tolerance) ? [] : [`${key}: expected ${show(value)}, got ${show(answer)}`];
  });
}

/** "`amount` is the rounded charge unless more digits are shown": an operation may answer `amount_exact` beside `amount`. */
function answerFor(key: string, expected: unknown, actual: Result): unknown {
  const exact = actual[`${key}_exact`];
  if (exact === undefined || !isNumeric(expected)) return actual[key];
  return decimals(expected) > decimals(actual[key]) ? exact : actual[key];
}

function isEqual(expected: unknown, actual: unknown, tolerance: string | undefined): boolean {
  if (Array.isArray(expected))
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((value, index) => isEqual(value, actual[index], tolerance))
    );
  if (expected !== null && typeof expected === 'object')
    return (
      actual !== null &&
      typeof actual === 'object' &&
      Object.entries(expected).every(([key, value]) => isEqual(value, (actual as Result)[key], tolerance))
    );
  return isEqualScalar(expected, actual, tolerance);
}

function isEqualScalar(expected: unknown, actual: unknown, tolerance: string | undefined): boolean {
  const bound = typeof expected === 'string' ? /^(>=?|<=?)(.+)$/.exec(expected) : null;
  if (bound !== null && isNumeric(actual)) return isWithin(bound[1]!, bound[2]!, actual);
  if (isNumeric(expected) && isNumeric(actual))
    return new Decimal(String(actual))
      .minus(String(expected))
      .abs()
      .lte(tolerance ?? '0');
  const [left, right] = [instantOf(expected), instantOf(actual)];
  if (left !== undefined && right !== undefined) return left === right;
  return expected === actual;
}

function isWithin(sign: string, bound: string, actual: unknown): boolean {
  const order = new Decimal(String(actual)).comparedTo(bound);
  return order === 0 ? sign.endsWith('=') : order > 0 === sign.startsWith('>');
}

function isNumeric(value: unknown): boolean {
  if (value instanceof Decimal) return true;
  return (typeof value === 'string' || typeof value === 'number') && /^-?\d+(\.\d+)?$/.test(String(value));
}

function decimals(value: unknown): number {
  return String(value).split('.')[1]?.length ?? 0;
}

function instantOf(value: unknown): number | undefined {
  return typeof value === 'string' ? parseInstant(value) : undefined;
}

function show(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value);
}
