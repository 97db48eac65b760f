/** Answers of fakes whose providers send amounts as JSON numbers. */
import { type ExactJson, JsonNumber, writeExactJson } from '../../../integrations/exact-json.ts';

/** Writes an answer; the named fields, which are decimal texts, become JSON numbers. */
export function writeExactAnswer(body: unknown, amounts: ReadonlySet<string>): string {
  const toNumbers = (value: unknown, field = ''): unknown => {
    if (value instanceof JsonNumber) return value;
    if (Array.isArray(value)) return value.map((one) => toNumbers(one));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toNumbers(one, name)]));
    return amounts.has(field) ? new JsonNumber(String(value)) : value;
  };
  return writeExactJson(toNumbers(body) as ExactJson);
}
