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
import { FarthingError, unavailable } from '../core/error.ts';
import {
  closeGate,
  type GateKeeper,
  giveGateBack,
  type HeldPartition,
  noteRebuildUntil,
  openGate,
  untilQuiet,
} from '../storage/bucket-gate.ts';
import { type EngineClock, tooLate } from '../storage/events/rows.ts';
import { hasUnsettledVersions } from '../storage/meter-versions.ts';
import { daysBefore, EVERY_DAY, setDaysBefore } from '../storage/slices.ts';
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

/** What came of it: before which day there are day rows now, and why there are not more, where they could not be written. */
export type DayRowsMade = { readonly days_before: number; readonly problem: Error | null };

export async function makeDayRows(stores: Stores, asked: DayRowsAsked): Promise<DayRowsMade> {
  const { clock, finish } = asked;
  const keeper: GateKeeper = { ...asked.held, only_adds: true };
  const pending = await closeGate(stores.postgres, keeper);
  if (pending !== null && clock.now_s() <= Number(pending))
    throw unavailable('the usage rows (day rows of an earlier try may still arrive)');
  const made = await madeUntil(stores, keeper, asked).catch(async (error) => {
    // Before anything was written the gate is given back; after, it stays closed for the next try.
    await giveGateBack(stores.postgres, keeper);
    throw error;
  });
  await openGate(stores.postgres, keeper, async (transaction) => {
    await setDaysBefore(transaction, made.days_before);
    await finish(transaction);
  });
  return made;
}

async function madeUntil(stores: Stores, keeper: GateKeeper, asked: DayRowsAsked): Promise<DayRowsMade> {
  const from = daysBefore(await untilQuiet(stores.postgres, keeper.partition));
  // Those of later days are there as well: from now on they count for nothing, and the next try takes them away.
  if (from === EVERY_DAY) return { days_before: asked.days_before, problem: null };
  if (from >= asked.days_before) return { days_before: from, problem: null };
  // A back-fill writes past the gate, and cannot begin while we are at it: it waits for this partition to meet its barrier.
  if (await hasUnsettledVersions(stores.postgres)) return { days_before: from, problem: null };
  const deadline_s = asked.clock.now_s() + WRITE_WITHIN_S;
  await noteRebuildUntil(stores.postgres, keeper, deadline_s);
  let days_before = from;
  try {
    for await (const made of daysMade(stores, { ...asked, keeper, from, deadline_s })) days_before = made;
  } catch (error) {
    // Nothing depends on day rows: what the engine refuses must not hold up the log. A store that is away is waited for.
    if (error instanceof FarthingError && error.code === 'database_error') return { days_before, problem: error };
    throw error;
  }
  return { days_before, problem: asked.clock.now_s() < deadline_s ? null : tooLate('usage_buckets') };
}

type Making = DayRowsAsked & { readonly keeper: GateKeeper; readonly from: number; readonly deadline_s: number };

/** Before which day there are day rows, each time that one more is whole. */
async function* daysMade({ clickhouse }: Stores, making: Making): AsyncGenerator<number> {
  const { clock, keeper, from, days_before: until, deadline_s } = making;
  await deleteDayRows(clickhouse, from, deadline_s);
  const token = `days:${keeper.partition}:${keeper.epoch}:${deadline_s}`;
  const begin_until_s = clock.now_s() + BEGIN_WITHIN_S;
  for (const day of await daysWithBaseRows(clickhouse, { from, until })) {
    if (clock.now_s() > begin_until_s) return;
    await insertDayRows(clickhouse, day, { token, deadline_s });
    // A day that took so long is not whole: what there is of it is taken away by the next try.
    if (clock.now_s() >= deadline_s) return;
    yield day + 1;
  }
  yield until;
}
