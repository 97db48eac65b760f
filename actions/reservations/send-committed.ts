/**
 * Sends committed reservations as events (docs/rules/reservations.md, "The event"): they are appended to the log under their ids, and their
 * offsets are stored. After a crash the same bytes are sent again, and each id is counted once.
 */

import { buildEventTexts, computeEventsBytes, computeUnitsPerEvent } from '../../core/credits/reservations/event.ts';
import { indexById } from '../../core/foundation/by-id.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import { KeyedBatchLoader } from '../../storage/concurrency/batch-loader.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import {
  loadReceivedTime,
  type PlacedEvents,
  type ReservationModel,
  recordSent,
} from '../../storage/models/reservations/reservation.ts';
import { type AppendedEvent, appendEventsWithPositions, toOneBody } from '../metering/events/append-events.ts';

const AT_ONCE_MAX = 500;
const BYTES_MAX = 1024 * 1024;
/** Maximum size of the events of a small reservation. Larger reservations have separate batches, so that small ones are not delayed. */
const LARGE_BYTES = 64 * 1024;
/** Upper bound of the event bytes built at a time, independent of the number of requests. */
const GROUP_BYTES = 8 * 1024 * 1024;

const SEND_BATCHES = new KeyedBatchLoader<Stores, ReservationModel, void>(
  async (stores, reservations) => {
    await sendAll(stores, reservations);
    return reservations.map(() => undefined);
  },
  { batchMax: AT_ONCE_MAX },
);

/** Resolves when the events are durable in the log and their offsets are stored. */
export async function sendCommitted(stores: Stores, reservation: ReservationModel): Promise<void> {
  if (reservation.is_sent) return;
  const { tenant_id, environment_id } = reservation;
  // Large batches wait only for other large batches, so small ones are not delayed.
  const isLarge = computeEventsBytes(reservation) > LARGE_BYTES;
  await SEND_BATCHES.load(
    stores,
    reservation,
    `${scopeKey({ tenant_id, environment_id })}/${isLarge ? 'large' : 'small'}`,
  );
}

type CommittedEvent = { readonly reservation: ReservationModel; readonly id: string; readonly text: string };

/** Sends the reservations of one environment. A commit may be listed twice. */
async function sendAll(stores: Stores, reservations: readonly ReservationModel[]): Promise<void> {
  const each = [...indexById(reservations).values()];
  for (const some of splitIntoGroups(each, { max: GROUP_BYTES, bytesOf: (one) => computeEventsBytes(one) }))
    await sendGroup(stores, some);
}

async function sendGroup(stores: Stores, reservations: readonly ReservationModel[]): Promise<void> {
  const { tenant_id, environment_id } = reservations[0]!;
  const scope: Scope = { tenant_id, environment_id };
  const events = reservations.flatMap((reservation) =>
    buildEventTexts(reservation.id, reservation).map((text, index) => ({
      reservation,
      id: buildEventId(reservation, index),
      text,
    })),
  );
  const now = await loadReceivedTime(stores.postgres);
  const placed: (AppendedEvent & CommittedEvent)[] = [];
  for (const some of splitIntoGroups(events, { max: BYTES_MAX, bytesOf: ({ text }) => text.length })) {
    const places = await appendEventsWithPositions(stores.log, scope, { ...toOneBody(some.map(toBytes)), now });
    placed.push(...some.map((event, index) => ({ ...event, ...places[index]! })));
  }
  await stores.postgres.transaction((transaction) => recordSent(transaction, scope, toPlacedEvents(placed)));
}

const toBytes = ({ id, text }: CommittedEvent) => ({ bytes: Buffer.from(text), event_id: id });

function buildEventId({ id }: ReservationModel, index: number): string {
  return index === 0 ? id : `${id}:${index + 1}`;
}

/** Splits in order. An element larger than `max` is a group of its own. */
function splitIntoGroups<One>(
  all: readonly One[],
  { max, bytesOf }: { max: number; bytesOf(one: One): number },
): One[][] {
  const groups: One[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const one of all) {
    const more = bytesOf(one);
    if (bytes + more > max) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)!.push(one);
    bytes += more;
  }
  return groups;
}

/** Sums the units of each reservation per partition, with the offset of its last event in that partition. */
function toPlacedEvents(placed: readonly (AppendedEvent & CommittedEvent)[]): PlacedEvents[] {
  const groups = groupBy(placed, ({ reservation, partition }) => `${reservation.id}/${partition}`);
  return [...groups.values()].map((of) => {
    const [{ reservation, partition }] = of;
    const units = computeUnitsPerEvent(new Decimal(reservation.committed_quantity!), reservation.event_count);
    const offset = of.reduce((last, one) => (one.offset > last ? one.offset : last), of[0].offset);
    return { reservation, partition, offset, units: units.times(String(of.length)) };
  });
}
