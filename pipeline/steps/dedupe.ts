/**
 * Second step: of all events with one id, only the first accepted counts (docs/rules/identity.md, "One effect per id"). An id is new if its
 * hash is not in the partition's set. Otherwise the stored ids decide: an event is a repeat if an event with its id has an earlier position
 * in the log. So the events of a slice that runs again are not mistaken for repeats.
 */
import { hashToBigInt } from '../../core/metering/event/identity.ts';
import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { type EventContentHashes, hasSameContent } from '../../core/metering/event/sent-contents.ts';
import type { ClickHouseClient } from '../../storage/clickhouse/clickhouse.ts';
import { findIdentities, type IdentityRow } from '../../storage/events/identities.ts';
import type { ReadEvent } from './read-events.ts';

type EventPosition = { readonly partition: number; readonly offset: number; readonly position: number };
type IdentityOwner = EventPosition & EventContentHashes;

/** Set of seen hashes. `add` returns true if the hash is new, and false if it may have been seen. */
type SeenIdentities = { add(high: number, low: number): boolean };

type DedupeResult = { new_events: ReadEvent[]; repeats: EventOutcome[] };

export async function dedupe(
  clickhouse: ClickHouseClient,
  seen: SeenIdentities,
  events: readonly ReadEvent[],
): Promise<DedupeResult> {
  const suspects = new Set<ReadEvent>();
  for (const event of events) if (!seen.add(event.id_high, event.id_low)) suspects.add(event);
  if (suspects.size === 0) return { new_events: events as ReadEvent[], repeats: [] };
  const owners = await findOwners(clickhouse, suspects);
  return decide(events, suspects, owners);
}

/** Decides in log order whether each event of the slice is new or a repeat of the first event that has its id (its owner). */
function decide(
  events: readonly ReadEvent[],
  suspects: Set<ReadEvent>,
  owners: Map<string, IdentityOwner>,
): DedupeResult {
  const suspectHashes = new Set<string>();
  for (const event of suspects) suspectHashes.add(hashKey(event));
  const result: DedupeResult = { new_events: [], repeats: [] };
  for (const event of events) {
    if (!suspectHashes.has(hashKey(event))) {
      result.new_events.push(event);
      continue;
    }
    const key = identityKey(event);
    const owner = owners.get(key);
    if (!owner || !isBefore(owner, event)) {
      if (!owner || isBefore(event, owner)) owners.set(key, event);
      result.new_events.push(event);
    } else result.repeats.push(buildRepeat(event, owner));
  }
  return result;
}

async function findOwners(
  clickhouse: ClickHouseClient,
  suspects: Iterable<ReadEvent>,
): Promise<Map<string, IdentityOwner>> {
  const hashes = new Map<string, bigint>();
  for (const event of suspects) hashes.set(hashKey(event), hashToBigInt(event.id_high, event.id_low));
  const rows = await findIdentities(clickhouse, [...hashes.values()]);
  const owners = new Map<string, IdentityOwner & IdentityRow>();
  for (const row of rows) {
    const known = owners.get(identityKey(row));
    if (!known || isBefore(row, known)) owners.set(identityKey(row), row);
  }
  return owners;
}

function identityKey(event: { tenant_id: string; environment_id: string; event_id: string }): string {
  return `${event.tenant_id}/${event.environment_id}/${event.event_id}`;
}

function hashKey(event: { id_high: number; id_low: number }): string {
  return `${event.id_high}.${event.id_low}`;
}

/**
 * Whether `a` precedes `b` in the log. Offsets of two partitions are not comparable. An event on another partition precedes: its shard has
 * moved, and the old partition was drained before.
 */
function isBefore(a: EventPosition, b: EventPosition): boolean {
  if (a.partition !== b.partition) return true;
  return a.offset !== b.offset ? a.offset < b.offset : a.position < b.position;
}

function buildRepeat(event: ReadEvent, owner: IdentityOwner): EventOutcome {
  const same = hasSameContent(owner, event);
  return {
    tenant_id: event.tenant_id,
    environment_id: event.environment_id,
    event_id: event.event_id,
    outcome: same ? 'duplicate' : 'conflict',
    meter_id: '',
    reason: same
      ? 'the same event was accepted before'
      : 'an event with this id and other content was accepted before; this one is not counted',
    received_at_us: event.received_at_us,
    partition: event.partition,
    offset: event.offset,
    position: event.position,
    body: same ? '' : event.text(),
  };
}
