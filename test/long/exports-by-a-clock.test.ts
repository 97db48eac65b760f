/**
 * Scheduled exports in an environment with a clock of its own, which stands years behind that of the machine: an advance makes each file at
 * the instant at which it is due, and the machine's clock makes none (docs/rules/exports.md, "By the clock of an environment").
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { addDueExports } from '../../actions/reporting/exports/due-exports.ts';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import type { Connection, ScheduledTask } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const MACHINE = new Date('2026-11-26T11:00:00Z');
const DELAY_SECONDS = 300;

describe('scheduled exports by the clock of an environment', () => {
  const directory = mkdtempSync(join(tmpdir(), 'exports-by-a-clock-'));
  let world: World;
  let scheduler: Scheduler;
  let folder: Connection;

  const schedule = (entity_type: string, fields: object = {}) =>
    world.post('/tasks/scheduled', {
      connection_id: folder.id,
      entity_type,
      interval: 'daily',
      job_config: {},
      ...fields,
    });
  const tasksOf = async ({ id }: ScheduledTask) =>
    (await world.get(`/tasks?scheduled_task_id=${id}&sort=range_start&order=asc&limit=1000`)).items;
  const recordsOf = async (task: { id: string }) => {
    const { download_url } = await world.get(`/tasks/${task.id}/download`);
    return csvRecords(await (await fetch(download_url)).text());
  };
  const arrived = (timeout_ms: number) =>
    until('the clock has arrived', async () => (await world.testClock()).test_clock_status !== 'advancing', timeout_ms);
  const byTheMachine = () => addDueExports(world.api.services, { now: MACHINE, delay_seconds: DELAY_SECONDS });

  before(async () => {
    world = await startWorld({
      now: '2024-01-01T00:00:00Z',
      test_clock: true,
      config: { EXPORT_DIRECTORY: directory, EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true' },
    });
    world.api.setNow(MACHINE);
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    folder = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    await world.meter('tokens');
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' }), usage('tokens', '1')]);
    await world.subscribe('acme', 'Pro');
    await world.send(
      Array.from({ length: 31 }, (_, day) =>
        world.event('acme', 'tokens', { n: day, at: new Date(Date.UTC(2024, 0, day + 1, 12)).toISOString() }),
      ),
    );
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  it('an advance over days, and the end of a month, has their files, each made at its instant, with what was there then', async () => {
    await world.requestAdvance('2024-01-26T00:00:00Z');
    await arrived(60_000);
    const [events, invoices] = [await schedule('events'), await schedule('invoice')];
    expect(events).to.include({ next_start: '2024-01-26T00:00:00Z', next_end: '2024-01-27T00:00:00Z' });
    expect((await byTheMachine()).done).to.deep.equal({ exports: 0 });
    await world.requestAdvance('2024-02-02T01:00:00Z');
    // Jobs of the machine look all the while.
    await until(
      'the clock has arrived',
      async () => {
        expect((await byTheMachine()).done).to.deep.equal({ exports: 0 });
        return (await world.testClock()).test_clock_status !== 'advancing';
      },
      120_000,
    );
    const clock = await world.testClock();
    expect(clock, JSON.stringify(clock.failure)).to.include({
      test_clock_status: 'ready',
      frozen_time: '2024-02-02T01:00:00Z',
    });
    expect(clock.progress.done.exports).to.equal(14);
    for (const one of [events, invoices]) {
      const tasks = await tasksOf(one);
      expect(tasks).to.have.length(7);
      for (const { task_status, error_summary, range_end, completed_at } of tasks) {
        expect(task_status, error_summary!).to.equal('COMPLETED');
        expect(Date.parse(completed_at!) - Date.parse(range_end!)).to.equal(DELAY_SECONDS * 1_000);
      }
    }
    const days = await Promise.all((await tasksOf(events)).map(recordsOf));
    expect(days.map((records) => records.map(({ properties }) => properties))).to.deep.equal([
      ...Array.from({ length: 6 }, (_, day) => [`{"n":${25 + day}}`]),
      [],
    ]);
    const made = await Promise.all((await tasksOf(invoices)).map(recordsOf));
    const totals = made.flatMap((records, day) => records.map(({ total }) => [day, total]));
    // The invoice of January, which rests two hours; that of its opening was final before the schedule was made.
    expect(totals).to.deep.equal([[6, '475']]);
    for (const { id } of [events, invoices]) await world.api.request('DELETE', `/tasks/scheduled/${id}`);
  });

  it('a store that takes nothing holds no advance up, neither this nor the next', async () => {
    const store = await world.post('/connections', {
      name: 'Nowhere',
      provider_type: 's3',
      encrypted_secret_data: { s3: { aws_access_key_id: 'a', aws_secret_access_key: 'b' } },
    });
    const job_config = { bucket: 'exports', endpoint_url: 'http://127.0.0.1:9' };
    const scheduled = await schedule('events', { connection_id: store.id, job_config });
    await world.requestAdvance('2024-02-04T01:00:00Z');
    await arrived(60_000);
    await world.requestAdvance('2024-02-05T01:00:00Z');
    await arrived(60_000);
    expect(await world.testClock()).to.include({ test_clock_status: 'ready', frozen_time: '2024-02-05T01:00:00Z' });
    const [first, ...others] = await tasksOf(scheduled);
    expect(others).to.have.length(2);
    expect(first!.task_status).to.equal('PROCESSING');
    expect(first!.error_summary).to.match(/ECONNREFUSED/);
  });

  it('what was enabled again is exported by the next advance, be it to where the clock stands', async () => {
    const scheduled = await schedule('usage_analytics', { enabled: false });
    await world.requestAdvance('2024-02-07T01:00:00Z');
    await arrived(60_000);
    expect(await tasksOf(scheduled)).to.deep.equal([]);
    await world.api.request('PUT', `/tasks/scheduled/${scheduled.id}`, { body: { enabled: true } });
    await world.requestAdvance('2024-02-07T01:00:00Z');
    await arrived(60_000);
    expect((await tasksOf(scheduled)).map(({ task_status }) => task_status)).to.deep.equal(['COMPLETED', 'COMPLETED']);
  });
});

describe('a clock for an environment that has schedules', () => {
  const directory = mkdtempSync(join(tmpdir(), 'exports-before-a-clock-'));
  let world: World;
  let scheduled: ScheduledTask;

  before(async () => {
    world = await startWorld({ now: '2026-03-01T10:20:00Z', config: { EXPORT_DIRECTORY: directory } });
    const { id } = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    const fields = { connection_id: id, entity_type: 'events', interval: 'hourly', job_config: {} };
    scheduled = await world.post('/tasks/scheduled', fields);
  });
  after(async () => {
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  const look = () =>
    addDueExports(world.api.services, { now: new Date('2026-03-01T13:00:00Z'), delay_seconds: DELAY_SECONDS });

  it('a job of the machine that found one due leaves it to the clock that was made meanwhile', async () => {
    const { postgres } = world.api.services;
    const { tenant_id, environment_id } = world.api.scope;
    let looking!: ReturnType<typeof look>;
    await postgres.transaction(async (held) => {
      await held('scheduled_tasks').where({ id: scheduled.id }).forUpdate();
      looking = look();
      await until('the job waits for the schedule', async () => {
        const { rows } = await postgres.raw(
          `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%scheduled_tasks%'`,
        );
        return rows.length > 0;
      });
      const at = '2024-01-01T00:30:00Z';
      const clock = { id: 'a clock', tenant_id, environment_id, progress: { instants: 0, done: {} } };
      await held('test_clocks').insert({ ...clock, frozen_time: at, advanced_from: at, advanced_at: at });
    });
    expect(await looking).to.deep.equal({ done: { exports: 0 }, waiting: [], failed: [] });
    await postgres('test_clocks').where({ id: 'a clock' }).delete();
  });

  it('they begin with the interval in which it stands', async () => {
    await world.post('/test-clocks', { frozen_time: '2024-01-01T00:30:00Z' });
    expect(await world.get(`/tasks/scheduled/${scheduled.id}`)).to.include({
      next_start: '2024-01-01T00:00:00Z',
      next_end: '2024-01-01T01:00:00Z',
    });
    expect((await look()).done).to.deep.equal({ exports: 0 });
  });
});
