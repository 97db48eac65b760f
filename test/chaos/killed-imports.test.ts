/**
 * kill -9 of a process that imports a file, at each instant of a batch and at any: whoever comes after it goes on, nothing is there twice and
 * nothing is missing (docs/rules/imports.md, "Each row once").
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

const EVENTS = 6_000;
const CUSTOMERS = 400;

describe('an import whose process is killed', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    await world.meter('calls', { type: 'SUM', field: 'n' });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const postgres = () => world.api.services.postgres;
  const waiting = () => postgres()('pg_locks').where({ locktype: 'advisory', granted: false, objid: 79 });
  const taskOf = (id: string) => world.get(`/tasks/${id}`);

  async function begin(entity: string, file: string) {
    const answer = await world.api.request('POST', `/tasks/upload?entity_type=${entity}&file_type=CSV`, {
      body: Buffer.from(file),
      headers: { 'content-type': 'text/csv' },
    });
    expect(answer.status, answer.text).to.equal(202);
    return answer.body;
  }

  /** At the first write of this kind it waits, and is killed. */
  async function killAt(table: string, when: string): Promise<void> {
    await postgres().raw(`
      create or replace function wait_here() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(79); return new; end $$;
      create trigger wait_here before insert or update on ${table}
        for each row when (${when}) execute function wait_here()`);
    const holding = await postgres().transaction();
    await holding.raw('select pg_advisory_xact_lock(79)');
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    try {
      await until('it is in the middle', async () => (await waiting()).length > 0, 60_000);
    } finally {
      child.kill('SIGKILL');
      await ended;
      await holding.rollback();
    }
    await until('nothing of it is left', async () => (await waiting()).length === 0);
    await postgres().raw(`drop trigger wait_here on ${table}`);
  }

  /** Once it has come further than before. */
  async function killOnTheWay(id: string): Promise<void> {
    const { processed_records: before } = await taskOf(id);
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    await until(
      'it goes on',
      async () => {
        const { processed_records, task_status } = await taskOf(id);
        return processed_records > before || task_status === 'COMPLETED';
      },
      60_000,
    );
    child.kill('SIGKILL');
    await ended;
  }

  async function finish(id: string) {
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    try {
      const task = await until(
        'it is done',
        async () => {
          const task = await taskOf(id);
          return task.task_status !== 'PROCESSING' && task;
        },
        120_000,
      );
      // Whatever else was killed on the way is taken over, too: an audit that was reading holds the rows for as long as it said that it may take.
      await world.waitForPipeline(120_000);
      return task;
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  }

  it('events: the log has a batch that is not noted, and others any time', async () => {
    const rows = Array.from({ length: EVENTS }, (_, i) => (i % 1_000 === 7 ? 'calls,,1' : `calls,acme,${i % 10}`));
    const { id } = await begin('EVENTS', `event_name,external_customer_id,properties.n\n${rows.join('\n')}\n`);
    await killAt('tasks', 'new.processed_records = 2000');
    expect((await taskOf(id)).processed_records).to.equal(1_000);
    await killOnTheWay(id);
    await killAt('workflow_runs', "new.workflow_status = 'Completed'");
    const task = await finish(id);
    const refused = EVENTS / 1_000;
    expect([task.task_status, task.total_records, task.successful_records, task.failed_records]).to.deep.equal([
      'COMPLETED',
      EVENTS,
      EVENTS - refused,
      refused,
    ]);
    const asked = { event_name: 'calls', external_customer_id: 'acme', property_name: 'n' };
    const range = { start_time: '2026-03-15T00:00:00Z', end_time: '2026-03-16T00:00:00Z' };
    const [sum, count] = await Promise.all(
      ['SUM', 'COUNT'].map((aggregation_type) => world.post('/events/usage', { ...asked, ...range, aggregation_type })),
    );
    expect(count!.value).to.equal(String(EVENTS - refused));
    const expected = rows.reduce((all, row) => all + (row.startsWith('calls,acme') ? Number(row.at(-1)) : 0), 0);
    expect(sum!.value).to.equal(String(expected));
    expect(await linesOf(id)).to.equal(refused);
  }).timeout(300_000);

  it('customers: a row is written that is not committed, and others any time', async () => {
    const rows = Array.from({ length: CUSTOMERS }, (_, i) => (i % 100 === 9 ? 'k-0' : `k-${i}`));
    const { id } = await begin('CUSTOMERS', `external_id\n${rows.join('\n')}\n`);
    await killAt('customers', "new.external_id = 'k-55'");
    await killOnTheWay(id);
    await killOnTheWay(id);
    const task = await finish(id);
    const refused = CUSTOMERS / 100;
    expect([task.task_status, task.total_records, task.successful_records, task.failed_records]).to.deep.equal([
      'COMPLETED',
      CUSTOMERS,
      CUSTOMERS - refused,
      refused,
    ]);
    const made = await postgres()('customers')
      .whereLike('external_id', 'k-%')
      .count('* as all')
      .countDistinct('external_id as own');
    expect(made[0]).to.include({ all: String(CUSTOMERS - refused), own: String(CUSTOMERS - refused) });
    const told = await postgres()('system_events').where({ event_name: 'customer.created' }).count();
    expect(told[0]!.count).to.equal(String(CUSTOMERS - refused));
    expect(await linesOf(id)).to.equal(refused);
  }).timeout(300_000);

  async function linesOf(id: string): Promise<number> {
    return (await world.api.request('GET', `/tasks/${id}/report`)).text.trimEnd().split('\r\n').length - 1;
  }
});
