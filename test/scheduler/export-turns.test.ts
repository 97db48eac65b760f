/**
 * Places of files are for one turn (docs/decisions/0021-fairness.md): stores of four tenants that never end keep nobody else waiting, and
 * what is large for good reason is written all the same.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import type { Task } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

const TURN_MS = 4_000;

describe('files that take long', () => {
  const directory = mkdtempSync(join(tmpdir(), 'turns-'));
  let world: World;
  let scheduler: Scheduler;
  let server: Server;
  let endpoint_url: string;
  /** Each file that was begun, in order; one that is begun anew among those that take long is there once. */
  const begun = new Set<string>();
  /** Answers that nobody has got. */
  const held: (() => void)[] = [];
  let answers = false;
  const answerAll = () => {
    answers = true;
    for (const say of held.splice(0)) say();
  };

  before(async () => {
    server = createServer((request, response) => {
      request.resume();
      const { pathname, searchParams } = new URL(request.url!, 'http://store');
      const begins = request.method === 'POST' && searchParams.has('uploads');
      if (begins) begun.add(pathname);
      const isBegun = '<InitiateMultipartUploadResult><UploadId>an upload</UploadId></InitiateMultipartUploadResult>';
      const done = '<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>';
      const body = request.method === 'POST' ? (begins ? isBegun : done) : '';
      const say = () => response.setHeader('etag', '"x"').end(body);
      // What is to be taken away is; all else waits.
      if (request.method === 'DELETE') response.writeHead(204).end();
      else if (answers) say();
      else held.push(say);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    endpoint_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    world = await startWorld({
      now: '2026-03-01T12:00:00Z',
      config: { EXPORT_DIRECTORY: directory, EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true' },
    });
  });
  after(async () => {
    await world.stop();
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true });
  });

  beforeEach(() => {
    answers = false;
    begun.clear();
  });
  /** Called when all runs are in the queue: on a busy machine a turn is over before the runs of all tenants are requested. */
  const startTurns = () => {
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock, export_slice_ms: TURN_MS });
  };
  afterEach(async () => {
    answerAll();
    await scheduler.stop();
  });

  async function runsOf(count: number, ...[key, connection, job_config]: Parameters<typeof runOf>) {
    const runs: (() => Promise<Task>)[] = [];
    for (let nth = 0; nth < count; nth++) runs.push(await runOf(key, connection, job_config));
    return runs;
  }
  async function runOf(key: string, connection: object, job_config: object) {
    const ask = async <Method extends string, Path extends string>(method: Method, path: Path, body?: object) => {
      const answer = await world.api.request(method, path, { key, ...(body ? { body: body as never } : {}) });
      expect(answer.status, answer.text).to.be.within(200, 202);
      return answer.body;
    };
    const { id: connection_id } = await ask('POST', '/connections', { name: 'x', ...connection });
    const what = { connection_id, entity_type: 'events', interval: 'hourly', enabled: false, job_config };
    const scheduled = await ask('POST', '/tasks/scheduled', what);
    const { task_id } = await ask('POST', `/tasks/scheduled/${scheduled.id}/run`, {});
    return (): Promise<Task> => ask('GET', `/tasks/${task_id}`);
  }

  it('however many files tenants have for such stores, each tenant has one in turn', async () => {
    const encrypted_secret_data = { s3: { aws_access_key_id: 'a', aws_secret_access_key: 'b' } };
    const tenants = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];
    const runs: (() => Promise<Task>)[] = [];
    for (const bucket of tenants) {
      const { key } = await world.api.otherTenant();
      runs.push(...(await runsOf(3, key, { provider_type: 's3', encrypted_secret_data }, { bucket, endpoint_url })));
    }
    startTurns();
    const hasBegun = (bucket: string) => [...begun].some((path) => path.startsWith(`/${bucket}/`));
    await until('each tenant has begun a file', async () => tenants.every(hasBegun), 60_000);
    // Four begin at once. The last two tenants begin with second files of others, and before any third one.
    expect([...begun]).to.have.lengthOf.at.most(8);
    answerAll();
    for (const task of runs) await until('it is done', async () => (await task()).task_status === 'COMPLETED', 60_000);
  });

  it('four tenants whose stores never answer give their places up, and the fifth has its file', async () => {
    const encrypted_secret_data = { s3: { aws_access_key_id: 'a', aws_secret_access_key: 'b' } };
    const slow: (() => Promise<Task>)[] = [];
    for (let nth = 0; nth < 4; nth++) {
      const { key } = await world.api.otherTenant();
      const job_config = { bucket: 'exports', endpoint_url };
      slow.push(await runOf(key, { provider_type: 's3', encrypted_secret_data }, job_config));
    }
    const { key } = await world.api.otherTenant();
    const fifth = await runOf(key, { provider_type: 'directory' }, {});
    startTurns();
    await until('the fifth has its file', async () => (await fifth()).task_status === 'COMPLETED', 25_000);
    for (const task of slow) {
      const told = await until('it has given its place up', async () => {
        const now = await task();
        return now.error_summary !== null && now;
      });
      expect(told).to.include({ task_status: 'PROCESSING' });
      expect(told.error_summary).to.equal('it takes long, and is begun anew where it keeps no other waiting');
    }
    // A file is written a moment before its job is away.
    await until('theirs are the only jobs left', async () => {
      const jobs = await world.api.services.postgres('graphile_worker.jobs').whereLike('task_identifier', '%export');
      return jobs.length === 4 && jobs.every(({ task_identifier }) => task_identifier === 'slow-export');
    });
    // When their stores answer at last they are done, under the same runs.
    answerAll();
    for (const task of slow) await until('it is done', async () => (await task()).task_status === 'COMPLETED', 60_000);
    for (const task of slow) expect(await task()).to.include({ error_summary: null });
  });
});
