/**
 * Lists late events: events of a period whose final invoice did not count them (docs/rules/invoices.md, "Late events"). A line records up to
 * which position of the log it counted. Billing and this list both follow these positions.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Microseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { properties as propertiesIn } from '../../../core/metering/event-text.ts';
import { hasCounted } from '../../../core/rating/counted-until.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import {
  type CountedUsageWindow,
  type LateCandidate,
  listLateCandidates,
} from '../../../storage/events/late-events.ts';
import type { RawEvent } from '../../../storage/events/raw-events.ts';
import { comparePlaces, type ReceiptPlace } from '../../../storage/events/uncounted-events.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import {
  type ClosedUsageLine,
  type CountingLine,
  listChargeLines,
  listClosedUsageLines,
} from '../../../storage/models/invoicing/closed-usage-lines.ts';
import { buildTimeFilter, compileCountedMeter, measureEvent, toWindow } from '../../invoicing/proof/counted-events.ts';
import { type LineCounting, loadCountings } from '../../invoicing/proof/gather.ts';

/** Greatest number of usage lines that a request reads, latest invoices first. */
export const LATE_LINES_MAX = 2_000;
/** Least number of lines of a statement; the last statement may have fewer. */
const LINES_AT_ONCE = 500;
const DAY_MS = 86_400_000;
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
  const is_complete = found.length <= LATE_LINES_MAX;
  const lines = found.slice(0, LATE_LINES_MAX);
  const countings = await loadMatchingLines(stores, scope, { lines, input });
  const parts = [];
  for (const counted of divideByDay(countings)) parts.push(await readPart(stores, scope, { counted, input }));
  const { events, next } = mergeParts(parts, input.limit);
  return {
    events: await addCharges(stores, scope, events),
    next,
    invoices_since: is_complete ? input.since : findCoveredSince(found),
    is_complete,
  };
}

/** Some lines with the instant of the first unread line may be unread; all lines of later instants are read. */
function findCoveredSince(found: readonly ClosedUsageLine[]): Date {
  return new Date(toInstant(found.at(-1)!.finalized_at) + 1);
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

/** Late events of some lines. If the statement reached its limit, `read_to` is the place up to which they are complete. */
type LatePart = {
  readonly events: readonly { readonly event: LateCandidate; readonly lines: readonly ClosedUsageLine[] }[];
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
  const events = rows.flatMap((event) => {
    const raw = { ...event, properties: propertiesIn(event.properties), length: event.properties.length };
    const lines = (byName.get(event.event_name) ?? []).flatMap(({ isLate, line }) => (isLate(raw) ? [line] : []));
    return lines.length === 0 ? [] : [{ event, lines }];
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

type MeteredCandidate = RawEvent & Pick<LateCandidate, 'partition' | 'offset' | 'received_at_us'>;

function buildLateCheck({ line, counting }: CountedUsageLine) {
  const { counted } = counting;
  const meter = compileCountedMeter(counting);
  const isInTime = buildTimeFilter(counting);
  const { start_us, end_us } = toWindow(counting);
  const customers = new Set(counted.customers.map(({ external_customer_id }) => external_customer_id));
  const isLate = (event: MeteredCandidate) =>
    customers.has(event.external_customer_id) &&
    event.timestamp_us >= start_us &&
    event.timestamp_us < end_us &&
    !hasCounted(line.computed_from, event) &&
    !hasEnded(counted.ends, event) &&
    isInTime(event) &&
    measureEvent(meter, event) !== null;
  return { line, event_name: counted.meter.event_name.trim(), isLate };
}

/** Whether the meter had ended before the event, so that the event counts nowhere. */
function hasEnded(ends: LineCounting['counted']['ends'], { partition, offset }: MeteredCandidate): boolean {
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
    event: same[0]!.event,
    lines: same.flatMap(({ lines }) => lines),
  })).sort((a, b) => comparePlaces(a.event, b.event));
  const known = end === undefined ? all : all.filter(({ event }) => comparePlaces(event, end) <= 0);
  const events = known.slice(0, limit);
  return { events, next: known.length > limit ? events.at(-1)!.event : (end ?? null) };
}

/** Adds the invoice that charges each event: the first whose line of the charge, or correction of it, counted the event. */
async function addCharges({ postgres }: Stores, scope: Scope, events: LatePart['events']): Promise<LateEvent[]> {
  const ids = [...new Set(events.flatMap(({ lines }) => lines.map(({ id }) => id)))];
  const byCharge = groupBy(await listChargeLines(postgres, scope, ids), ({ charge_id }) => charge_id);
  return events.map(({ event, lines }) => {
    const missed = lines.map((line) => {
      const charged = (byCharge.get(line.id) ?? []).find(({ computed_from }) => hasCounted(computed_from, event));
      return { line, charged: charged ?? null };
    });
    const byInvoice = groupBy(missed, ({ line }) => line.invoice_id);
    return {
      event,
      missed: Array.from(byInvoice.values(), (same) => same.find(({ charged }) => charged !== null) ?? same[0]!),
    };
  });
}
