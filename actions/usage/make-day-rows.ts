/**
 * Makes the day rows of UTC days that are over (docs/decisions/0008). Until then a day has base rows only; from then on
 * whoever writes base rows of it writes day rows too, and questions read them. It is the effect of one message in the log,
 * like a rebuild:
 *
 *   close the gate → no slice is in its bucket rows → sum up the base rows, day by day → from here on these days have day rows
 *
 * After a crash the next owner of the partition does it again, under a greater number. Nobody reads day rows of a day before
 * it is done, so what a try left is taken away by the next.
 */
import { FarthingError } from '../../core/error.ts';
import type { WriteAttempt } from '../../storage/events/write-fence.ts';
import { partitionWriter } from '../../storage/progress/attempts.ts';
import {
  beginRebuild,
  closeGateWhenQuiet,
  type GateKeeper,
  giveGateBack,
  openGate,
} from '../../storage/progress/bucket-gate.ts';
import { hasUnsettledVersions } from '../../storage/progress/meter-versions.ts';
import { daysBefore, EVERY_DAY, type HeldPartition, setDaysBefore } from '../../storage/progress/slices.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { daysWithBaseRows, deleteDayRows, insertDayRows } from '../../storage/usage/day-rows.ts';

export type DayRowsAsked = {
  readonly held: HeldPartition;
  /** Days since 1970: day rows for the days before it. */
  readonly days_before: number;
  /** Records the end, in the transaction that opens the gate. */
  finish(transaction: Database): Promise<void>;
};

/** While the gate is closed nobody writes usage rows: beyond so many base rows the days are left for the next message. */
const BASE_ROWS_MAX = 3_000_000;

/** What came of it: before which day there are day rows now, and why there are not more, where they could not be written. */
export type DayRowsMade = { readonly days_before: number; readonly problem: Error | null };

export async function makeDayRows(stores: Stores, asked: DayRowsAsked): Promise<DayRowsMade> {
  const { postgres } = stores;
  const keeper: GateKeeper = { ...asked.held, only_adds: true };
  const from = daysBefore(await closeGateWhenQuiet(postgres, keeper));
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
  const { keeper, from } = making;
  // Those of later days are there as well: from now on they count for nothing, and the next try takes them away.
  if (from === EVERY_DAY) return { days_before: making.days_before, problem: null };
  if (from >= making.days_before) return { days_before: from, problem: null };
  // A back-fill writes past the gate, and cannot begin while we are at it: it waits for this partition to meet its barrier.
  if (await hasUnsettledVersions(stores.postgres)) return { days_before: from, problem: null };
  const own = { writer: partitionWriter(keeper.partition), attempt: await beginRebuild(stores.postgres, keeper) };
  let days_before = from;
  try {
    for await (const made of daysMade(stores, making, own)) days_before = made;
  } catch (error) {
    // Nothing depends on day rows: what the engine refuses must not hold up the log. A store that is away is waited for.
    if (error instanceof FarthingError && error.code === 'database_error') return { days_before, problem: error };
    throw error;
  }
  return { days_before, problem: null };
}

/** Before which day there are day rows, each time that one more is whole. */
async function* daysMade(
  { clickhouse }: Stores,
  { from, days_before: until }: Making,
  own: WriteAttempt,
): AsyncGenerator<number> {
  await deleteDayRows(clickhouse, from, own.attempt);
  let rows = 0;
  for (const { day, base_rows } of await daysWithBaseRows(clickhouse, { from, until })) {
    if (rows > 0 && rows + base_rows > BASE_ROWS_MAX) return;
    rows += base_rows;
    await insertDayRows(clickhouse, day, own);
    yield day + 1;
  }
  yield until;
}
