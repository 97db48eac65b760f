// CPU of the CH tree for inserting the same 300k events in different ways
import { mkdtempSync, rmSync } from 'node:fs';
import { startEmbedded } from '../storage/embedded/stack.ts';
import { connectClickHouse } from '../storage/clickhouse.ts';
import { migrateClickHouse } from '../sql/migrate.ts';
import { cpuOfTree } from './cpu.ts';
import { Readable } from 'node:stream';
import { seeded, eventText, meterDefinitions } from './workload.ts';
import {
  EVENTS,
  EVENT_IDENTITIES,
  USAGE_BUCKETS,
  eventLine,
  identityLine,
  bucketLine,
} from '../storage/events/tables.ts';
import { EventReader } from '../pipeline/steps/read-events.ts';
import { meterEvents } from '../pipeline/steps/meter-events.ts';
import { compileMeters } from '../core/metering/match.ts';
const dir = mkdtempSync('/tmp/bx/');
const emb = await startEmbedded({ dir, log: () => {} });
const ch = connectClickHouse(emb.clickhouse_url);
await migrateClickHouse(ch);
const [chPid, pgPid] = emb.pids();
const N = 300000,
  S = Number(process.argv[2] ?? 50000);
const idx = compileMeters(meterDefinitions().map((m, i) => ({ ...m, id: 'meter_' + i })));
const reader = new EventReader();
const r = seeded(1);
const slices: any[] = [];
for (let f = 0; f < N; f += S) {
  const recs: any[] = [];
  for (let g = f; g < f + S; g += 1000) {
    const t: string[] = [];
    for (let i = g; i < g + 1000; i++) t.push(eventText(r, i, N));
    recs.push({
      tenant_id: 'tenant_01H',
      environment_id: 'env_01H',
      partition: 0,
      kind: 'events',
      received_at_us: 1.7e15,
      made_ids: null,
      event_count: 1000,
      body: Buffer.from('[' + t.join(',') + ']'),
      offset: BigInt(g / 1000),
    });
  }
  const ev = reader.read(recs).events;
  const b = meterEvents(ev, () => idx).buckets;
  slices.push({
    ev: ev.map(eventLine).join(''),
    id: ev.map(identityLine).join(''),
    b: b.map((x) => bucketLine(x, 1)).join(''),
    n: b.length,
  });
}
function stmt(target: any, opt: any = {}) {
  const cols = target.columns.filter((c: any) => !(opt.skip ?? []).includes(c.name));
  return `INSERT INTO ${target.table} (${cols.map((c: any) => c.name)}) SELECT ${cols.map((c: any) => c.as ?? c.name)} FROM input('${cols
    .map((c: any) => c.name + ' ' + c.type)
    .join(', ')
    .replaceAll("'", "\\'")}') WHERE toUnixTimestamp(nowInBlock()) < 4000000000 FORMAT TabSeparated`;
}
async function run(name: string, target: any, key: string, settings: any = {}, f = (x: string) => x, opt: any = {}) {
  const bodies = slices.map((s) => Buffer.from(f(s[key])));
  await ch.command({ query: `truncate table ${target.table}` });
  await new Promise((r) => setTimeout(r, 500));
  const c0 = cpuOfTree([chPid!]);
  for (const body of bodies) {
    const { stream } = await ch.exec({
      query: stmt(target, opt),
      values: Readable.from([body], { objectMode: false }),
      clickhouse_settings: { input_format_parallel_parsing: 0, max_insert_threads: '1', async_insert: 0, ...settings },
    });
    for await (const _ of stream);
  }
  const c1 = cpuOfTree([chPid!]);
  await new Promise((r) => setTimeout(r, 1500));
  const c2 = cpuOfTree([chPid!]);
  console.log(
    name.padEnd(40),
    'insert',
    (((c1 - c0) / N) * 1e6).toFixed(2),
    '+merge',
    (((c2 - c1) / N) * 1e6).toFixed(2),
  );
}
const i0 = cpuOfTree([chPid!]);
await new Promise((r) => setTimeout(r, 2000));
console.log('idle cpu/s', (cpuOfTree([chPid!]) - i0) / 2);
console.log('bucket rows', slices.reduce((a, s) => a + s.n, 0) / N);
for (let rep = 0; rep < 2; rep++) {
  await run('events', EVENTS, 'ev');
  await run('events threads1', EVENTS, 'ev', { max_threads: '1' });
  await run('identities', EVENT_IDENTITIES, 'id');
  await run('identities threads1', EVENT_IDENTITIES, 'id', { max_threads: '1' });
  await run('buckets', USAGE_BUCKETS, 'b');
  await run('buckets noopt', USAGE_BUCKETS, 'b', { optimize_on_insert: 0 });
  await run('buckets noopt th1', USAGE_BUCKETS, 'b', { optimize_on_insert: 0, max_threads: '1' });
  await run(
    'buckets noopt nouniq',
    USAGE_BUCKETS,
    'b',
    { optimize_on_insert: 0 },
    (t) => t.replaceAll(/\t\[\]\n/g, '\n'),
    { skip: ['uniques'] },
  );
  await run(
    'buckets nouniq nolatest',
    USAGE_BUCKETS,
    'b',
    { optimize_on_insert: 0 },
    (t) =>
      t
        .split('\n')
        .map((l) =>
          l
            .split('\t')
            .filter((_, i) => i !== 13 && i !== 14)
            .join('\t'),
        )
        .join('\n'),
    { skip: ['uniques', 'latest'] },
  );
}
await ch.close();
await emb.stop();
rmSync(dir, { recursive: true, force: true });
