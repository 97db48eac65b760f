/** kill -9 of the process that holds the stores, again and again and under load: the next start begins at once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createClient } from '@clickhouse/client';
import { expect } from 'chai';
import { startEmbedded } from '../../storage/embedded/stack.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { until } from '../support/until.ts';

const file = (name: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../storage/embedded/${name}`, import.meta.url)));
const quietly = () => {};

/** Program of a separate process; it prints the stores that it started as a line of JSON. */
const BOTH_ELSEWHERE = `
  import { startEmbedded } from ${file('stack.ts')};
  const { postgres_url, clickhouse_url, pids } = await startEmbedded({ dir: process.argv[1], log: () => {} });
  console.log(JSON.stringify({ postgres_url, clickhouse_url, pids: pids() }));`;

/** As versions did that had no lock of the kernel. */
const STORES_WITHOUT_LOCK = `
  import { startClickHouse } from ${file('clickhouse/clickhouse.ts')};
  import { startPostgres } from ${file('postgres/postgres.ts')};
  const clickhouse = await startClickHouse({ dir: process.argv[1] + '/clickhouse', log: () => {} });
  const postgres = await startPostgres({ dir: process.argv[1] + '/postgres', log: () => {} });
  console.log(JSON.stringify({ postgres_url: postgres.url, clickhouse_url: clickhouse.url }));`;

describe('what a killed process leaves behind', () => {
  let dir: string;
  const elsewhere = new Set<ChildProcess>();
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-left-'));
  });
  afterEach(() => {
    for (const process of elsewhere) process.kill('SIGKILL');
    elsewhere.clear();
    rmSync(dir, { recursive: true, force: true });
  });

  const startElsewhere = async (script: string, path = dir) => {
    const args = ['--import', './process/typescript.mjs', '--input-type=module', '-e', script, path];
    const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    elsewhere.add(parent);
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const kill = async () => {
      parent.kill('SIGKILL');
      await once(parent, 'exit');
      elsewhere.delete(parent);
    };
    return { told: JSON.parse(line), kill };
  };

  it('stores that do not end by themselves are ended, whatever path led to them, and nothing that was acknowledged is lost', async () => {
    const link = `${dir}-link`;
    symlinkSync(dir, link);
    const { told, kill } = await startElsewhere(BOTH_ELSEWHERE, link);
    const before = createClient({ url: told.clickhouse_url });
    await before.command({ query: 'create table kept (a UInt32) engine = MergeTree order by a' });
    await before.insert({ table: 'kept', values: [{ a: 7 }], format: 'JSONEachRow' });
    await before.close();
    for (const pid of told.pids) process.kill(pid, 'SIGSTOP');
    await kill();
    const said: string[] = [];
    const next = await startEmbedded({ dir, log: (part, line) => part === 'directory' && said.push(line) });
    rmSync(link);
    const named = [...said[0]!.matchAll(/\d+/g)].map(([pid]) => Number(pid));
    expect(named, said.join()).to.include.members(told.pids);
    const client = createClient({ url: next.clickhouse_url });
    const answer = await client.query({ query: 'select a from kept', format: 'JSONEachRow' });
    expect(await answer.json()).to.deep.equal([{ a: 7 }]);
    await client.close();
    await next.stop();
  });

  it('a directory that a living process holds is refused at once, and its servers left alone', async () => {
    const { told } = await startElsewhere(BOTH_ELSEWHERE);
    const error = await startEmbedded({ dir, log: quietly }).catch((reason: Error) => reason);
    expect(String(error)).to.contain(`The data directory ${dir} is in use by process `);
    const client = createClient({ url: told.clickhouse_url });
    expect((await client.ping({ select: true })).success).to.equal(true);
    await client.close();
    const postgres = connectPostgres(told.postgres_url);
    await postgres.raw('select 1');
    await postgres.destroy();
  });

  it('a version from before the lock that runs in another container is refused, and nothing of it is touched', async () => {
    const { told } = await startElsewhere(STORES_WITHOUT_LOCK);
    // As it reads from another pid namespace: nobody of this number is here.
    const content = JSON.stringify({ pid: 2 ** 22 + 1, started: 'elsewhere' });
    writeFileSync(join(dir, 'farthing.lock'), content);
    writeFileSync(join(dir, 'stores.json'), JSON.stringify(told));
    const pid_file = () => readFileSync(join(dir, 'postgres', 'data', 'postmaster.pid'), 'utf8');
    const before = pid_file();
    // The second try, as of a supervisor, must not take the trace of the first one for a signature of ours.
    for (const _try of [1, 2]) {
      const error = await startEmbedded({ dir, log: quietly }).catch((reason: Error) => reason);
      expect(String(error)).to.contain(
        `The ClickHouse directory ${join(dir, 'clickhouse')} is in use by another process`,
      );
      expect(readFileSync(join(dir, 'farthing.lock'), 'utf8')).to.equal(content);
      expect(readFileSync(join(dir, 'stores.json'), 'utf8')).to.equal(JSON.stringify(told));
      expect(pid_file()).to.equal(before);
    }
    const postgres = connectPostgres(told.postgres_url);
    await postgres.raw('select 1');
    await postgres.destroy();
  });

  it('again and again under load: both stores start each time, with everything that was acknowledged', async () => {
    let acknowledged = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { told, kill } = await startElsewhere(BOTH_ELSEWHERE);
      const load = startLoad(told);
      await until('there is load', async () => load.acknowledged() > 20);
      await kill();
      acknowledged += await load.ended();
      const embedded = await startEmbedded({ dir, log: quietly });
      const client = createClient({ url: embedded.clickhouse_url });
      const answer = await client.query({ query: 'select count() as n from heavy', format: 'JSONEachRow' });
      const [row] = await answer.json<{ n: string }>();
      expect(Number(row!.n) / ROWS_PER_INSERT).to.be.at.least(acknowledged);
      await client.close();
      await embedded.stop();
    }
  }).timeout(600_000);
});

const ROUNDS = 3;
const ROWS_PER_INSERT = 20_000;

/** More inserts at once than the engine runs, long questions, and rows for Postgres, until the stores are gone. */
function startLoad(urls: { clickhouse_url: string; postgres_url: string }) {
  let acknowledged = 0;
  const client = createClient({ url: urls.clickhouse_url, log: { level: 127 }, max_open_connections: 20 });
  const pool = connectPostgres(urls.postgres_url, { pool_max: 4 });
  const columns = 'a UInt64, b String, c String';
  const made = client.command({
    query: `create table if not exists heavy (${columns}) engine = MergeTree order by (b, a)`,
  });
  const table = pool.raw('create table if not exists heavy (a text)');
  const untilGone = async (ready: Promise<unknown>, work: () => Promise<unknown>) => {
    try {
      await ready;
      for (;;) await work();
    } catch {
      // The stores are gone, as they should be.
    }
  };
  const insert = async () => {
    await client.command({
      query: `insert into heavy select number, toString(cityHash64(number, rand())), repeat('x', 200) from numbers(${ROWS_PER_INSERT})`,
    });
    acknowledged++;
  };
  const ask = () => client.command({ query: `select sleepEachRow(0.1) from numbers(30) format Null` });
  const write = () =>
    pool.raw('insert into heavy select repeat(md5(random()::text), 20) from generate_series(1, 2000)');
  const all = [
    ...Array.from({ length: 8 }, () => untilGone(made, insert)),
    ...Array.from({ length: 2 }, () => untilGone(made, ask)),
    ...Array.from({ length: 3 }, () => untilGone(table, write)),
  ];
  const ended = async () => {
    await Promise.all(all);
    await Promise.all([client.close(), pool.destroy()]);
    return acknowledged;
  };
  return { acknowledged: () => acknowledged, ended };
}
