/** CPU of ClickHouse for one event by its id, with more and with fewer events. */
import { claim, fixed, flag, say } from './report.ts';
import { measureKind } from './requests-cpu.ts';
import type { Side } from './requests-side.ts';
import { HISTORY_EVENTS } from './requests-world.ts';

const MUST = 1.5;
const COPIES_AT_ONCE = 10;
/** In the ids of copies, which are not copied again. */
const MARK = '_copy_';
/** Each copy is some time after its event, as another event of the customer would be. */
const APART_US = 1_000;

export async function compareGrowth(sides: readonly Side[]): Promise<void> {
  const total = flag('events', 1_000_000);
  for (const side of sides) {
    const fewer = (await measureKind('one event', side, 1)).cost.clickhouse;
    await copyEvents(side, Math.ceil(total / HISTORY_EVENTS));
    await side.service.waitUntilMerged();
    const more = (await measureKind('one event', side, 2)).cost.clickhouse;
    const ratio = more / fewer;
    const measured = `${fixed(more, 2)} ÷ ${fixed(fewer, 2)} ms = ${fixed(ratio, 2)} with ${total} more events`;
    if (side === sides[0]) claim('one event, ClickHouse', measured, `${MUST}`, ratio <= MUST);
    else say(`  one event, ClickHouse, ${side.name}: ${measured}`);
  }
}

/** Copies the events within ClickHouse: ten million of them take the pipeline minutes. */
async function copyEvents({ service }: Side, copies: number): Promise<void> {
  const id = `concat(event_id, '${MARK}', toString(number)) as event_id`;
  const time = `timestamp + toIntervalMicrosecond(number * ${APART_US}) as timestamp`;
  const hash = `cityHash64(id_hash, number) as id_hash`;
  const tables = { events: [id, time], event_identities: [id, time, hash] };
  for (let first = 1; first <= copies; first += COPIES_AT_ONCE) {
    const numbers = `numbers(${first}, ${Math.min(COPIES_AT_ONCE, copies - first + 1)})`;
    for (const [table, values] of Object.entries(tables)) {
      const originals = `(select * from ${table} where position(event_id, '${MARK}') = 0) as originals`;
      const select = `select * except (number) replace (${values.join(', ')}) from ${originals} cross join ${numbers} as copies`;
      await service.call({ what: 'command', sql: `insert into ${table} ${select}` });
    }
  }
}
