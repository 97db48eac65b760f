/**
 * Lists late events: events of a period whose final invoice did not count them (docs/rules/invoices.md, "Late events"). A line records up to
 * which position of the log it counted. Billing and this list both follow these positions.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { type Microseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import { loadHistories } from '../../../storage/events/corrections.ts';
import {
  type CountedUsageWindow,
  type LateCandidate,
  listLateCandidates,
} from '../../../storage/events/late-events.ts';
import { comparePlaces, type ReceiptPlace } from '../../../storage/events/uncounted-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import {
  type ClosedUsageLine,
  type CountingLine,
  listChargeLines,
  listClosedUsageLines,
} from '../../../storage/models/invoicing/closed-usage-lines.ts';
import { toWindow } from '../../invoicing/proof/counted-events.ts';
import { type LineCounting, loadCountings } from '../../invoicing/proof/gather.ts';
import { buildContentCheck, buildCountedCheck, buildVersions, type EventVersion } from './counted-versions.ts';

/** Greatest number of usage lines that a request reads, latest invoices first. */
export const LATE_LINES_MAX = 2_000;
/** Number of customers of these lines that a request reads at most; a family has many. A single line may have more. */
export const LATE_CUSTOMERS_MAX = 50_000;
/** Least number of lines of one statement, except the last one. */
const LINES_AT_ONCE = 500;
/** Least limit of events of a statement: filters of meters then discard some of its events. */
const READ_AT_ONCE = 1_000;

type LateEventsInput = {
  /** Earliest finalization of the invoices that are read. */
  readonly since: Date;
  readonly event_name: string | null;
  readonly external_customer_id: string | null;
  /** Range of the time of receipt. */
  readonly received_from_us: Microseconds;
  readonly received_until_us: Microseconds;
  readonly after: ReceiptPlace | null;
  readonly limit: number;
  readonly bounds: QueryBounds;
};

/** A usage line that an event came too late for, and the later line that charges the event; null until there is one. */
export type MissedLine = { readonly line: ClosedUsageLine; readonly charged: CountingLine | null };
type LateEvent = { readonly event: LateCandidate; readonly missed: readonly MissedLine[] };

type LateEventsPage = {
  readonly events: readonly LateEvent[];
  readonly next: ReceiptPlace | null;
  /** Earliest finalization from which all invoices were read. */
  readonly invoices_since: Date;
  readonly is_complete: boolean;
};

export async function listLateEvents(stores: Stores, scope: Scope, input: LateEventsInput): Promise<LateEventsPage> {
  const { postgres } = stores;
  const found = await listClosedUsageLines(postgres, scope, { since: input.since, limit: LATE_LINES_MAX + 1 });
  const wanted = await loadMatchingLines(stores, scope, { lines: found.slice(0, LATE_LINES_MAX), input });
  const countings = wanted.slice(0, countReadable(wanted, input));
  // The latest line that is not read.
  const unread = wanted[countings.length]?.line ?? found[LATE_LINES_MAX];
  const parts = [];
  for (const counted of divideByDay(countings)) parts.push(await readPart(stores, scope, { counted, input }));
  const { events, next } = mergeParts(parts, input.limit);
  return {
    events: await addCharges(stores, scope, events),
    next,
    invoices_since: unread ? findCoveredSince(unread) : input.since,
    is_complete: unread === undefined,
  };
}

/** Number of lines that have at most LATE_CUSTOMERS_MAX customers in all. */
function countReadable(countings: readonly CountedUsageLine[], { external_customer_id }: LateEventsInput): number {
  let count = 0;
  const end = countings.findIndex(({ counting }, index) => {
    count += external_customer_id === null ? counting.counted.customers.length : 1;
    return index > 0 && count > LATE_CUSTOMERS_MAX;
  });
  return end === -1 ? countings.length : end;
}

/** Lines of the instant of the first one that is not read may be missing, and those of later instants are all read. */
function findCoveredSince(unread: ClosedUsageLine): Date {
  return new Date(toInstant(unread.finalized_at) + 1);
}

type CountedUsageLine = { readonly line: ClosedUsageLine; readonly counting: LineCounting };

async function loadMatchingLines(
  { postgres }: Stores,
  scope: Scope,
  { lines, input }: { lines: readonly ClosedUsageLine[]; input: LateEventsInput },
): Promise<CountedUsageLine[]> {
  const { event_name, external_customer_id } = input;
  const loaded = await loadCountings(postgres, scope, lines);
  return loaded.flatMap(({ line, counting }) => {
    if (counting === null) return [];
    const { meter, customers } = counting.counted;
    if (event_name !== null && meter.event_name.trim() !== event_name) return [];
    if (external_customer_id !== null && !customers.some((one) => one.external_customer_id === external_customer_id))
      return [];
    return [{ line, counting }];
  });
}

/**
 * Divides the lines among statements. Lines that became final within a day were counted up to similar positions, so that one statement for
 * all of them reads few events.
 */
function divideByDay(lines: readonly CountedUsageLine[]): CountedUsageLine[][] {
  const parts: CountedUsageLine[][] = [];
  for (const one of lines) {
    const part = parts.at(-1);
    const isSameDay =
      part !== undefined && toInstant(part[0]!.line.finalized_at) - toInstant(one.line.finalized_at) < DAY_MS;
    if (part !== undefined && (isSameDay || part.length < LINES_AT_ONCE)) part.push(one);
    else parts.push([one]);
  }
  return parts;
}

type VersionedEvent = {
  readonly event: LateCandidate;
  readonly versions: readonly EventVersion[];
  readonly lines: readonly ClosedUsageLine[];
};

/** Part of the list. If its reading was cut, it has everything up to `read_to`. */
type LatePart = {
  readonly events: readonly VersionedEvent[];
  readonly read_to: ReceiptPlace | null;
};

async function readPart(
  { clickhouse }: Stores,
  scope: Scope,
  { counted, input }: { counted: readonly CountedUsageLine[]; input: LateEventsInput },
): Promise<LatePart> {
  const limit = Math.max(READ_AT_ONCE, input.limit + 1);
  const windows = counted.map(({ counting }) => buildCountedWindow(counting, input));
  const { after, bounds, received_from_us, received_until_us } = input;
  const { tenant_id, environment_id } = scope;
  const wanted = { tenant_id, environment_id, windows, received_from_us, received_until_us };
  const rows = await listLateCandidates(clickhouse, { ...wanted, after, limit, bounds });
  const byName = groupBy(counted.map(buildLateCheck), ({ event_name }) => event_name);
  const events = (await loadVersions(clickhouse, scope, rows)).flatMap(({ event, versions }) => {
    const lines = (byName.get(event.event_name) ?? []).flatMap(({ isLate, line }) => (isLate(versions) ? [line] : []));
    return lines.length === 0 ? [] : [{ event, versions, lines }];
  });
  return { events, read_to: rows.length === limit ? rows.at(-1)! : null };
}

function buildCountedWindow(counting: LineCounting, { external_customer_id }: LateEventsInput): CountedUsageWindow {
  const { meter, customers, marks } = counting.counted;
  const ids = customers.map((one) => one.external_customer_id);
  return {
    event_name: meter.event_name.trim(),
    external_customer_ids: external_customer_id === null ? ids : [external_customer_id],
    ...toWindow(counting),
    marks,
  };
}

/** Loads the contents of each event. Only corrected events have earlier ones. */
async function loadVersions(
  clickhouse: Stores['clickhouse'],
  scope: Scope,
  rows: readonly LateCandidate[],
): Promise<Omit<VersionedEvent, 'lines'>[]> {
  const corrected = rows.flatMap(({ event_id, is_corrected }) => (is_corrected ? [event_id] : []));
  const histories = corrected.length > 0 ? await loadHistories(clickhouse, scope, corrected) : new Map();
  return rows.map((event) => {
    const { event_id, properties: text } = event;
    const history = histories.get(event_id);
    const content = { ...event, properties: propertiesIn(text), length: text.length };
    return { event, versions: history ? buildVersions(event_id, history) : [{ content, place: event }] };
  });
}

function buildLateCheck({ line, counting }: CountedUsageLine) {
  const { ends, meter } = counting.counted;
  const hasContent = buildContentCheck(counting);
  const hasCountedEvent = buildCountedCheck({ line, counting });
  const isLate = (versions: readonly EventVersion[]) => {
    const last = versions.at(-1)!;
    return hasContent(last.content) && !hasEnded(ends, last) && !hasCountedEvent(versions);
  };
  return { line, event_name: meter.event_name.trim(), isLate };
}

/** Whether the meter had ended before the content: it counts nowhere, and is not late. */
function hasEnded(
  ends: LineCounting['counted']['ends'],
  { place: { partition, offset } }: Pick<EventVersion, 'place'>,
): boolean {
  const end = ends?.[partition];
  return end !== undefined && BigInt(offset) >= BigInt(end);
}

/** Merges the parts; an event may be in several. Events after the first `read_to` are on a later page, because other parts may lack some. */
function mergeParts(parts: readonly LatePart[], limit: number) {
  const [end] = parts.flatMap(({ read_to }) => read_to ?? []).sort(comparePlaces);
  const byId = groupBy(
    parts.flatMap(({ events }) => events),
    ({ event }) => event.event_id,
  );
  const all = Array.from(byId.values(), (same) => ({
    ...same[0]!,
    lines: same.flatMap(({ lines }) => lines),
  })).sort((a, b) => comparePlaces(a.event, b.event));
  const known = end === undefined ? all : all.filter(({ event }) => comparePlaces(event, end) <= 0);
  const events = known.slice(0, limit);
  return { events, next: known.length > limit ? events.at(-1)!.event : (end ?? null) };
}

/** Adds the invoice that charges each event: the first whose line of the charge, or correction of it, counted the event. */
async function addCharges({ postgres }: Stores, scope: Scope, events: LatePart['events']): Promise<LateEvent[]> {
  const ids = [...new Set(events.flatMap(({ lines }) => lines.map(({ id }) => id)))];
  const charging = await loadCountings(postgres, scope, await listChargeLines(postgres, scope, ids));
  const checks = charging.map((one) => ({ line: one.line, hasCountedEvent: buildCountedCheck(one) }));
  const byCharge = groupBy(checks, ({ line }) => line.charge_id);
  return events.map(({ event, versions, lines }) => {
    const missed = lines.map((line) => {
      const charged = byCharge.get(line.id)?.find(({ hasCountedEvent }) => hasCountedEvent(versions))?.line;
      return { line, charged: charged ?? null };
    });
    const byInvoice = groupBy(missed, ({ line }) => line.invoice_id);
    return {
      event,
      missed: Array.from(byInvoice.values(), (same) => same.find(({ charged }) => charged !== null) ?? same[0]!),
    };
  });
}
