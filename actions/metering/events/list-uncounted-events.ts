/** Lists the events that are not counted, newest receipt first, each with the reason (docs/rules/events.md, "Events that count nowhere"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatUs, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { hashIdentity } from '../../../core/metering/event/identity.ts';
import type { UncountedReason } from '../../../core/metering/event/uncounted.ts';
import { properties } from '../../../core/metering/event-text.ts';
import { compileMeters, type MeterIndex, matches } from '../../../core/metering/match.ts';
import { loadReplays } from '../../../storage/events/dead-letters.ts';
import {
  comparePlaces,
  listRejectedOutcomes,
  listUnmatchedCandidates,
  loadEventNames,
  type ReceiptPlace,
  type RejectedOutcome,
  type UncountedQuery,
  type UncountedRow,
  type UnmatchedCandidate,
} from '../../../storage/events/uncounted-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';

type UncountedEvent = UncountedRow & {
  /** Position in the log; of a dead letter its id. */
  readonly id: string;
  readonly reason: UncountedReason;
  readonly message: string;
};

/** A page, and the place after which the list continues; null at its end. */
type UncountedPage = { readonly events: UncountedEvent[]; readonly next: ReceiptPlace | null };

/** Part of the list. If its reading was cut, it has everything up to `read_to`. */
type UncountedPart = { readonly events: readonly UncountedEvent[]; readonly read_to: ReceiptPlace | null };

export async function listUncountedEvents(
  stores: Stores,
  scope: Scope,
  { reasons, ...query }: UncountedQuery & { readonly reasons: readonly UncountedReason[] },
): Promise<UncountedPage> {
  const outcomes = reasons.filter((reason) => reason !== 'unmatched');
  const parts = await Promise.all([
    readOutcomes(stores, scope, { ...query, outcomes }),
    ...(reasons.includes('unmatched') ? [readUnmatched(stores, scope, query)] : []),
  ]);
  const ends = parts.flatMap(({ read_to }) => read_to ?? []).sort(comparePlaces);
  const [end] = ends;
  const all = parts.flatMap(({ events }) => events).sort(comparePlaces);
  const known = end === undefined ? all : all.filter((event) => comparePlaces(event, end) <= 0);
  const events = known.slice(0, query.limit);
  return { events, next: known.length > events.length ? events.at(-1)! : (end ?? null) };
}

/**
 * Lists the events of each group of reasons. All groups are read as one list. If it is longer than the limit, it does not have the whole
 * page of each group; then each group is read by itself, one after another, so that they do not take the stores at once.
 */
export async function listUncountedGroups(
  stores: Stores,
  scope: Scope,
  { groups, ...query }: UncountedQuery & { readonly groups: readonly (readonly UncountedReason[])[] },
): Promise<UncountedPage[]> {
  const { events, next } = await listUncountedEvents(stores, scope, { ...query, reasons: groups.flat() });
  if (next === null)
    return groups.map((reasons) => ({ events: events.filter(({ reason }) => reasons.includes(reason)), next }));
  const pages: UncountedPage[] = [];
  for (const reasons of groups) pages.push(await listUncountedEvents(stores, scope, { ...query, reasons }));
  return pages;
}

async function readOutcomes(
  stores: Stores,
  scope: Scope,
  query: UncountedQuery & { readonly outcomes: readonly RejectedOutcome[] },
): Promise<UncountedPart> {
  const rows = await listRejectedOutcomes(stores.clickhouse, scope, query);
  const ids = rows.flatMap((row) => (row.outcome === 'dead_letter' ? formatPosition(row) : []));
  const [replays, names] = await Promise.all([
    ids.length === 0 ? new Map<string, string>() : loadReplays(stores.postgres, scope, ids),
    loadEventNames(stores.clickhouse, scope, [
      ...new Set(
        rows.flatMap(({ outcome, event_id }) => (outcome === 'unusable' ? hashIdentity({ ...scope, event_id }) : [])),
      ),
    ]),
  ]);
  const events = rows
    .map(({ outcome: reason, reason: message, ...row }) => {
      const stored = reason === 'unusable' ? names.get(row.event_id) : undefined;
      return { ...row, ...stored, id: formatPosition(row), reason, message };
    })
    .filter(({ id, reason }) => reason !== 'dead_letter' || !replays.has(id));
  return { events, read_to: rows.length === query.limit ? rows.at(-1)! : null };
}

/** Number of events that a request reads at most to find those that no meter matches. */
const READ_MAX = 10_000;
const READ_AT_ONCE = 1_000;

async function readUnmatched(stores: Stores, scope: Scope, query: UncountedQuery): Promise<UncountedPart> {
  const meters = await MeterModel.in(scope, stores.postgres);
  const index = compileMeters(meters);
  const archivedAt = new Map(
    meters.flatMap(({ id, status, updated_at }) =>
      status === 'published' ? [] : [[id, toUs(toInstant(updated_at))] as const],
    ),
  );
  const countsAll = ({ status, filters }: MeterModel) => status === 'published' && filters.length === 0;
  const counted_names = [...new Set(meters.filter(countsAll).map(({ event_name }) => event_name.trim()))];
  const events: UncountedEvent[] = [];
  let after = query.after;
  for (let read = 0; read < READ_MAX; ) {
    const page = { ...query, after, limit: READ_AT_ONCE, counted_names };
    const candidates = await listUnmatchedCandidates(stores.clickhouse, scope, page);
    for (const candidate of candidates)
      if (!isMatched(candidate, index, archivedAt)) events.push(toUnmatched(candidate));
    if (candidates.length < READ_AT_ONCE) return { events, read_to: null };
    read += candidates.length;
    after = candidates.at(-1)!;
    if (events.length >= query.limit) break;
  }
  return { events, read_to: after };
}

/** Whether a meter counts the event. An archived meter counts the events from before its end. */
function isMatched(
  { event_name, properties: text, received_at_us }: UnmatchedCandidate,
  index: MeterIndex,
  archivedAt: ReadonlyMap<string, number>,
): boolean {
  const meters = index.get(event_name);
  if (meters === undefined) return false;
  const own = properties(text === '' ? '{}' : text);
  return meters.some((meter) => received_at_us < (archivedAt.get(meter.id) ?? Infinity) && matches(meter, own));
}

function toUnmatched({ properties: _properties, ...row }: UnmatchedCandidate): UncountedEvent {
  return {
    ...row,
    id: formatPosition(row),
    reason: 'unmatched',
    message: 'no meter has its event name and accepts it',
  };
}

function formatPosition({ partition, offset, position }: ReceiptPlace): string {
  return `${partition}-${offset}-${position}`;
}

export function showUncountedEvent(event: UncountedEvent) {
  const { id, reason, message, received_at_us } = event;
  return {
    ...{ id, reason, message },
    event_id: event.event_id || null,
    event_name: event.event_name || null,
    external_customer_id: event.external_customer_id || null,
    meter_id: event.meter_id || null,
    received_at: formatUs(received_at_us),
  };
}
