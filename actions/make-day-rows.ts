/**
 * Makes the day rows of UTC days that are over (docs/decisions/0008). Until then a day has base rows only; from then on
 * whoever writes base rows of it writes day rows too, and questions read them. It is the effect of one message in the log,
 * like a rebuild:
 *
 *   close the gate → no slice is in its bucket rows → sum up the base rows, day by day → from here on these days have day rows
 *
 * After a crash the next owner of the partition does it again, when nothing of the earlier try can still arrive. Nobody
 * reads day rows of a day before it is done, so what a try left is taken away by the next.
 */
import { unavailable } from '../core/error.ts';
import {
  closeGate,
  type GateKeeper,
  giveGateBack,
  type HeldPartition,
  noteRebuildUntil,
  openGate,
  untilQuiet,
} from '../storage/bucket-gate.ts';
import type { EngineClock } from '../storage/events/rows.ts';
import { hasUnsettledVersions } from '../storage/meter-versions.ts';
import { daysBefore, setDaysBefore } from '../storage/slices.ts';
import type { Database, Stores } from '../storage/stores.ts';
import { daysWithBaseRows, deleteDayRows, insertDayRows } from '../storage/usage/day-rows.ts';

export type DayRowsAsked = {
  readonly held: HeldPartition;
  readonly clock: EngineClock;
  /** Days since 1970: day rows for the days before it. */
  readonly days_before: number;
  /** Records the end, in the transaction that opens the gate. */
  finish(transaction: Database): Promise<void>;
};

/** While the gate is closed nobody writes usage rows: what is not done by then is left for the next message. */
const BEGIN_WITHIN_S = 5;
const WRITE_WITHIN_S = 30;

export async function makeDayRows(stores: Stores, asked: DayRowsAsked): Promise<void> {
  const { clock, finish } = asked;
  const keeper: GateKeeper = { ...asked.held, only_adds: true };
  const pending = await closeGate(stores.postgres, keeper);
  if (pending !== null && clock.now_s() <= Number(pending))
    throw unavailable('the usage rows (day rows of an earlier try may still arrive)');
  const days_before = await madeUntil(stores, keeper, asked).catch(async (error) => {
    // Before anything was written the gate is given back; after, it stays closed for the next try.
    await giveGateBack(stores.postgres, keeper);
    throw error;
  });
  await stores.postgres.transaction(async (transaction) => {
    if (days_before !== null) await setDaysBefore(transaction, days_before);
    await finish(transaction);
    await openGate(transaction, keeper);
  });
}

/** Before which day there are day rows now; null where it stays as it was. */
async function madeUntil(
  { postgres, clickhouse }: Stores,
  keeper: GateKeeper,
  { clock, days_before: until }: DayRowsAsked,
): Promise<number | null> {
  const from = daysBefore(await untilQuiet(postgres, keeper.partition));
  if (from >= until) return null;
  // A back-fill writes past the gate, and cannot begin while we are at it: it waits for this partition to meet its barrier.
  if (await hasUnsettledVersions(postgres)) return null;
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  await noteRebuildUntil(postgres, keeper, deadline_s);
  await deleteDayRows(clickhouse, from, deadline_s);
  const token = `days:${keeper.partition}:${keeper.epoch}:${deadline_s}`;
  const begin_until_s = clock.now_s() + BEGIN_WITHIN_S;
  let made = from;
  for (const day of await daysWithBaseRows(clickhouse, { from, until })) {
    if (clock.now_s() > begin_until_s) return made === from ? null : made;
    await insertDayRows(clickhouse, day, { token, deadline_s });
    // A day that takes so long is not whole: its rows are taken away by the next try.
    if (clock.now_s() >= deadline_s) return made === from ? null : made;
    made = day + 1;
  }
  return until;
}
