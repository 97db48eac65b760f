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
import { randomUUID } from 'node:crypto';
import { FarthingError } from '../core/error.ts';
import {
  closeGateWhenQuiet,
  type GateKeeper,
  giveGateBack,
  type HeldPartition,
  noteRebuildUntil,
  openGate,
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
  const { postgres } = stores;
  const keeper: GateKeeper = { ...asked.held, only_adds: true };
  const from = daysBefore(await closeGateWhenQuiet(postgres, keeper, asked.clock));
  const made = await madeUntil(stores, { ...asked, keeper, from }).catch(async (error) => {
    // Before anything was written the gate is given back; after, it stays closed for the next try.
    await giveGateBack(postgres, keeper);
    throw error;
  });
  await openGate(postgres, keeper, async (transaction) => {
    await setDaysBefore(transaction, made.days_before);
    await asked.finish(transaction);
  });
  return made;
}

type Making = DayRowsAsked & {
  readonly keeper: GateKeeper;
  /** Days since 1970: before it there are day rows already. */
  readonly from: number;
};

async function madeUntil(stores: Stores, making: Making): Promise<DayRowsMade> {
  const { keeper, from, clock } = making;
  // Those of later days are there as well: from now on they count for nothing, and the next try takes them away.
  if (from === EVERY_DAY) return { days_before: making.days_before, problem: null };
  if (from >= making.days_before) return { days_before: from, problem: null };
  // A back-fill writes past the gate, and cannot begin while we are at it: it waits for this partition to meet its barrier.
  if (await hasUnsettledVersions(stores.postgres)) return { days_before: from, problem: null };
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  await noteRebuildUntil(stores.postgres, keeper, deadline_s);
  let days_before = from;
  try {
    for await (const made of daysMade(stores, making, deadline_s)) days_before = made;
  } catch (error) {
    // Nothing depends on day rows: what the engine refuses must not hold up the log. A store that is away is waited for.
    if (error instanceof FarthingError && error.code === 'database_error') return { days_before, problem: error };
    throw error;
  }
  return { days_before, problem: clock.now_s() < deadline_s ? null : tooLate('usage_buckets') };
}

/** Before which day there are day rows, each time that one more is whole. */
async function* daysMade(
  { clickhouse }: Stores,
  { clock, from, days_before: until }: Making,
  deadline_s: number,
): AsyncGenerator<number> {
  await deleteDayRows(clickhouse, from, deadline_s);
  // Every try has a token of its own: what an earlier one wrote has just been taken away, and would not be written again.
  const token = `days:${randomUUID()}`;
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
