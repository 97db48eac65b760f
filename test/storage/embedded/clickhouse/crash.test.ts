import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import { expect } from 'chai';
import { startClickHouse } from '../../../../storage/embedded/clickhouse/clickhouse.ts';
import type { ChildServer } from '../../../../storage/embedded/clickhouse/part.ts';

describe('the ClickHouse process', () => {
  let dir: string;
  const parts: ChildServer[] = [];

  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-clickhouse-'));
  });
  afterEach(() => Promise.all(parts.splice(0).map((part) => part.stop())));
  after(() => rmSync(dir, { recursive: true, force: true }));

  const open = async (options: object = {}) => {
    const start = performance.now();
    const part = await startClickHouse({ dir, log: () => {}, ...options });
    const client = createClient({ url: part.url, log: { level: 127 } });
    parts.push(part);
    return { part, client, start_ms: performance.now() - start };
  };
  const ids = async (client: ClickHouseClient) => {
    const result = await client.query({ query: 'SELECT a FROM kept ORDER BY a', format: 'JSONEachRow' });
    return (await result.json<{ a: number }>()).map(({ a }) => Number(a));
  };

  it('loses nothing that was acknowledged when it is killed, and starts again', async () => {
    const first = await open();
    await first.client.command({
      query:
        'CREATE TABLE kept (a UInt32) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 1000',
    });
    const acknowledged: number[] = [];
    let dead = false;
    const writing = (async () => {
      for (let a = 0; !dead; a += 1) {
        const clickhouse_settings = { insert_deduplication_token: `token-${a}` };
        await first.client.insert({ table: 'kept', values: [{ a }], format: 'JSONEachRow', clickhouse_settings });
        acknowledged.push(a);
        if (a === 40) process.kill(first.part.pid, 'SIGKILL');
      }
    })().catch(() => {});
    const exit = await new Promise<{ expected: boolean; detail: string }>((resolve) => first.part.onExit(resolve));
    dead = true;
    await writing;
    expect(exit.expected).to.equal(false);
    expect(exit.detail).to.contain('ClickHouse was ended by SIGKILL');

    const second = await open();
    const kept = await ids(second.client);
    expect(kept).to.include.members(acknowledged);
    expect(kept.length).to.be.at.most(acknowledged.length + 1);
    // The insert that nobody acknowledged is repeated with its token, and all of them are there once.
    for (const a of [acknowledged.length - 1, acknowledged.length]) {
      const clickhouse_settings = { insert_deduplication_token: `token-${a}` };
      await second.client.insert({ table: 'kept', values: [{ a }], format: 'JSONEachRow', clickhouse_settings });
    }
    expect(await ids(second.client)).to.deep.equal(Array.from({ length: acknowledged.length + 1 }, (_, a) => a));
    await Promise.all([first.client.close(), second.client.close()]);
  });

  it('gives its directory to one process only', async () => {
    const { client } = await open();
    const error = await open().catch((reason: Error) => reason);
    expect(String(error)).to.contain(`The ClickHouse directory ${dir} is in use by another process`);
    expect((await client.ping()).success).to.equal(true);
    await client.close();
  }).timeout(30_000);

  it('stops when it is told to, with everything written, and leaves no files behind', async () => {
    const { part, client } = await open();
    await client.insert({ table: 'kept', values: [{ a: 1_000_000 }], format: 'JSONEachRow' });
    await client.close();
    await part.stop();
    const exit = await new Promise<{ expected: boolean }>((resolve) => part.onExit(resolve));
    expect(exit.expected).to.equal(true);
    expect(readdirSync(dir).sort()).to.deep.equal(['config.xml', 'data']);
    const again = await open();
    expect(await ids(again.client)).to.include(1_000_000);
    await again.client.close();
    console.log(`      start with data: ${again.start_ms.toFixed(0)} ms`);
  });

  it('tells a statement that waits too long for its turn to come back', async () => {
    const { client } = await open({ connections: 1, queue_ms: 100 });
    const slow = client.query({ query: 'SELECT sleep(1)' });
    const pushed = await client.query({ query: 'SELECT 1' }).then(
      () => 'answered',
      (error) => error.type,
    );
    const second = await client.query({ query: 'SELECT 1' }).then(
      () => 'answered',
      (error) => error.type,
    );
    expect([pushed, second]).to.include('TOO_MANY_SIMULTANEOUS_QUERIES');
    await (await slow).text();
    expect(await (await client.query({ query: 'SELECT 1', format: 'TabSeparated' })).text()).to.equal('1\n');
    await client.close();
  });

  it('ends by itself when its parent was killed, and the next start finds everything', async () => {
    const module = fileURLToPath(new URL('../../../../storage/embedded/clickhouse/clickhouse.ts', import.meta.url));
    const script = `
      import { startClickHouse } from ${JSON.stringify(module)};
      const part = await startClickHouse({ dir: ${JSON.stringify(dir)}, log: () => {} });
      console.log(JSON.stringify({ pid: part.pid, url: part.url }));`;
    const parent = spawn(
      process.execPath,
      ['--import', './process/typescript.mjs', '--input-type=module', '-e', script],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [line] = await once(createInterface({ input: parent.stdout }), 'line');
    const { pid, url } = JSON.parse(line);
    const client = createClient({ url });
    await client.insert({ table: 'kept', values: [{ a: 2_000_000 }], format: 'JSONEachRow' });
    await client.close();
    parent.kill('SIGKILL');
    const next = await open();
    while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve)); // The test's time limit is the limit.
    expect(await ids(next.client)).to.include(2_000_000);
    await next.client.close();
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
