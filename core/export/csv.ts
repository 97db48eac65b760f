/**
 * A line of CSV as RFC 4180 has it. A text that a spreadsheet would take for a formula is made one that it does not; numbers, ids and
 * instants stay as they are (docs/rules/exports.md, "Formulas").
 */
import { formatUs } from '../time/instant.ts';
import type { ColumnHead, ExportCell } from './column.ts';

export const LINE_END = '\r\n';

export function formatCsvHead(columns: readonly ColumnHead[]): string {
  return columns.map(({ name }) => quoteCell(escapeFormula(name))).join(',') + LINE_END;
}

/** The cells in the order of the columns. */
export function formatCsvLine(columns: readonly ColumnHead[], cells: readonly ExportCell[]): string {
  let line = '';
  for (let at = 0; at < columns.length; at++) {
    if (at > 0) line += ',';
    line += formatCsvCell(columns[at]!, cells[at]!);
  }
  return line + LINE_END;
}

function formatCsvCell({ kind }: ColumnHead, cell: ExportCell): string {
  if (cell === null) return '';
  if (kind === 'instant') return formatUs(cell as number);
  if (kind !== 'text') return String(cell);
  const text = cell as string;
  return PLAIN.test(text) ? text : quoteCell(escapeFormula(text));
}

/** Nearly every text: nothing in it is a formula, or has to be quoted. */
const PLAIN = /^\w[\w .:/-]*$/;

/**
 * Blanks and what nobody sees (controls, byte order marks, joiners, letters that are filled with nothing) are passed over before the first sign, as spreadsheets do. So is what
 * stands behind another delimiter, where a spreadsheet that cuts there begins a cell: quotes do not keep it from that. Apostrophes are passed over
 * as well, so that one is set before those that a text has of its own, and `undefused` gives each text back as it was.
 */
export function escapeFormula(text: string): string {
  const safe = OTHER_DELIMITERS.test(text) ? text.replace(INNER_FORMULA, "$1'") : text;
  return FORMULA.test(safe) ? `'${safe}` : safe;
}

/** The text of which `defused` made this one; any other as it is. */
export function unescapeFormula(text: string): string {
  const whole = text.startsWith("'") && FORMULA.test(text.slice(1)) ? text.slice(1) : text;
  return OTHER_DELIMITERS.test(whole) ? whole.replace(INNER_ESCAPED_FORMULA, '$1') : whole;
}

/**
 * Where spreadsheets cut at these, what follows one would begin a cell, and could be a formula. A line ends at a lone CR or LF as
 * well: RFC 4180 quotes them.
 */
const DELIMITER = String.raw`[;\t|\r\n\u0085\u2028\u2029]`;
/** A sign with which a formula begins, behind whatever is passed over. */
const FORMULA_CHARACTER = String.raw`['\s\p{C}\p{Z}\p{M}\p{DI}\u2800]*[=+\-@＝＋－＠﹦﹢﹣﹫]`;
const OTHER_DELIMITERS = new RegExp(DELIMITER);
const FORMULA = new RegExp(String.raw`^${FORMULA_CHARACTER}|^'*[\t\r\n]`, 'u');
const INNER_FORMULA = new RegExp(`(${DELIMITER})(?=${FORMULA_CHARACTER})`, 'gu');
const INNER_ESCAPED_FORMULA = new RegExp(`(${DELIMITER})'(?=${FORMULA_CHARACTER})`, 'gu');

function quoteCell(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const MUST_BE_QUOTED = /[",;\t|\r\n\u0085\u2028\u2029]/;
