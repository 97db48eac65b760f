/** Numbers as files write them (docs/rules/imports.md, "Numbers and dates"). */
import type { DecimalSeparator } from './record.ts';

/** Maximum length of a number or a date, so that matching a cell takes a short time. */
export const CELL_LENGTH_MAX = 64;

/** Characters between groups of digits, besides the comma or the point that is not the decimal separator. */
const BLANKS_AND_QUOTES = String.raw` \u00a0\u2009\u202f'’`;

const FORMS: Readonly<Record<DecimalSeparator, RegExp>> = {
  POINT: numberForm(',', '\\.'),
  COMMA: numberForm('.', ','),
};

/** Groups have three digits, or with commas two before the last, as in India. */
function numberForm(group: string, decimal: string): RegExp {
  const whole = `\\d+|\\d{1,3}([${group}${BLANKS_AND_QUOTES}])\\d{3}(?:\\2\\d{3})*|\\d{1,2}(?:,\\d{2})+,\\d{3}`;
  return new RegExp(`^([-+−]?)(${whole.replace('\\2', '\\3')})?(?:${decimal}(\\d*))?(?:[eE]([-+]?\\d+))?$`);
}

/** Converts a number to JSON notation with all of its digits; undefined if the cell is no number in this form. */
export function toNumberText(cell: string, separator: DecimalSeparator): string | undefined {
  const text = cell.trim();
  if (text.length > CELL_LENGTH_MAX) return undefined;
  const inner = /^\((.+)\)$/.exec(text)?.[1];
  const parts = FORMS[separator].exec(inner ?? text);
  if (parts === null) return undefined;
  const [, sign = '', whole = '', , fraction = '', exponent] = parts;
  if (whole === '' && fraction === '') return undefined;
  if (inner !== undefined && sign !== '') return undefined;
  const digits = whole.replace(/\D/g, '').replace(/^0+(?=\d)/, '') || '0';
  const isNegative = inner !== undefined || sign === '-' || sign === '−';
  return `${isNegative ? '-' : ''}${digits}${fraction === '' ? '' : `.${fraction}`}${exponent === undefined ? '' : `e${exponent}`}`;
}
