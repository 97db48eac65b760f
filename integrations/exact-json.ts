/**
 * JSON whose numbers keep their digits, for providers that send and expect amounts as JSON numbers. A JavaScript number would change some
 * of them, such as one of 17 digits.
 */
import { parseJson } from '../core/foundation/json/parse.ts';
import { parseDecimal } from '../core/foundation/money.ts';

/** A JSON number that is written with exactly these digits. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    const value = parseDecimal(text);
    if (value === undefined) throw new Error(`${JSON.stringify(text)} is not a decimal number`);
    this.text = value.toFixed();
  }
}

/** JSON without JavaScript numbers. Undefined fields are omitted. */
export type ExactJson =
  | string
  | boolean
  | null
  | JsonNumber
  | readonly ExactJson[]
  | { readonly [field: string]: ExactJson | undefined };

export function writeExactJson(value: ExactJson): string {
  if (value instanceof JsonNumber) return value.text;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(writeExactJson).join(',')}]`;
  const fields = Object.entries(value).flatMap(([name, field]) =>
    field === undefined ? [] : [`${JSON.stringify(name)}:${writeExactJson(field)}`],
  );
  return `{${fields.join(',')}}`;
}

/** `Array.isArray` does not recognize read-only lists. */
function isList(value: object): value is readonly ExactJson[] {
  return Array.isArray(value);
}

/**
 * Matches a quoted text, or a number outside quotes. A text without an end is matched, too: otherwise the search would begin again at each
 * of its quotes, which takes minutes for a megabyte.
 */
const TEXT_OR_NUMBER = /"[^"\\]*(?:\\[\s\S][^"\\]*)*(?:"|\\?$)|-?\d[\d.eE+-]*/g;

/** Parses JSON; numbers become texts of their digits. Throws SyntaxError. */
export function parseExactJson(text: string): unknown {
  return parseJson(text.replace(TEXT_OR_NUMBER, (token) => (token.startsWith('"') ? token : quoteNumber(token))));
}

function quoteNumber(digits: string): string {
  JSON.parse(digits);
  return `"${digits}"`;
}
