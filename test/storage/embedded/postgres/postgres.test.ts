import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Knex } from 'knex';
import type { ChildServer } from '../../../../storage/embedded/clickhouse/part.ts';
import { completeSymlinks } from '../../../../storage/embedded/postgres/binaries.ts';
import { startPostgres } from '../../../../storage/embedded/postgres/postgres.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { until } from '../../../support/until.ts';

const module = fileURLToPath(new URL('../../../../storage/embedded/postgres/postgres.ts', import.meta.url));
const runs_as_root = process.getuid?.() === 0;

/** A process of its own that starts Postgres in that directory and tells about it. */
const startElsewhere = (dir: string) => `
  import { startPostgres } from ${JSON.stringify(module)};
  const part = await startPostgres({ dir: ${JSON.stringify(dir)}, log: () => {} });
  console.log(JSON.stringify({ pid: part.pid, url: part.url }));`;
const NODE = ['--import', './process/typescript.mjs', '--input-type=module', '-e'];

/** It has taken its pid file away, which is what the next one goes by, a moment before it has ended and been buried. */
function isGone(pid: number): Promise<boolean> {
  return until(`process ${pid} is gone`, async () => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  });
}

describe('the Postgres process', () => {
  let dir: string;
  const parts: ChildServer[] = [];
  const pools: Knex[] = [];

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-postgres-'));
  });
  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.destroy()));
    await Promise.all(parts.splice(0).map((part) => part.stop()));
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const open = async (home = dir) => {
    const start = performance.now();
    const part = await startPostgres({ dir: home, log: () => {} });
    parts.push(part);
    const pool = connectPostgres(part.url, { pool_max: 2 });
    pools.push(pool);
    return { part, pool, start_ms: performance.now() - start };
  };
  const keep = async (pool: Knex, a: number) => {
    await pool.raw('create table if not exists kept (a int)');
    await pool('kept').insert({ a });
  };
  const kept = async (pool: Knex) => (await pool('kept').orderBy('a')).map(({ a }: { a: number }) => a);

  it('starts anew with the settings that money needs, and again within two seconds', async () => {
    const first = await open();
    const names = [
      'fsync',
      'synchronous_commit',
      'listen_addresses',
      'unix_socket_directories',
      'data_checksums',
      'server_encoding',
    ];
    const { rows } = await first.pool.raw('select name, setting from pg_settings where name = any(?)', [names]);
    expect(
      Object.fromEntries(rows.map((row: { name: string; setting: string }) => [row.name, row.setting])),
    ).to.deep.equal({
      fsync: 'on',
      synchronous_commit: 'on',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: join(dir, 'data'),
      data_checksums: 'on',
      server_encoding: 'UTF8',
    });
    const order = await first.pool.raw("select x from unnest(array['a', 'B', 'ä']) x order by x");
    expect(order.rows.map(({ x }: { x: string }) => x)).to.deep.equal(['B', 'a', 'ä']);
    await keep(first.pool, 1);
    expect(statSync(join(dir, 'password')).mode & 0o777).to.equal(0o600);
    await first.pool.destroy();
    await first.part.stop();

    // As a copy or a restored back-up may be.
    chmodSync(join(dir, 'password'), 0o644);
    const second = await open();
    expect(statSync(join(dir, 'password')).mode & 0o777).to.equal(0o600);
    expect(await kept(second.pool)).to.deep.equal([1]);
    expect(second.start_ms).to.be.below(2000);
    console.log(`      first start ${first.start_ms.toFixed(0)} ms, second ${second.start_ms.toFixed(0)} ms`);
  });

  it('is reached by a socket, and over loopback by others or if the path of a socket would be too long', async () => {
    const serverAddress = async (pool: Knex) => (await pool.raw('select host(inet_server_addr()) as of')).rows[0].of;
    const { part, pool } = await open();
    expect(await serverAddress(pool)).to.equal(null);
    const url = new URL(part.url);
    url.searchParams.delete('host');
    const overLoopback = connectPostgres(url.href);
    pools.push(overLoopback);
    expect(await serverAddress(overLoopback)).to.equal('127.0.0.1');
    const { pool: far } = await open(join(dir, 'a'.repeat(100)));
    expect(await serverAddress(far)).to.equal('127.0.0.1');
  });

  it('refuses a wrong password', async () => {
    const { part } = await open();
    const url = new URL(part.url);
    url.password = 'wrong';
    const stranger = connectPostgres(url.href);
    pools.push(stranger);
    expect(String(await stranger.raw('select 1').catch((error) => error))).to.contain('password authentication failed');
  });

  it('recovers when it was killed itself', async () => {
    const { part, pool } = await open();
    await keep(pool, 2);
    const exit = new Promise<{ expected: boolean; detail: string }>((resolve) => part.onExit(resolve));
    process.kill(part.pid, 'SIGKILL');
    expect((await exit).expected).to.equal(false);
    expect((await exit).detail).to.contain('Postgres was ended by SIGKILL');
    await pool.destroy();
    const again = await open();
    expect(await kept(again.pool)).to.deep.equal([1, 2]);
  });

  it('is taken over when our process was killed', async () => {
    const parent = spawn(process.execPath, [...NODE, startElsewhere(dir)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const before_ = JSON.parse(line) as { pid: number; url: string };
    const pool = connectPostgres(before_.url);
    await keep(pool, 3);
    await pool.destroy();
    parent.kill('SIGKILL');
    const again = await open();
    expect(await kept(again.pool)).to.deep.equal([1, 2, 3]);
    await isGone(before_.pid);
  });

  it('is taken over while it still runs under nobody', async () => {
    const { part, pool } = await open();
    await keep(pool, 4);
    const again = await open(); // A second start in the same directory, as after a crash of which the server knows nothing.
    expect(await kept(again.pool)).to.deep.equal([1, 2, 3, 4]);
    await isGone(part.pid);
  });

  it('starts over a pid file that names somebody else', async () => {
    const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
    const file = join(dir, 'data', 'postmaster.pid');
    writeFileSync(file, `${bystander.pid}\n${join(dir, 'data')}\n1\n1\n\n127.0.0.1\n`);
    if (runs_as_root) chownSync(file, statSync(join(dir, 'data')).uid, statSync(join(dir, 'data')).gid);
    const { pool } = await open();
    expect(await kept(pool)).to.deep.equal([1, 2, 3, 4]);
    expect(bystander.exitCode).to.equal(null);
    bystander.kill();
  });

  it('tells in its error what the server said', async () => {
    const broken = mkdtempSync(join(tmpdir(), 'farthing-broken-'));
    mkdirSync(join(broken, 'data'), { mode: 0o700 });
    writeFileSync(join(broken, 'data', 'PG_VERSION'), '9\n');
    const error = await open(broken).catch((reason: Error) => reason);
    expect(String(error)).to.match(
      /Postgres ended with code \d+[\s\S]*postgresql\.conf|Postgres ended with code \d+[\s\S]*PG_VERSION|incompatible/,
    );
    rmSync(broken, { recursive: true });
  });

  it('makes the links that the package leaves out, once', () => {
    const native = join(mkdtempSync(join(tmpdir(), 'farthing-links-')), 'native');
    mkdirSync(join(native, 'lib'), { recursive: true });
    writeFileSync(join(native, 'lib', 'libx.so.6.18'), 'x');
    const list = [{ source: 'native/lib/libx.so.6.18', target: 'native/lib/libx.so' }];
    writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(list));
    completeSymlinks(native);
    completeSymlinks(native);
    expect(readFileSync(join(native, 'lib', 'libx.so'), 'utf8')).to.equal('x');
    rmSync(join(native, '..'), { recursive: true });
  });

  // An ordinary user has no other user to be.
  if (runs_as_root)
    describe('for root', () => {
      it('runs below a directory that only root may enter', async () => {
        const home = mkdtempSync(join(homedir(), '.farthing-test-'));
        chmodSync(home, 0o700);
        try {
          const { pool, part } = await open(join(home, 'postgres'));
          await keep(pool, 1);
          expect(readFileSync(`/proc/${part.pid}/status`, 'utf8')).to.match(/^Uid:\s+65534/m);
          await pool.destroy();
          await part.stop();
          const again = await open(join(home, 'postgres'));
          expect(await kept(again.pool)).to.deep.equal([1]);
          await again.pool.destroy();
          await again.part.stop();
        } finally {
          rmSync(home, { recursive: true, force: true });
        }
      });

      it('runs as the owner of data that an ordinary user made, and the other way round', async () => {
        const home = mkdtempSync(join(tmpdir(), 'farthing-user-'));
        chownSync(home, 1, 1);
        const script = `${startElsewhere(join(home, 'postgres'))} await part.stop();`;
        const asUser = () => {
          const env = { PATH: process.env.PATH, HOME: home, TMPDIR: home };
          const run = spawnSync(process.execPath, [...NODE, script], { uid: 1, gid: 1, env, encoding: 'utf8' });
          expect(run.stderr).to.equal('');
          expect(run.status).to.equal(0);
        };
        asUser();
        const { part, pool } = await open(join(home, 'postgres'));
        expect(readFileSync(`/proc/${part.pid}/status`, 'utf8')).to.match(/^Uid:\s+1\s/m);
        await keep(pool, 1);
        await pool.destroy();
        await part.stop();
        asUser();
        rmSync(home, { recursive: true });
      });
    });
});

describe('connectPostgres', () => {
  let part: ChildServer;
  let pool: Knex;
  let dir: string;
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-values-'));
    part = await startPostgres({ dir, log: () => {} });
    pool = connectPostgres(part.url, { statement_timeout_ms: 300, application_name: 'farthing test' });
  });
  after(async () => {
    await pool.destroy();
    await part.stop();
    rmSync(dir, { recursive: true });
  });

  const values: [expression: string, value: unknown][] = [
    ["'2025-01-31'::date", '2025-01-31'],
    ["'0.10'::numeric", '0.10'],
    ["'1234567890123456789012345678.000000000000000001'::numeric", '1234567890123456789012345678.000000000000000001'],
    ["'9223372036854775807'::int8", '9223372036854775807'],
    ['7::int4', 7],
    ["'2025-01-31T10:00:00+02:00'::timestamptz", '2025-01-31T08:00:00Z'],
    ["'2025-01-31T10:00:00.120Z'::timestamptz", '2025-01-31T10:00:00.12Z'],
    ["'2025-01-31T10:00:00.000001Z'::timestamptz", '2025-01-31T10:00:00.000001Z'],
    ["array['2025-01-31T10:00:00Z', null]::timestamptz[]", ['2025-01-31T10:00:00Z', null]],
    ["array['0.10', null]::numeric[]", ['0.10', null]],
    ["array['9223372036854775807']::int8[]", ['9223372036854775807']],
    ["array['2025-01-31']::date[]", ['2025-01-31']],
    ["array['a', null]::text[]", ['a', null]],
    [`'{"a": "0.10"}'::jsonb`, { a: '0.10' }],
    ["'a'::bytea", Buffer.from('a')],
    ['null::timestamptz', null],
  ];
  for (const [expression, value] of values) {
    it(`${expression} → ${JSON.stringify(value)}`, async () => {
      const { rows } = await pool.raw(`select ${expression} as v`);
      expect(rows[0].v).to.deep.equal(value);
    });
  }

  it('sends an instant as text or as a Date, the same', async () => {
    const text = '2025-03-30T01:30:00Z';
    const { rows } = await pool.raw('select ?::timestamptz as a, ?::timestamptz as b', [text, new Date(text)]);
    expect(rows).to.deep.equal([{ a: text, b: text }]);
  });

  it('ends a statement that takes too long', async () => {
    expect(String(await pool.raw('select pg_sleep(5)').catch((error) => error))).to.contain('statement timeout');
  });

  it('goes on after the server has closed its connection: one query fails at most', async () => {
    await pool.raw('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
    const answers = [await pool.raw('select 1 as a').catch(() => undefined), await pool.raw('select 1 as a')];
    expect(answers[1].rows).to.deep.equal([{ a: 1 }]);
  });
});
