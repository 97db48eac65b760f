/** Takes back outcomes of a slice that is written otherwise than a try before it wanted. */
import { type ClickHouseClient, clickhouseFailure } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';
import { quoted } from '../clickhouse/literals.ts';
import type { EventOutcome } from './tables.ts';

type Kept = {
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly outcomes: readonly EventOutcome[];
};

type Place = readonly [offset: string, position: number, outcome: string, meter_id: string];

/** Those that stand at offsets of [from, to) and are not among `outcomes`. */
export async function forgetOtherOutcomes(clickhouse: ClickHouseClient, kept: Kept): Promise<void> {
  const wanted = new Set(
    kept.outcomes.map((row) => keyOf([String(row.offset), row.position, row.outcome, row.meter_id])),
  );
  const others = (await placesOf(clickhouse, kept)).filter((place) => !wanted.has(keyOf(place)));
  const conditions = others.map(
    ([offset, position, outcome, meter_id]) =>
      `(offset = ${offset} and position = ${position} and outcome = ${quoted(outcome)} and meter_id = ${quoted(meter_id)})`,
  );
  await deleteWhere(clickhouse, { table: 'event_outcomes', conditions, only: `partition = ${kept.partition}` });
}

async function placesOf(clickhouse: ClickHouseClient, { partition, from, to }: Kept): Promise<Place[]> {
  try {
    const answer = await clickhouse.query({
      query: `select distinct toString(offset), position, outcome, meter_id from event_outcomes
               where partition = ${partition} and offset >= ${from} and offset < ${to}`,
      format: 'JSONCompactEachRow',
    });
    return await answer.json<Place>();
  } catch (error) {
    throw clickhouseFailure('outcomes of a slice', error);
  }
}

function keyOf(place: Place): string {
  return place.join('\n');
}
