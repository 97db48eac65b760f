/**
 * CSV lines in the format of RFC 4180. A text that a spreadsheet would read as a formula is escaped; numbers, ids and instants are
 * unchanged (docs/rules/exports.md, "Formulas").
 */
import { formatUs, type Microseconds } from '../../foundation/time/instant.ts';
import type { ColumnHead, ExportCell } from './column.ts';
import type { InstantFormat } from './record.ts';

const LINE_END = '\r\n';
const US_PER_MS = 1000;

export function formatCsvHead(columns: readonly ColumnHead[]): string {
  return columns.map(({ name }) => quoteCell(escapeFormula(name))).join(',') + LINE_END;
}

export function formatCsvLine(
  columns: readonly ColumnHead[],
  cells: readonly ExportCell[],
  instants: InstantFormat = 'rfc3339',
): string {
  let line = '';
  for (let at = 0; at < columns.length; at++) {
    if (at > 0) line += ',';
    line += formatCsvCell(columns[at]!, cells[at]!, instants);
  }
  return line + LINE_END;
}

function formatCsvCell({ kind }: ColumnHead, cell: ExportCell, instants: InstantFormat): string {
  if (cell === null) return '';
  if (kind === 'instant') return formatInstant(cell as number, instants);
  if (kind !== 'text') return String(cell);
  const text = cell as string;
  return PLAIN.test(text) ? text : quoteCell(escapeFormula(text));
}

/** Spreadsheets know milliseconds at most; further digits would make the cell a text. */
function formatInstant(us: Microseconds, instants: InstantFormat): string {
  if (instants === 'rfc3339') return formatUs(us);
  const [day, time = ''] = formatUs(Math.floor(us / US_PER_MS) * US_PER_MS)
    .replace('Z', '')
    .split('T');
  return `${day} ${time}`;
}

/** Matches most texts: they contain no formula and need no quotes. */
const PLAIN = /^\w[\w .:/-]*$/;

/**
 * Spreadsheets skip blanks and invisible characters (controls, byte order marks, joiners, fillers) before the first character, so the
 * pattern does too. A formula can also follow another delimiter, because a spreadsheet that splits there begins a cell even within quotes.
 * The pattern skips apostrophes too: a formula after apostrophes gets one more apostrophe, so that `unescapeFormula` restores every text.
 */
export function escapeFormula(text: string): string {
  const safe = OTHER_DELIMITERS.test(text) ? text.replace(INNER_FORMULA, "$1'") : text;
  return FORMULA.test(safe) ? `'${safe}` : safe;
}

/** Inverse of `escapeFormula`; any other text is returned unchanged. */
export function unescapeFormula(text: string): string {
  const whole = text.startsWith("'") && FORMULA.test(text.slice(1)) ? text.slice(1) : text;
  return OTHER_DELIMITERS.test(whole) ? whole.replace(INNER_ESCAPED_FORMULA, '$1') : whole;
}

/**
 * A spreadsheet that splits at these characters begins a cell after them, which could be a formula. A lone CR or LF ends a line too: RFC
 * 4180 quotes them.
 */
const DELIMITER = String.raw`[;\t|\r\n\u0085\u2028\u2029]`;
/** A character that begins a formula, after any skipped characters. */
const FORMULA_CHARACTER = String.raw`['\s\p{C}\p{Z}\p{M}\p{DI}\u2800]*[=+\-@＝＋－＠﹦﹢﹣﹫]`;
const OTHER_DELIMITERS = new RegExp(DELIMITER);
const FORMULA = new RegExp(String.raw`^${FORMULA_CHARACTER}|^'*[\t\r\n]`, 'u');
const INNER_FORMULA = new RegExp(`(${DELIMITER})(?=${FORMULA_CHARACTER})`, 'gu');
const INNER_ESCAPED_FORMULA = new RegExp(`(${DELIMITER})'(?=${FORMULA_CHARACTER})`, 'gu');

export function quoteCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const MUST_BE_QUOTED = /[",;\t|\r\n\u0085\u2028\u2029]/;
