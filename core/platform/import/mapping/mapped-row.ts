/**
 * Converts the cells of a row by a mapping (docs/rules/imports.md, "Mappings"). The header is compiled once: a column that a field needs and
 * the file lacks fails the file, because all of its values would be absent.
 */
import { invalid } from '../../../foundation/error.ts';
import { parseJson } from '../../../foundation/json/parse.ts';
import { KEY_LENGTH_MAX } from '../../../foundation/record.ts';
import { type EventProperties, properties } from '../../../metering/event-text.ts';
import { checkColumnCount } from '../csv-columns.ts';
import { ROW_LENGTH_MAX } from '../json-rows.ts';
import { toInstantText } from './instant-cell.ts';
import { toNumberText } from './number-cell.ts';
import type { MappedField, UsedMapping } from './record.ts';

/** A cell, or a key of the JSON object in it. */
type CellSource = { readonly index: number; readonly column: string; readonly key: string | null };
type FieldSource = Omit<MappedField, 'columns'> & {
  readonly path: readonly string[];
  readonly cells: readonly CellSource[];
};

/** Values of a row by field; those of a map in an object. */
type RowValues = Record<string, unknown>;

export const REQUIRED_EVENT_FIELDS = ['event_name', 'external_customer_id', 'timestamp'];

/** Returns the conversion of a row. It throws the fault of a row; this function throws that of the header. */
export function compileMapping(
  mapping: UsedMapping,
  header: readonly string[],
): (cells: readonly string[]) => RowValues {
  const names = readNames(header);
  const columns = indexColumns(names);
  const named = mapping.fields.flatMap((field) => compileField(field, columns));
  const used = new Set(
    named
      .flatMap(({ cells }) => cells)
      // A column of which only a key is used is a property as well.
      .filter(({ key }) => key === null || mapping.other_columns === 'REFUSE')
      .map(({ index }) => index),
  );
  const others = compileOthers(mapping, names, { used, named });
  return (cells) => {
    const values: RowValues = {};
    let length = 0;
    const add = (path: readonly string[], value: string | undefined) => {
      if (value === undefined) return;
      length += path.at(-1)!.length + value.length;
      // Fields may name one cell many times.
      if (length > ROW_LENGTH_MAX)
        throw invalid('row', `is longer than ${ROW_LENGTH_MAX} characters after the mapping`);
      setValue(values, path, value);
    };
    const row = { cells, objects: new Map<number, EventProperties>() };
    for (const source of named) add(source.path, readField(source, row, mapping));
    for (const { index, path } of others) add(path, readOther(cells[index] ?? '', mapping));
    return values;
  };
}

/** Trims the names of the columns, and refuses names that no mapping can have. */
function readNames(header: readonly string[]): string[] {
  checkColumnCount(header);
  const names = header.map((name) => name.trim());
  const long = names.findIndex((name) => name.length > KEY_LENGTH_MAX);
  if (long >= 0) throw invalid('header', `column ${long + 1} has a name longer than ${KEY_LENGTH_MAX} characters`);
  return names;
}

/** Columns by their names, and by their names in lower case; null if several have that name. */
type ColumnIndex = {
  readonly names: readonly string[];
  readonly exact: ReadonlyMap<string, number>;
  readonly lower: ReadonlyMap<string, number | null>;
};

function indexColumns(names: readonly string[]): ColumnIndex {
  const exact = new Map<string, number>();
  const lower = new Map<string, number | null>();
  for (const [index, name] of names.entries()) {
    if (name === '') continue;
    if (exact.has(name)) throw invalid(name, 'stands twice in the header');
    exact.set(name, index);
    lower.set(name.toLowerCase(), lower.has(name.toLowerCase()) ? null : index);
  }
  return { names, exact, lower };
}

function compileField({ columns, ...field }: MappedField, index: ColumnIndex): FieldSource[] {
  const cells = columns.flatMap((column) => findColumn(column, index) ?? []);
  if (columns.length > 0 && cells.length === 0 && field.value === null) {
    if (field.is_optional) return [];
    throw invalid(columns.join(' or '), `is no column of the file, and the mapping needs it for ${field.field}`);
  }
  if (field.combine === 'JOIN' && cells.length < columns.length)
    throw invalid(
      columns.join(' and '),
      `are not all columns of the file, and the mapping joins them to ${field.field}`,
    );
  return [{ ...field, path: splitField(field.field), cells }];
}

/** Splits a field at its first dot into its name and the key of its map. */
export function splitField(field: string): string[] {
  const dot = field.indexOf('.');
  return dot < 0 ? [field] : [field.slice(0, dot), field.slice(dot + 1)];
}

/** Finds a column by its name, else in any case, else the column before a dot, whose cells are JSON. */
function findColumn(name: string, columns: ColumnIndex): CellSource | undefined {
  const index = findName(name, columns);
  if (index !== undefined) return { index, column: columns.names[index]!, key: null };
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1)) {
    const outer = findName(name.slice(0, dot), columns);
    if (outer !== undefined) return { index: outer, column: columns.names[outer]!, key: name.slice(dot + 1) };
  }
  return undefined;
}

function findName(name: string, { exact, lower }: ColumnIndex): number | undefined {
  const index = exact.get(name) ?? lower.get(name.toLowerCase());
  if (index === null) throw invalid(name, 'stands in the header in several cases: name one of them as it is written');
  return index;
}

type OtherColumn = { readonly index: number; readonly path: readonly string[] };
type NamedColumns = { readonly used: ReadonlySet<number>; readonly named: readonly FieldSource[] };

function compileOthers(mapping: UsedMapping, names: readonly string[], { used, named }: NamedColumns): OtherColumn[] {
  if (mapping.other_columns === 'IGNORE') return [];
  const taken = new Set(named.map(({ field }) => field));
  const others: OtherColumn[] = [];
  for (const [index, name] of names.entries()) {
    if (used.has(index)) continue;
    if (name === '') throw invalid('header', `column ${index + 1} has no name`);
    if (mapping.other_columns === 'REFUSE') throw invalid(name, 'is a column that the mapping does not name');
    const property = mapping.property_names === 'SNAKE_CASE' ? toSnakeCase(name) : name;
    const field = `properties.${property}`;
    if (taken.has(field))
      throw invalid(name, `becomes ${field}, which another column is: name one of them in the mapping`);
    taken.add(field);
    others.push({ index, path: ['properties', property] });
  }
  return others;
}

/** The spelling of CUR 2.0 and of Athena: `lineItem/UnblendedCost` is line_item_unblended_cost. */
export function toSnakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .toLowerCase();
}

/** Cells of a row, and the JSON objects in them, each parsed once. */
type CellsOfRow = { readonly cells: readonly string[]; readonly objects: Map<number, EventProperties> };

function readField(source: FieldSource, row: CellsOfRow, mapping: UsedMapping): string | undefined {
  const text = readCells(source, row, mapping) ?? source.value ?? undefined;
  if (text === undefined || text.trim() === '') {
    if (mapping.entity_type !== 'EVENTS' || !REQUIRED_EVENT_FIELDS.includes(source.field)) return undefined;
    throw invalid(source.field, `is required: ${source.cells.map(({ column }) => column).join(', ')} is empty`);
  }
  const type = source.type ?? (source.field === 'timestamp' ? 'INSTANT' : 'TEXT');
  if (type === 'TEXT') return text;
  const read = type === 'NUMBER' ? toNumberText(text, mapping.decimal_separator) : toInstantText(text, mapping);
  if (read !== undefined) return read;
  const form =
    type === 'NUMBER'
      ? `number with a decimal ${mapping.decimal_separator}`
      : `date in the form ${mapping.date_format}`;
  throw invalid(source.field, `${JSON.stringify(text.slice(0, SHOWN_MAX))} is no ${form}`);
}

const SHOWN_MAX = 60;

/** Undefined if all cells are empty. */
function readCells(
  { cells: sources, combine, type }: FieldSource,
  row: CellsOfRow,
  { decimal_separator }: UsedMapping,
): string | undefined {
  const texts: string[] = [];
  const hasComma = type === 'NUMBER' && decimal_separator === 'COMMA';
  for (const source of sources) {
    const text = readCell(source, row, hasComma);
    if (text.trim() === '') continue;
    if (combine === 'FIRST') return text;
    texts.push(text);
  }
  return texts.length === 0 ? undefined : texts.join(' ');
}

/** A value in JSON has its text as it was sent, so that numbers keep their digits. Their fraction follows a point in any file. */
function readCell({ index, column, key }: CellSource, { cells, objects }: CellsOfRow, hasComma: boolean): string {
  const cell = cells[index] ?? '';
  if (key === null || cell.trim() === '') return cell;
  let object = objects.get(index);
  if (object === undefined) objects.set(index, (object = parseObject(cell, column)));
  const value = object.get(key);
  if (value === undefined || value.kind === 'null') return '';
  return value.kind === 'number' && hasComma ? value.text.replace('.', ',') : value.text;
}

/** Parses a JSON object. Azure writes tags without the braces. */
function parseObject(cell: string, column: string): EventProperties {
  const text = /^\s*\{/.test(cell) ? cell : `{${cell}}`;
  try {
    parseJson(text);
  } catch {
    throw invalid(column, 'must be a JSON object');
  }
  return properties(text);
}

/** With a decimal comma a meter would misread 1.234, so numbers of unnamed columns are converted, too. */
function readOther(cell: string, { decimal_separator }: UsedMapping): string | undefined {
  if (cell === '') return undefined;
  if (decimal_separator === 'POINT' || !/[.,]/.test(cell)) return cell;
  return toNumberText(cell, 'COMMA') ?? cell;
}

function setValue(values: RowValues, [field, key]: readonly string[], value: string): void {
  if (key === undefined) values[field!] = value;
  else ((values[field!] ??= Object.create(null)) as Record<string, string>)[key] = value;
}
