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
import { daysBefore, EVERY_DAY, readProgress, setDaysBefore } from '../storage/slices.ts';
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
  // Whoever reads need not wait, unless rows are taken away that are read. Nobody but us changes what this is about.
  const only_adds = daysBefore(await readProgress(stores.postgres)) !== EVERY_DAY;
  const keeper: GateKeeper = { ...asked.held, only_adds };
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

async function madeUntil(
  { postgres, clickhouse }: Stores,
  keeper: GateKeeper,
  { clock, days_before: until }: DayRowsAsked,
): Promise<DayRowsMade> {
  const from = daysBefore(await untilQuiet(postgres, keeper.partition));
  const upTo = (days_before: number, problem: Error | null = null) => ({ days_before, problem });
  if (from >= until && from !== EVERY_DAY) return upTo(from);
  // A back-fill writes past the gate, and cannot begin while we are at it: it waits for this partition to meet its barrier.
  if (await hasUnsettledVersions(postgres)) return upTo(from);
  const deadline_s = clock.now_s() + WRITE_WITHIN_S;
  await noteRebuildUntil(postgres, keeper, deadline_s);
  await deleteDayRows(clickhouse, Math.min(from, until), deadline_s);
  if (from === EVERY_DAY) return upTo(until);
  const token = `days:${keeper.partition}:${keeper.epoch}:${deadline_s}`;
  const begin_until_s = clock.now_s() + BEGIN_WITHIN_S;
  let made = from;
  for (const day of await daysWithBaseRows(clickhouse, { from, until })) {
    if (clock.now_s() > begin_until_s) return upTo(made);
    try {
      await insertDayRows(clickhouse, day, { token, deadline_s });
    } catch (error) {
      // Nothing depends on day rows: what the engine refuses must not hold up the log. A store that is away is waited for.
      if (error instanceof FarthingError && error.code === 'database_error') return upTo(made, error);
      throw error;
    }
    // Such a day is not whole: what there is of it is taken away by the next try.
    if (clock.now_s() >= deadline_s) return upTo(made, tooLate('usage_buckets'));
    made = day + 1;
  }
  return upTo(until);
}
