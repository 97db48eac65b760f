/** Lists what needs a person: failed payments, overdue invoices, events that are not counted, alerts and failures. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { formatUs, toUs } from '../../../core/foundation/time/instant.ts';
import type { UncountedReason } from '../../../core/metering/event/uncounted.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../../../core/platform/attention.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { type Attention, listRecordAttention, type RecordAttentionKind } from '../../../storage/reporting/attention.ts';
import { listUncountedGroups } from '../../metering/events/list-uncounted-events.ts';

const RECENT_MS = 7 * DAY_MS;
const SAMPLES = 5;
/** Maximum number of counted events per kind, which limits the cost of the answer. */
const EVENTS_MAX = 1_000;

const EVENT_REASONS = {
  events_not_counted: ['unmatched', 'unusable', 'conflict'],
  dead_letters: ['dead_letter'],
} as const satisfies Partial<Record<AttentionKind, readonly UncountedReason[]>>;
type EventAttentionKind = keyof typeof EVENT_REASONS;

type AttentionQuery = {
  readonly kinds: readonly AttentionKind[];
  readonly now: Date;
  /** Instant by the machine's clock, which events are received by. */
  readonly received_at: Date;
  readonly bounds: QueryBounds;
};

/** Returns the kinds with at least one record, in the order of ATTENTION_KINDS. */
export async function listAttention(stores: Stores, scope: Scope, { kinds, now, received_at, bounds }: AttentionQuery) {
  const isOfEvents = (kind: AttentionKind): kind is EventAttentionKind => kind in EVENT_REASONS;
  const since = now.getTime() - RECENT_MS;
  const ofRecords = kinds.filter((kind): kind is RecordAttentionKind => !isOfEvents(kind));
  const [records, events] = await Promise.all([
    listRecordAttention(scope, { kinds: ofRecords, now, since, samples: SAMPLES }, stores.postgres),
    findEventAttention(stores, scope, { kinds: kinds.filter(isOfEvents), received_at, bounds }),
  ]);
  const found = [...records.map((one) => ({ ...one, is_minimum: false })), ...events];
  const order = Object.keys(ATTENTION_KINDS);
  return found.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

type EventAttention = Attention<EventAttentionKind> & { readonly is_minimum: boolean };

/** Returns the kinds that have events. The samples of a kind are its newest events. */
async function findEventAttention(
  stores: Stores,
  scope: Scope,
  { kinds, received_at, bounds }: { kinds: readonly EventAttentionKind[]; received_at: Date; bounds: QueryBounds },
): Promise<EventAttention[]> {
  if (kinds.length === 0) return [];
  const range = { start_us: toUs(received_at.getTime() - RECENT_MS), end_us: null };
  const filters = { event_name: null, external_customer_id: null, after: null };
  const groups = kinds.map((kind) => EVENT_REASONS[kind]);
  const pages = await listUncountedGroups(stores, scope, { ...range, ...filters, groups, limit: EVENTS_MAX, bounds });
  return kinds.flatMap((kind, index): EventAttention[] => {
    const { events, next } = pages[index]!;
    const oldest = events.at(-1) ?? next;
    if (oldest === null) return [];
    return [
      {
        kind,
        count: events.length,
        is_minimum: next !== null,
        amounts: [],
        oldest_at: formatUs(oldest.received_at_us),
        sample_ids: [...new Set(events.map(({ event_id, id }) => event_id || id))].slice(0, SAMPLES),
      },
    ];
  });
}
