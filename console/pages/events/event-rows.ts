/** Rows of the list of events: their properties in one line, and the tail of new ones before those that were loaded. */
import { formatExact } from '../../client/exact-json.ts';
import { toInstants } from '../../components/range.ts';

export type EventStatus = 'counted' | 'unusable' | 'unmatched';
export type EventRow = {
  readonly id: string;
  readonly event_name: string;
  readonly external_customer_id: string;
  readonly timestamp: string;
  readonly received_at: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly source: string;
  /** The stream knows it; of a listed event it is read from the events that are not counted. */
  readonly status?: EventStatus;
};

/** Rows of the tail that stay on the page. */
const TAIL_MAX = 300;

/** New events first. An event that is there already stays where it is. */
export function addToTail(tail: readonly EventRow[], incoming: readonly EventRow[]): readonly EventRow[] {
  const known = new Set(tail.map(({ id }) => id));
  const fresh = incoming.filter(({ id }) => !known.has(id));
  return fresh.length === 0 ? tail : [...fresh, ...tail].slice(0, TAIL_MAX);
}

/** Rows before the one with the id; all if it is no longer there. */
export function countNew(rows: readonly EventRow[], id: string | undefined): number {
  const at = rows.findIndex((row) => row.id === id);
  return at < 0 ? rows.length : at;
}

/** The tail before the loaded pages, each event once. */
export function joinRows(tail: readonly EventRow[], loaded: readonly EventRow[]): EventRow[] {
  const known = new Set(tail.map(({ id }) => id));
  return [...tail, ...loaded.filter(({ id }) => !known.has(id))];
}

export function formatProperties(properties: Readonly<Record<string, unknown>>): string {
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${formatValue(value)}`)
    .join(' ');
}

/** A text that reads as a word stands without quotes. */
export function formatValue(value: unknown): string {
  return typeof value === 'string' && /^[^\s"'=\0]+$/.test(value) ? value : formatExact(value);
}

export type PropertyFilter = { readonly key: string; readonly value: string };

/** Parses `key=value`; null for a text of another form. */
export function parsePropertyFilter(text: string | undefined): PropertyFilter | null {
  const at = text?.indexOf('=') ?? -1;
  if (text === undefined || at < 1 || at === text.length - 1) return null;
  return { key: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

/** One of how many events is shown; null if all are. */
export function findSampleRate(shown: number, passed_over: number): number | null {
  return shown === 0 || passed_over === 0 ? null : Math.round((shown + passed_over) / shown);
}

/** Filters that all lists of events share. */
export type ListFilters = {
  readonly event_name?: string;
  readonly external_customer_id?: string;
  readonly start_time?: string;
  readonly end_time?: string;
};
type FilterSearch = {
  readonly customer?: string;
  readonly name?: string;
  readonly from?: string;
  readonly to?: string;
};

export function buildListFilters({ customer, name, from, to }: FilterSearch): ListFilters {
  return {
    ...(name === undefined ? {} : { event_name: name }),
    ...(customer === undefined ? {} : { external_customer_id: customer }),
    ...(from === undefined || to === undefined ? {} : toInstants({ from, to })),
  };
}

export type EventFilters = ListFilters & { readonly property_filters?: Record<string, string[]> };

/** Filters of the list of all events, which also has one for a property. */
export function buildEventFilters({
  property,
  ...search
}: FilterSearch & { readonly property?: string }): EventFilters {
  const filter = parsePropertyFilter(property);
  return {
    ...buildListFilters(search),
    ...(filter === null ? {} : { property_filters: { [filter.key]: [filter.value] } }),
  };
}
