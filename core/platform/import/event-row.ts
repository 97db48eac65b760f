/** Converts a row of a file to an event (docs/rules/imports.md, "Events"): returns the text for the log, or throws the fault. */
import { FarthingError, invalid } from '../../foundation/error.ts';
import { parseJson } from '../../foundation/json/parse.ts';
import { findEventFault, findKeyFault } from '../../metering/event/accept.ts';
import { unescapeFormula } from '../export/csv.ts';
import { EVENT_COLUMNS as EXPORTED_COLUMNS } from '../export/events.ts';
import type { ImportRow, RowFault } from './row.ts';

export const EVENT_FIELDS = [
  'event_id',
  'event_name',
  'external_customer_id',
  'customer_id',
  'timestamp',
  'source',
  'properties',
];
/** Columns of the service's own exports that have no effect on an imported event. */
const WITHOUT_EFFECT = ['received_at'];
export const EVENT_COLUMNS = [...EVENT_FIELDS, ...WITHOUT_EFFECT];

/** Event as JSON text. `event_id` is undefined if the file has none. */
export type ImportedEventRow = { readonly text: string; readonly event_id: string | undefined };

/** Fault of a row whose id was accepted before with other content, so that the row cannot count. */
export const CONFLICT_FAULT: RowFault = {
  field: 'event_id',
  code: 'already_exists',
  message: 'event_id: an event with this id and other content was accepted before; to change it, replace it',
};

/** Converts a row to an event; throws the fault with its field. */
export function parseEventRow(row: ImportRow): ImportedEventRow {
  const { value, text } = row.text === undefined ? toEventText(row) : { value: row.value, text: row.text };
  const fault = findEventFault(value);
  if (fault) throw invalid(fault.field || 'row', fault.why);
  const unknown = Object.keys(value as object).find((key) => !EVENT_FIELDS.includes(key));
  if (unknown !== undefined) throw invalid(unknown, 'is no key of an event');
  const twice = findKeyFault(text, { start: 0, end: text.length });
  if (twice) throw invalid(twice.field, twice.why);
  const { event_id } = value as { event_id?: unknown };
  return { text, event_id: typeof event_id === 'string' && event_id.trim() !== '' ? event_id : undefined };
}

const ESCAPED_COLUMNS = new Set(EXPORTED_COLUMNS.filter(({ kind }) => kind === 'text').map(({ name }) => name));

/**
 * Exports escape ids and properties that a spreadsheet would read as formulas. The import removes the escape, because an event with a
 * changed id would count as another event.
 */
const restoreExportedCell = (name: string, cell: unknown) =>
  typeof cell === 'string' && ESCAPED_COLUMNS.has(name) ? unescapeFormula(cell) : cell;

/**
 * Builds the event from its cells. `properties` is either JSON text in one cell, which stays unchanged, or one column per property. Values
 * of such columns remain text; meters read them as numbers.
 */
function toEventText({ value: cells, is_mapped = false }: ImportRow): { value: unknown; text: string } {
  const given = Object.entries(cells as Record<string, unknown>).map(([name, cell]) => [
    name,
    is_mapped ? cell : restoreExportedCell(name, cell),
  ]);
  const { properties, ...others } = Object.fromEntries(given) as Record<string, unknown>;
  const fields = Object.entries(others).filter(([key]) => !WITHOUT_EFFECT.includes(key));
  const value = Object.fromEntries(fields);
  const text = JSON.stringify(value);
  if (properties === undefined) return { value, text };
  const json = typeof properties === 'string' ? properties : JSON.stringify(properties);
  const before = fields.length === 0 ? '{' : `${text.slice(0, -1)},`;
  return { value: { ...value, properties: parseProperties(json) }, text: `${before}"properties":${json}}` };
}

function parseProperties(json: string): unknown {
  try {
    return parseJson(json);
  } catch (cause) {
    throw new FarthingError('validation_error', 'properties: must be JSON', {
      cause,
      details: { field: 'properties' },
    });
  }
}
