/** Deletes outcomes of a slice that an earlier attempt wrote and the current attempt does not want. */

import type { EventOutcome } from '../../core/metering/event/outcome.ts';
import { type ClickHouseClient, toClickHouseFailure } from '../clickhouse/clickhouse.ts';
import { deleteWhere } from '../clickhouse/delete.ts';
import { quoteText } from '../clickhouse/literals.ts';

type RetainedOutcomes = {
  readonly partition: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly outcomes: readonly EventOutcome[];
};

type OutcomeKey = readonly [offset: string, position: number, outcome: string, meter_id: string];

/** Deletes outcomes at offsets of [from, to) that are not among `outcomes`. */
export async function deleteOtherOutcomes(clickhouse: ClickHouseClient, retained: RetainedOutcomes): Promise<void> {
  const wanted = new Set(
    retained.outcomes.map((row) => toOutcomeText([String(row.offset), row.position, row.outcome, row.meter_id])),
  );
  const others = (await listOutcomeKeys(clickhouse, retained)).filter((key) => !wanted.has(toOutcomeText(key)));
  const conditions = others.map(
    ([offset, position, outcome, meter_id]) =>
      `(offset = ${offset} and position = ${position} and outcome = ${quoteText(outcome)} and meter_id = ${quoteText(meter_id)})`,
  );
  await deleteWhere(clickhouse, { table: 'event_outcomes', conditions, only: `partition = ${retained.partition}` });
}

async function listOutcomeKeys(
  clickhouse: ClickHouseClient,
  { partition, from, to }: RetainedOutcomes,
): Promise<OutcomeKey[]> {
  try {
    const answer = await clickhouse.query({
      query: `select distinct toString(offset), position, outcome, meter_id from event_outcomes
               where partition = ${partition} and offset >= ${from} and offset < ${to}`,
      format: 'JSONCompactEachRow',
    });
    return await answer.json<OutcomeKey>();
  } catch (error) {
    throw toClickHouseFailure('outcomes of a slice', error);
  }
}

function toOutcomeText(outcome: OutcomeKey): string {
  return outcome.join('\n');
}
