/**
 * Places of long work are for one turn where others wait (docs/decisions/0021-fairness.md): clocks that go through years keep nobody
 * else waiting.
 */
import { expect } from 'chai';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import { createTimeSlice } from '../../scheduler/time-slice.ts';
import { recordTurn } from '../../storage/queue/fair-jobs.ts';
import { addJob } from '../../storage/queue/jobs.ts';
import type { AnswerTo } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

type Asking = <Method extends string, Path extends string>(
  method: Method,
  path: Path,
  body?: object,
) => Promise<AnswerTo<Method, Path>>;

const BEGINS = '2024-01-01T00:00:00Z';

describe('long work of many tenants', () => {
  let world: World;
  let scheduler: Scheduler;
  before(async () => {
    world = await startWorld({ now: BEGINS });
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
  });

  /** Of a new tenant, in an environment that may have a clock. */
  async function tenant(): Promise<Asking> {
    const asking =
      (key: string): Asking =>
      async (method, path, body) => {
        const answer = await world.api.request(method, path, { key, ...(body ? { body: body as never } : {}) });
        expect(answer.status, answer.text).to.be.within(200, 202);
        return answer.body as never;
      };
    const first = asking((await world.api.otherTenant()).key);
    const { id: environment_id } = await first('POST', '/environments', { name: 'Tests', type: 'development' });
    const { api_key } = await first('POST', '/secrets/api/keys', { name: 'k', type: 'private_key', environment_id });
    return asking(api_key);
  }

  /** A clock, and so many weekly subscriptions. */
  async function withClock(ask: Asking, subscriptions: number) {
    const { id } = await ask('POST', '/test-clocks', { frozen_time: BEGINS });
    const plan = await ask('POST', '/plans', { name: 'Weekly' });
    const price = { ...fixed('1'), entity_type: 'PLAN', entity_id: plan.id, currency: 'usd' };
    const each = { billing_cadence: 'RECURRING', billing_period: 'WEEKLY', billing_period_count: 1 };
    await ask('POST', '/prices', { ...price, ...each });
    for (let nth = 0; nth < subscriptions; nth++) {
      const customer = await ask('POST', '/customers', { external_id: `customer ${nth}` });
      const terms = { customer_id: customer.id, plan_id: plan.id, currency: 'usd', start_date: BEGINS };
      await ask('POST', '/subscriptions', { ...terms, ...each, billing_cycle: 'anniversary' });
    }
    return {
      advance: (frozen_time: string) => ask('POST', `/test-clocks/${id}/advance`, { frozen_time }),
      clock: () => ask('GET', `/test-clocks/${id}`),
      stop: () => ask('POST', `/test-clocks/${id}/stop`, {}),
      plan: {
        sync: async () => {
          const { workflow_id, run_id } = await ask('POST', `/plans/${plan.id}/sync/subscriptions`, {});
          return () => ask('GET', `/workflows/${workflow_id}/${run_id}/summary`);
        },
      },
    };
  }

  it('clocks that go through years let that of a fifth tenant have a place within a turn', async () => {
    const long: Awaited<ReturnType<typeof withClock>>[] = [];
    for (let nth = 0; nth < 4; nth++) long.push(await withClock(await tenant(), 10));
    const ask = await tenant();
    const short = await withClock(ask, 1);
    for (const each of long) await each.advance('2124-01-01T00:00:00Z');
    await until('all places are taken', async () => {
      const clocks = await Promise.all(long.map((each) => each.clock()));
      return clocks.every(({ progress }) => progress.instants > 0);
    });
    await short.advance('2024-02-01T00:00:00Z');
    await until('the fifth has arrived', async () => (await short.clock()).test_clock_status === 'ready', 30_000);
    expect((await short.clock()).frozen_time).to.equal('2024-02-01T00:00:00Z');
    const stopped = await Promise.all(long.map((each) => each.stop()));
    expect(
      stopped.map(({ frozen_time }) => frozen_time < '2124-01-01'),
      'they were on their way still',
    ).to.deep.equal([true, true, true, true]);
  });

  it('copies of environments that do not end keep neither clocks nor price syncs of others waiting', async () => {
    const { postgres } = world.api.services;
    const { advance, clock, plan } = await withClock(await tenant(), 1);
    const holding = await postgres.transaction();
    try {
      await holding.raw('lock table environment_copies in access exclusive mode');
      for (let nth = 0; nth < 4; nth++) {
        const other = await world.api.otherTenant();
        const body = { name: 'A copy', type: 'development' };
        const path = `/environments/${other.scope.environment_id}/clone` as const;
        const answer = await world.api.request('POST', path, { key: other.key, body });
        expect(answer.status, answer.text).to.equal(202);
      }
      await until('all copies are on their way', async () => {
        const begun = await postgres('graphile_worker.jobs')
          .where({ task_identifier: 'clone-environment' })
          .whereNotNull('locked_at');
        return begun.length === 4;
      });
      await advance('2024-02-01T00:00:00Z');
      await until('the clock has arrived', async () => (await clock()).test_clock_status === 'ready', 30_000);
      const sync = await plan.sync();
      await until('the prices are there', async () => (await sync()).status === 'Completed', 30_000);
    } finally {
      await holding.rollback();
    }
  });

  it('imports of large files let that of a fifth tenant have a place within a turn', async () => {
    const refused = `external_id,name\n${'x\n'.repeat(400_000)}`;
    const long: Awaited<ReturnType<typeof importing>>[] = [];
    for (let nth = 0; nth < 4; nth++) long.push(await importing(refused));
    await until('all places are taken', async () => {
      const tasks = await Promise.all(long.map(({ task }) => task()));
      return tasks.every(({ processed_records }) => processed_records > 0);
    });
    const short = await importing('external_id\nten\nrows\n');
    await until('the fifth is done', async () => (await short.task()).task_status === 'COMPLETED', 60_000);
    const stopped = await Promise.all(long.map(({ stop }) => stop()));
    expect(
      stopped.map(({ task_status, processed_records }) => [task_status, processed_records < 400_000]),
      'they were on their way still',
    ).to.deep.equal(Array(4).fill(['FAILED', true]));
  });

  async function importing(file: string) {
    const { key } = await world.api.otherTenant();
    const asked = { key, body: Buffer.from(file), headers: { 'content-type': 'text/csv' } };
    const { status, text, body } = await world.api.request(
      'POST',
      '/tasks/upload?entity_type=CUSTOMERS&file_type=CSV',
      asked,
    );
    expect(status, text).to.equal(202);
    const ask = async <Method extends string, Path extends string>(method: Method, path: Path, change?: object) =>
      (await world.api.request(method, path, { key, ...(change ? { body: change as never } : {}) })).body;
    return {
      task: () => ask('GET', `/tasks/${body.id}`),
      stop: async () => {
        await ask('PUT', `/tasks/${body.id}/status`, { task_status: 'FAILED' });
        return ask('GET', `/tasks/${body.id}`);
      },
    };
  }

  it('a place is kept while nobody waits for it, or whoever does has another of its line to wait for', async () => {
    const { postgres } = world.api.services;
    const lane = ['a task of this test'];
    const lineOf = (queue: string) => ({ task: lane[0]!, queue });
    const mine = lineOf('mine');
    const mayGoOn = createTimeSlice(postgres, { line: mine, lane, slice_ms: 0 });
    const wait = (key: string, queue: string) =>
      addJob(postgres, { task: lane[0]!, payload: {}, key, queue, max_attempts: 1 });
    await recordTurn(postgres, mine);
    expect(await mayGoOn(), 'nobody waits').to.equal(true);
    await wait('begun', 'other');
    expect(await mayGoOn(), 'another waits').to.equal(false);
    await postgres.raw(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'x' where key = 'begun'`,
    );
    expect(await mayGoOn(), 'it has begun').to.equal(true);
    await wait('behind it', 'other');
    expect(await mayGoOn(), 'its next waits for it').to.equal(true);
    await wait('my next', 'mine');
    expect(await mayGoOn(), 'my own next waits for me').to.equal(false);
    const inOrder = createTimeSlice(postgres, { line: mine, lane, in_order: true, slice_ms: 0 });
    expect([await inOrder(), await inOrder()], 'where they go in order it is none to give way to').to.deep.equal([
      true,
      true,
    ]);
    let now = 0;
    const reading = createTimeSlice(postgres, {
      line: mine,
      lane,
      rereads_input: true,
      slice_ms: 5_000,
      now: () => now,
    });
    const answers: boolean[] = [];
    for (now of [20_000, 39_999, 40_000]) answers.push(await reading());
    expect(answers, 'it has as long as it took to come where it was').to.deep.equal([true, true, false]);
    const patient = createTimeSlice(postgres, { line: mine, lane, slice_ms: 60_000 });
    expect([await patient(), await patient()], 'its turn lasts').to.deep.equal([true, true]);
  });
});
