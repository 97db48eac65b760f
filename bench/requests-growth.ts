/** CPU of ClickHouse for one event by its id, with more and with fewer events. */

import { CUSTOMERS } from './mixed-load.ts';
import { startGenerator } from './processes.ts';
import { claim, fixed, flag, say } from './report.ts';
import { measureKind } from './requests-cpu.ts';
import type { Side } from './requests-side.ts';

const MUST = 1.5;
const HOUR_MS = 3_600_000;

export async function compareGrowth(sides: readonly Side[]): Promise<void> {
  const total = flag('events', 1_000_000);
  for (const side of sides) {
    const fewer = (await measureKind('one event', side, 1)).cost.clickhouse;
    const generator = await startGenerator();
    const workload = { customers: CUSTOMERS, from_ms: Date.now() - 20 * HOUR_MS, span_ms: 20 * HOUR_MS };
    const { url, api_key } = side.service;
    await (await generator.prepare({ url, api_key, size: 500, connections: 4, seed: 11, total, workload }))();
    generator.stop();
    await side.service.waitUntilMerged();
    const more = (await measureKind('one event', side, 2)).cost.clickhouse;
    const ratio = more / fewer;
    const measured = `${fixed(more, 2)} ÷ ${fixed(fewer, 2)} ms = ${fixed(ratio, 2)} with ${total} more events`;
    if (side === sides[0]) claim('one event, ClickHouse', measured, `${MUST}`, ratio <= MUST);
    else say(`  one event, ClickHouse, ${side.name}: ${measured}`);
  }
}
