/**
 * A clock whose files are not taken, or have no turn, keeps no other standing, and itself not for ever (docs/rules/exports.md, "By the clock of an
 * environment"; docs/decisions/0021-fairness.md).
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

const BEGINS = '2024-01-01T00:00:00Z';

describe('clocks beside stores that take their time', () => {
  const directory = mkdtempSync(join(tmpdir(), 'clocks-beside-slow-stores-'));
  let world: World;
  let server: Server;
  let asked: number;
  let stops: (() => Promise<unknown>)[];

  beforeEach(async () => {
    asked = 0;
    // It takes the question, and never answers.
    server = createServer(() => void asked++);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    world = await startWorld({
      now: BEGINS,
      test_clock: true,
      config: { EXPORT_DIRECTORY: directory, EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true' },
    });
    world.api.setNow(new Date('2026-11-26T11:00:00Z'));
    stops = [];
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    for (const stop of stops.reverse()) await stop();
    await world.stop();
  });
  after(() => rmSync(directory, { recursive: true }));

  const schedule = async (connection: object, job_config: object) => {
    const { id: connection_id } = await world.post('/connections', { name: 'There', ...connection });
    return world.post('/tasks/scheduled', { connection_id, entity_type: 'events', interval: 'hourly', job_config });
  };
  const startJobs = () => {
    const scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    stops.push(() => scheduler.stop());
  };
  async function environmentWithClock() {
    const environment = await world.post('/environments', { name: 'Another', type: 'development' });
    const made = { name: 'k', type: 'private_key', environment_id: environment.id };
    const { api_key: key } = await world.post('/secrets/api/keys', made);
    const ask = async <Method extends string, Path extends string>(method: Method, path: Path, body?: object) => {
      const answer = await world.api.request(method, path, { key, ...(body ? { body: body as never } : {}) });
      expect(answer.status, answer.text).to.be.within(200, 202);
      return answer.body;
    };
    const { id } = await ask('POST', '/test-clocks', { frozen_time: BEGINS });
    return {
      advance: (frozen_time: string) => ask('POST', `/test-clocks/${id}/advance`, { frozen_time }),
      clock: () => ask('GET', `/test-clocks/${id}`),
    };
  }

  it('one that waits for a file keeps that of another environment of its tenant standing for seconds', async () => {
    const { port } = server.address() as AddressInfo;
    const encrypted_secret_data = { s3: { aws_access_key_id: 'a', aws_secret_access_key: 'b' } };
    const job_config = { bucket: 'exports', endpoint_url: `http://127.0.0.1:${port}` };
    await schedule({ provider_type: 's3', encrypted_secret_data }, job_config);
    const other = await environmentWithClock();
    startJobs();
    await world.requestAdvance('2024-01-01T01:10:00Z');
    await until('the store has its file', async () => asked > 0);
    await other.advance('2024-03-01T00:00:00Z');
    await until('the other has arrived', async () => (await other.clock()).test_clock_status === 'ready', 25_000);
    expect(await world.testClock()).to.include({
      test_clock_status: 'advancing',
      frozen_time: '2024-01-01T01:05:00Z',
    });
    expect((await other.clock()).frozen_time).to.equal('2024-03-01T00:00:00Z');
  });

  it('one whose file has had no turn for ten minutes goes on, and the file has what was there at its instant', async () => {
    const { services } = world.api;
    await world.meter('tokens');
    const scheduled = await schedule({ provider_type: 'directory' }, {});
    const send = (n: number, at: string) => world.send([world.event('acme', 'tokens', { n, at })]);
    await send(1, '2024-01-01T00:30:00Z');
    const { workflow_id } = await world.requestAdvance('2024-01-01T01:10:00Z');
    const advanceOn = () => world.work(workflow_id!, AbortSignal.timeout(60_000));
    // Nobody writes files here: it gives its place up, and waits for another.
    expect(await advanceOn()).to.equal('overtaken');
    expect(await world.testClock()).to.include({ frozen_time: '2024-01-01T01:05:00Z' });
    expect(await services.postgres('test_clocks').select('worker')).to.deep.equal([{ worker: null }]);
    const wait = (minutes: number) =>
      services.postgres.raw(`update graphile_worker._private_jobs set created_at = now() - make_interval(mins => ?)`, [
        minutes,
      ]);
    await wait(9);
    expect(await advanceOn()).to.equal('overtaken');
    await wait(11);
    expect(await advanceOn()).to.equal('completed');
    expect(await world.testClock()).to.include({ test_clock_status: 'ready', frozen_time: '2024-01-01T01:10:00Z' });
    // What comes for the time of the file while that is not written yet is of the next.
    await send(2, '2024-01-01T00:40:00Z');
    await world.advance('2024-01-01T02:10:00Z');
    await send(3, '2024-01-01T00:50:00Z');
    startJobs();
    const tasks = await until('the files are written', async () => {
      const path = `/tasks?scheduled_task_id=${scheduled.id}&sort=range_start&order=asc` as const;
      const { items } = await world.get(path);
      return items.every(({ task_status }) => task_status === 'COMPLETED') && items;
    });
    const files = tasks.map(async ({ id }) => {
      const { download_url } = await world.get(`/tasks/${id}/download`);
      return csvRecords(await (await fetch(download_url)).text()).map(({ properties }) => properties);
    });
    expect(await Promise.all(files)).to.deep.equal([['{"n":1}'], ['{"n":2}']]);
  });
});
