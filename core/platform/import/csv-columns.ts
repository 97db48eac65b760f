/**
 * The columns of a CSV file: names of fields, or `metadata.tier` for a key inside a field (docs/rules/imports.md, "CSV").
 * A row becomes the value of the corresponding request; an empty cell is an absent value.
 */
import { invalid } from '../../foundation/error.ts';

/** Name of a field, followed by the key inside it if the column has one. */
type ImportColumn = readonly string[];

const COLUMNS_MAX = 1_000;

export function checkColumnCount(header: readonly string[]): void {
  if (header.length > COLUMNS_MAX) throw invalid('header', `must not have more than ${COLUMNS_MAX} columns`);
}

/** Parses the header. A name that is missing, repeated or unknown is rejected, because its values would be lost. */
export function parseColumns(header: readonly string[], known: readonly string[]): ImportColumn[] {
  checkColumnCount(header);
  const names = header.map((name) => name.trim());
  for (const [index, name] of names.entries()) {
    if (name === '') throw invalid('header', `column ${index + 1} has no name`);
    if (names.indexOf(name) < index) throw invalid(name, 'stands twice in the header');
    const [field] = parseColumnPath(name);
    if (!known.includes(field!)) checkSeparator(name, known);
    if (!known.includes(field!)) throw invalid(name, `is no column of such a file: ${listColumns(known)}`);
  }
  checkNesting(names);
  return names.map(parseColumnPath);
}

/** Lists the columns. A map is named with an entry, because most files have a column for each. */
function listColumns(known: readonly string[]): string {
  const map = ['properties', 'metadata'].find((name) => known.includes(name));
  const entries = map === undefined ? '' : `, or ${map}.<name> for an entry of ${map}`;
  return `${known.join(', ')}${entries}; a mapping can name others`;
}

/** Rejects a header with semicolons or tabs, which spreadsheets of many countries write instead of commas. */
function checkSeparator(name: string, known: readonly string[]): void {
  for (const [character, signs] of [
    [';', 'semicolons'],
    ['\t', 'tabs'],
  ] as const) {
    const [first, ...others] = name.split(character);
    if (others.length > 0 && known.includes(parseColumnPath(first!.trim())[0]!))
      throw invalid(
        'header',
        `separates columns by ${signs}: they must be separated by commas, or a mapping must name the delimiter`,
      );
  }
}

/**
 * Splits a column name at its first dot. Further dots belong to the key inside the field; a value nested deeper is written as JSON in its
 * cell.
 */
function parseColumnPath(name: string): string[] {
  const dot = name.indexOf('.');
  return dot <= 0 || dot === name.length - 1 ? [name] : [name.slice(0, dot), name.slice(dot + 1)];
}

/** Refuses columns that would set one value in two ways, such as `metadata` and `metadata.tier`. */
function checkNesting(names: readonly string[]): void {
  for (const name of names) {
    const [field, inner] = parseColumnPath(name);
    if (inner !== undefined && names.includes(field!)) throw invalid(name, `stands beside ${field}: use one of them`);
  }
}

/** Maps each field to the text of its cell, and the columns of one map to one object. An empty cell sets no field. */
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
