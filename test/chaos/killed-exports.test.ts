/**
 * kill -9 of a process that writes an export, at each place of it: before the first byte, in the middle of the file, and when the file has its
 * name and nobody knows it yet. Another process takes it over: one file, whole, with each record once, and one task
 * (docs/rules/exports.md, "Whole or not there").
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { addDueExports } from '../../actions/reporting/exports/due-exports.ts';
import type { Task } from '../support/answers.ts';
import { startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

const INVOICES = 20_000;

describe('a process that is killed while it writes an export', () => {
  const directory = mkdtempSync(join(tmpdir(), 'exports-'));
  let world: World;
  before(async function () {
    this.timeout(120_000);
    world = await startWorld({ now: '2026-04-02T00:00:00Z', config: { EXPORT_DIRECTORY: directory } });
    await world.customer('acme');
    const { scope, services } = world.api;
    await services.postgres.raw(
      `insert into invoices (id, tenant_id, environment_id, customer_id, invoice_type, payment_status, billing_reason, currency,
                             invoice_number, invoice_status, finalized_at, created_at)
       select 'inv_' || lpad(i::text, 26, '0'), ?, ?, ?, 'ONE_OFF', 'PENDING', 'MANUAL', 'usd', 'N-' || i, 'FINALIZED',
              timestamptz '2026-04-01Z' + make_interval(secs => i / 3), '2026-04-01Z'
         from generate_series(1, ${INVOICES}) i`,
      [scope.tenant_id, scope.environment_id, world.id('customer acme')],
    );
  });
  after(async () => {
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  const postgres = () => world.api.services.postgres;
  const waiting = () => postgres()('pg_locks').where({ locktype: 'advisory', granted: false, objid: 79 });
  const files = () =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map(({ parentPath, name }) => join(parentPath, name));
  const bytesOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

  async function dueExport() {
    const folder = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    world.at('2026-04-01T12:00:00Z');
    const what = { connection_id: folder.id, entity_type: 'invoice', interval: 'daily', job_config: {} };
    const scheduled = await world.post('/tasks/scheduled', what);
    world.at('2026-04-02T01:00:00Z');
    // Whoever looks: one task.
    await Promise.all([1, 2, 3].map(() => addDueExports(world.api.services, { now: world.now, delay_seconds: 0 })));
    const { items } = await world.get(`/tasks?scheduled_task_id=${scheduled.id}`);
    expect(items).to.have.length(1);
    return items[0]!;
  }

  /** Kills it once it is where it is to be killed. */
  async function killedWhen(is_there: () => Promise<boolean>): Promise<void> {
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    try {
      await until('it is in the middle', is_there, 60_000);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  }

  async function isTakenOver(task: Pick<Task, 'id' | 'scheduled_task_id'>): Promise<void> {
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    try {
      const done = await until(
        'another process has completed it',
        async () => {
          const now = await world.get(`/tasks/${task.id}`);
          return now.task_status === 'COMPLETED' && now;
        },
        90_000,
      );
      expect(files().map((path) => path.split('/').at(-1))).to.deep.equal([done.file_name]);
      const bytes = readFileSync(files()[0]!);
      expect(createHash('sha256').update(bytes).digest('hex')).to.equal(done.sha256);
      // No cell of it has a comma or the end of a line.
      const [, ...lines] = bytes.toString().trimEnd().split('\r\n');
      const ids = lines.map((line) => line.split(',', 1)[0]);
      expect(ids).to.have.length(INVOICES);
      expect(new Set(ids).size).to.equal(INVOICES);
      expect(done).to.include({ total_records: INVOICES, size_bytes: bytes.length });
      const { items } = await world.get(`/tasks?scheduled_task_id=${task.scheduled_task_id}`);
      expect(items).to.have.length(1);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  }

  /** Where it waits in a transaction, which nobody commits then. */
  async function stoppedAt(when: string, work: () => Promise<void>): Promise<void> {
    await postgres().raw(`
      create or replace function wait_there() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(79); return new; end $$;
      create trigger wait_there before update on tasks for each row when (${when}) execute function wait_there()`);
    const holding = await postgres().transaction();
    await holding.raw('select pg_advisory_xact_lock(79)');
    try {
      await work();
    } finally {
      await waiting().select(postgres().raw('pg_terminate_backend(pid)'));
      await holding.rollback();
      await until('nothing of it is left', async () => (await waiting()).length === 0);
      await postgres().raw('drop trigger wait_there on tasks');
    }
  }

  const isWaiting = async () => (await waiting()).length > 0;
  const clean = () => {
    for (const path of files()) rmSync(path);
  };

  it('before the first byte', async () => {
    const task = await dueExport();
    await stoppedAt('new.upload_id is distinct from old.upload_id and new.upload_id is not null', () =>
      killedWhen(isWaiting),
    );
    expect(files()).to.deep.equal([]);
    await isTakenOver(task);
  }).timeout(180_000);

  it('in the middle of the file', async () => {
    clean();
    const task = await dueExport();
    await killedWhen(async () => files().some((path) => path.endsWith('.partial') && bytesOf(path) > 500_000));
    const [left, ...others] = files();
    expect(left).to.match(/\.partial$/);
    expect(others).to.deep.equal([]);
    expect((await world.get(`/tasks/${task!.id}`)).task_status).to.equal('PROCESSING');
    expect((await world.api.request('GET', `/tasks/${task!.id}/download`)).status).to.equal(404);
    await isTakenOver(task);
  }).timeout(180_000);

  it('when the file has its name, and the task does not say so yet', async () => {
    clean();
    const task = await dueExport();
    await stoppedAt(`new.task_status = 'COMPLETED'`, () => killedWhen(isWaiting));
    expect(files().filter((path) => path.endsWith('.csv'))).to.have.length(1);
    expect((await world.get(`/tasks/${task!.id}`)).task_status).to.equal('PROCESSING');
    await isTakenOver(task);
  }).timeout(180_000);
});
