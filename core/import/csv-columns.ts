/**
 * The columns of a CSV file: the names of fields, `metadata.tier` for what lies within one (docs/rules/imports.md, "CSV"). A row becomes
 * the value that a request would have stated; an empty cell states nothing.
 */
import { invalid } from '../error.ts';

/** The path of a column. */
export type ImportColumn = readonly string[];

export const COLUMNS_MAX = 1_000;

/** What the header names; a name that is missing, twice or unknown would be values that go nowhere. */
export function parseColumns(header: readonly string[], known: readonly string[]): ImportColumn[] {
  if (header.length > COLUMNS_MAX) throw invalid('header', `must not have more than ${COLUMNS_MAX} columns`);
  const names = header.map((name) => name.trim());
  for (const [index, name] of names.entries()) {
    if (name === '') throw invalid('header', `column ${index + 1} has no name`);
    if (names.indexOf(name) < index) throw invalid(name, 'stands twice in the header');
    const [field] = parseColumnPath(name);
    if (!known.includes(field!)) checkSeparator(name, known);
    if (!known.includes(field!)) throw invalid(name, `is no column of such a file: ${known.join(', ')}`);
  }
  checkNesting(names);
  return names.map(parseColumnPath);
}

/** Spreadsheets of half the world separate columns otherwise. */
function checkSeparator(name: string, known: readonly string[]): void {
  for (const [character, signs] of [
    [';', 'semicolons'],
    ['\t', 'tabs'],
  ] as const) {
    const [first, ...others] = name.split(character);
    if (others.length > 0 && known.includes(parseColumnPath(first!.trim())[0]!))
      throw invalid('header', `separates columns by ${signs}: they must be separated by commas`);
  }
}

/** A key may hold dots, so that only the first one is a step for free maps; deeper ones are written as JSON. */
function parseColumnPath(name: string): string[] {
  const dot = name.indexOf('.');
  return dot <= 0 || dot === name.length - 1 ? [name] : [name.slice(0, dot), name.slice(dot + 1)];
}

/** `metadata` and `metadata.tier` would be two ways to say one thing. */
function checkNesting(names: readonly string[]): void {
  for (const name of names) {
    const [field, inner] = parseColumnPath(name);
    if (inner !== undefined && names.includes(field!)) throw invalid(name, `stands beside ${field}: use one of them`);
  }
}

/** Texts by field, those of one map together; without what is empty. */
export function toCellValues(columns: readonly ImportColumn[], cells: readonly string[]): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [index, [field, inner]] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (cell === '') continue;
    if (inner === undefined) value[field!] = cell;
    else {
      const map = (value[field!] ??= Object.create(null)) as Record<string, string>;
      map[inner] = cell;
    }
  }
  return value;
}
