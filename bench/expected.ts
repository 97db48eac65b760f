/** Computes the expected result of the workload in the simplest way: JSON.parse, a loop over the meters, integers in thousandths. */
import { bulkBodies, meterDefinitions, type WorkloadOptions } from './workload.ts';

export type Expected = { events: number; counts: number[]; thousandths: bigint[] };

type Event = { event_name: string; properties: Record<string, unknown> };

export function computeExpected(
  seeds: readonly number[],
  total: number,
  buildWorkload: (seed: number) => WorkloadOptions = () => ({}),
): Expected {
  const meters = meterDefinitions();
  const expected: Expected = { events: 0, counts: meters.map(() => 0), thousandths: meters.map(() => 0n) };
  for (const seed of seeds) {
    for (const body of bulkBodies(seed, total, 1000, buildWorkload(seed))) {
      for (const event of (JSON.parse(body.toString()) as { events: Event[] }).events) add(expected, meters, event);
    }
  }
  return expected;
}

function add(expected: Expected, meters: ReturnType<typeof meterDefinitions>, event: Event): void {
  expected.events++;
  for (const [index, { event_name, filters, aggregation }] of meters.entries()) {
    if (event_name !== event.event_name) continue;
    if (!filters.every(({ key, values }) => values.includes(String(event.properties[key])))) continue;
    expected.counts[index]!++;
    if (aggregation.type !== 'SUM') continue;
    expected.thousandths[index]! += BigInt(Math.round(Number(event.properties[aggregation.field!]) * 1000));
  }
}
