/**
 * Each record is in exactly one file of a schedule (docs/rules/exports.md, "Each record in one file"): events that come late, records whose
 * transactions are open while a file is cut, and clocks that are moved.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { moveCredits } from '../../actions/credits/wallets/move-credits.ts';
import { finalizeWithin } from '../../actions/invoicing/invoices/finalize-invoice.ts';
import { lockInvoice } from '../../actions/invoicing/invoices/lock-invoice.ts';
import { addDueExports } from '../../actions/reporting/exports/due-exports.ts';
import { EXPORT_KINDS } from '../../actions/reporting/exports/kinds.ts';
import { callersKey } from '../../core/credits/wallet/movement-key.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import type { Connection, ScheduledTask } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

describe('scheduled files: each record in one', () => {
  const directory = mkdtempSync(join(tmpdir(), 'scheduled-files-'));
  let world: World;
  let scheduler: Scheduler;
  let folder: Connection;

  const schedule = (entity_type: string, fields: object = {}) =>
    world.post('/tasks/scheduled', {
      connection_id: folder.id,
      entity_type,
      interval: 'hourly',
      job_config: {},
      ...fields,
    });
  const tasksOf = async ({ id }: ScheduledTask) =>
    (await world.get(`/tasks?scheduled_task_id=${id}&sort=range_start&order=asc&limit=1000`)).items;
  const due = (now: string) => {
    world.at(now);
    return addDueExports(world.api.services, { now: new Date(now), delay_seconds: 0 });
  };
  /** What the files of a schedule have so far, file by file. */
  const filesOf = async (scheduled: ScheduledTask, count: number, of = 'event_id'): Promise<string[][]> => {
    const areDone = async () => {
      const all = await tasksOf(scheduled);
      return all.length === count && all.every(({ task_status }) => /COMPLETED|FAILED/.test(task_status)) && all;
    };
    const tasks = await until(`${count} files`, areDone, 30_000, 100);
    return Promise.all(
      tasks.map(async (task) => {
        expect(task.task_status, task.error_summary!).to.equal('COMPLETED');
        const { download_url } = await world.get(`/tasks/${task.id}/download`);
        const records = csvRecords(await (await fetch(download_url)).text());
        expect(task.total_records).to.equal(records.length);
        return records.map((record) => record[of]!);
      }),
    );
  };
  const event = (event_id: string, at: string) => ({ ...world.event('acme', 'tokens', { n: 1, at }), event_id });
  const send = async (...events: object[]) => {
    await world.send(events as never);
    await world.waitForPipeline();
  };
  const correct = async (id: string, action: string, at?: string) => {
    const { event_id: _, ...sent } = event(id, at ?? '');
    const body = { reason: 'a mistake', ...(at ? { event: sent } : {}) };
    const answer = await world.api.request('POST', `/events/${id}/${action}`, { body });
    expect(answer.status, answer.text).to.equal(202);
    await world.waitForPipeline();
  };
  /** A transaction that stays open until it is told to end. */
  const openTransaction = async (work: (database: Transaction) => Promise<unknown>) => {
    let end = () => {};
    const asked = new Promise<void>((resolve) => {
      end = resolve;
    });
    let begun = () => {};
    const written = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const done = world.api.services.postgres.transaction(async (database) => {
      await work(database);
      begun();
      await asked;
    });
    await Promise.race([written, done]);
    return async () => {
      end();
      await done;
    };
  };

  before(async () => {
    world = await startWorld({
      now: '2026-03-01T10:20:00Z',
      config: { EXPORT_DIRECTORY: directory, EXPORT_DELAY_SECONDS: '0' },
    });
    await world.meter('tokens');
    await world.plan('Pro', [fixed('10'), usage('tokens', '0.5')]);
    await world.subscribe('acme', 'Pro');
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    folder = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
  });
  // What is scheduled by one story is nothing to the next.
  afterEach(async () => {
    for (const { id } of (await world.get('/tasks/scheduled')).items)
      await world.api.request('DELETE', `/tasks/scheduled/${id}`);
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  it('events that come after their file are in the next, with their own timestamp', async () => {
    const scheduled = await schedule('events');
    await send(
      event('early', '2026-03-01T10:05:00Z'),
      event('ahead', '2026-03-01T12:30:00Z'),
      event('before', '2026-03-01T09:59:59Z'),
    );
    await due('2026-03-01T11:00:30Z');
    expect(await filesOf(scheduled, 1)).to.deep.equal([['early']]);
    await send(event('late', '2026-03-01T10:30:00Z'), event('of-its-time', '2026-03-01T11:10:00Z'));
    await send(event('late-before', '2026-03-01T09:00:00Z'));
    await due('2026-03-01T12:00:30Z');
    expect((await filesOf(scheduled, 2))[1]).to.have.members(['late', 'of-its-time']);
    await send(event('very-late', '2026-03-01T10:45:00Z'));
    await due('2026-03-01T14:00:30Z');
    const files = await filesOf(scheduled, 4);
    expect(files.slice(2).map((ids) => ids.toSorted())).to.deep.equal([['ahead', 'very-late'], []]);
  });

  it('files from before there were cuts: what they have is in none that follows, and what comes late is', async () => {
    world.at('2026-02-01T10:20:00Z');
    const scheduled = await schedule('events');
    await send(event('of-before', '2026-02-01T10:05:00Z'));
    await due('2026-02-01T11:00:30Z');
    expect(await filesOf(scheduled, 1)).to.deep.equal([['of-before']]);
    await world.api.services.postgres('tasks').update({ cut_number: null, cut_offsets: null });
    await send(event('of-then', '2026-02-01T11:05:00Z'));
    await due('2026-02-01T12:00:30Z');
    expect((await filesOf(scheduled, 2))[1]).to.deep.equal(['of-then']);
    await send(event('late-of-before', '2026-02-01T10:06:00Z'));
    await due('2026-02-01T13:00:30Z');
    expect((await filesOf(scheduled, 3))[2]).to.deep.equal(['late-of-before']);
  });

  it('a file that is tried again has the same records, and what came since is in the next', async () => {
    world.at('2026-02-02T10:20:00Z');
    const scheduled = await schedule('events');
    await send(event('at-first', '2026-02-02T10:05:00Z'));
    await due('2026-02-02T11:00:30Z');
    await filesOf(scheduled, 1);
    const { scope } = world.api;
    const back = { task_status: 'FAILED', completed_at: null, failed_at: '2026-02-02T11:01:00Z' };
    // Its status moves forwards alone: that it had failed is said behind the back of the database's rules.
    await world.api.services.postgres.transaction(async (database) => {
      await database.raw('set local session_replication_role = replica');
      await database('tasks')
        .where({ ...scope, scheduled_task_id: scheduled.id })
        .update(back);
    });
    await send(event('since', '2026-02-02T10:06:00Z'));
    const [task] = await tasksOf(scheduled);
    const answer = await world.api.request('PUT', `/tasks/${task!.id}/status`, { body: { task_status: 'PROCESSING' } });
    expect(answer.status, answer.text).to.equal(200);
    await until('the second try', async () => (await tasksOf(scheduled))[0]!.task_status === 'COMPLETED');
    expect(await filesOf(scheduled, 1)).to.deep.equal([['at-first']]);
    await due('2026-02-02T12:00:30Z');
    expect(await filesOf(scheduled, 2)).to.deep.equal([['at-first'], ['since']]);
  });

  it('an event that is corrected is in the file of what was sent, once, wherever the correction puts it', async () => {
    world.at('2026-03-02T10:20:00Z');
    const scheduled = await schedule('events');
    await send(...['kept', 'moved', 'voided', 'after'].map((id) => event(id, '2026-03-02T10:10:00Z')));
    await correct('moved', 'replace', '2026-03-02T12:10:00Z');
    await correct('voided', 'void');
    await due('2026-03-02T11:00:30Z');
    expect((await filesOf(scheduled, 1))[0]!.toSorted()).to.deep.equal(['after', 'kept', 'moved']);
    await correct('after', 'replace', '2026-03-02T11:10:00Z');
    await due('2026-03-02T13:00:30Z');
    expect((await filesOf(scheduled, 3)).slice(1)).to.deep.equal([[], []]);
  });

  it('what a transaction wrote before the schedule was made is in its first file, which waits for it', async () => {
    world.at('2026-03-03T10:20:00Z');
    const id = await draft();
    const end = await openTransaction((database) => finalize(database, id, '2026-03-03T10:19:00Z'));
    const scheduled = await schedule('invoice');
    await due('2026-03-03T11:00:30Z');
    await until('a try that waits', async () => {
      const [task] = await tasksOf(scheduled);
      const { rows } = await world.api.services.postgres.raw(`select error from workflow_runs where id = ?`, [
        task!.workflow_id,
      ]);
      return JSON.stringify(rows[0].error ?? '').includes('began before the scheduled task');
    });
    await end();
    expect(await filesOf(scheduled, 1, 'id')).to.deep.equal([[id]]);
    await due('2026-03-03T12:00:30Z');
    expect(await filesOf(scheduled, 2, 'id')).to.deep.equal([[id], []]);
  });

  it('an invoice and credits whose transactions are open while a file is cut are in the next, once', async () => {
    world.at('2026-03-04T10:20:00Z');
    const [invoices, topups] = [await schedule('invoice'), await schedule('credit_topups')];
    const focus = await schedule('focus');
    const wallet = await world.post('/wallets', { customer_id: world.id('customer acme'), currency: 'usd' });
    const drafts = await Promise.all([1, 2].map(() => draft()));
    const now = new Date('2026-03-04T10:26:00Z');
    await world.api.services.postgres.transaction(async (database) => {
      await finalize(database, drafts[0]!, '2026-03-04T10:25:00Z');
      await topUp(database, wallet.id, 'first', now);
    });
    const end = await openTransaction(async (database) => {
      await finalize(database, drafts[1]!, '2026-03-04T10:27:00Z');
      await topUp(database, wallet.id, 'second', now);
    });
    await due('2026-03-04T11:00:30Z');
    expect(await filesOf(invoices, 1, 'id')).to.deep.equal([[drafts[0]]]);
    expect(await filesOf(topups, 1, 'reference_id')).to.deep.equal([['first']]);
    expect(await filesOf(focus, 1, 'InvoiceId')).to.deep.equal([[drafts[0]]]);
    await end();
    await due('2026-03-04T13:00:30Z');
    expect(await filesOf(invoices, 3, 'id')).to.deep.equal([[drafts[0]], [drafts[1]], []]);
    expect(await filesOf(topups, 3, 'reference_id')).to.deep.equal([['first'], ['second'], []]);
    expect(await filesOf(focus, 3, 'InvoiceId')).to.deep.equal([[drafts[0]], [drafts[1]], []]);
  });

  it('every kind of records with a range notes its late ones, except those computed from events', async () => {
    const { rows } = await world.api.services.postgres.raw(
      `select pg_get_triggerdef(oid) as definition from pg_trigger where tgfoid = 'note_export_arrival'::regproc`,
    );
    const noted = rows.flatMap(({ definition }: { definition: string }) =>
      definition.match(/note_export_arrival\('\w+', '([\w,]+)'\)/)![1]!.split(','),
    );
    const dated = Object.entries(EXPORT_KINDS).filter(([, { is_whole }]) => !is_whole);
    const kinds = dated.map(([kind]) => kind).filter((kind) => kind !== 'events' && kind !== 'usage_analytics');
    expect([...new Set(noted)]).to.have.members(kinds);
  });

  it('a clock that is set forward and back again: no event twice, and none missing', async () => {
    world.at('2026-03-05T10:20:00Z');
    const scheduled = await schedule('events');
    await send(event('a', '2026-03-05T10:10:00Z'));
    await due('2026-03-05T14:00:30Z');
    await filesOf(scheduled, 4);
    // The hours of these have their files already.
    world.at('2026-03-05T11:30:00Z');
    await send(event('b', '2026-03-05T11:25:00Z'), event('c', '2026-03-05T13:30:00Z'));
    for (const now of ['2026-03-05T12:00:30Z', '2026-03-05T14:00:30Z', '2026-03-05T14:30:00Z']) await due(now);
    await send(event('d', '2026-03-05T14:10:00Z'));
    await due('2026-03-05T15:00:30Z');
    const files = await filesOf(scheduled, 5);
    expect(files.map((ids) => ids.toSorted())).to.deep.equal([['a'], [], [], [], ['b', 'c', 'd']]);
    const ranges = (await tasksOf(scheduled)).map(({ range_start, range_end }) => [range_start, range_end]);
    expect(ranges.slice(1).map(([start]) => start)).to.deep.equal(ranges.slice(0, -1).map(([, end]) => end));
  });

  it('a file whose clock was set back before it was written is written all the same', async () => {
    world.at('2026-03-06T10:20:00Z');
    const scheduled = await schedule('events');
    await send(event('e', '2026-03-06T10:10:00Z'));
    await addDueExports(world.api.services, { now: new Date('2026-03-06T11:00:30Z'), delay_seconds: 0 });
    world.at('2026-03-06T10:21:00Z');
    expect(await filesOf(scheduled, 1)).to.deep.equal([['e']]);
  });

  async function draft(): Promise<string> {
    const { id } = await world.post('/invoices', {
      customer_id: world.id('customer acme'),
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      invoice_status: 'DRAFT',
      amount_due: '5',
      total: '5',
      subtotal: '5',
      line_items: [{ display_name: 'Work', amount: '5', quantity: '1' }],
    });
    return id;
  }

  async function finalize(transaction: Transaction, invoice_id: string, at: string): Promise<void> {
    await lockInvoice(transaction, world.api.scope, invoice_id);
    await finalizeWithin(transaction, world.api.scope, { invoice_id, now: new Date(at) });
  }

  async function topUp(transaction: Transaction, id: string, reference_id: string, now: Date): Promise<void> {
    const wallet = await WalletModel.fetch(world.api.scope, id, { database: transaction, lock: true });
    await moveCredits(transaction, wallet, {
      movement: { kind: 'credit', credits: new Decimal(5) },
      transaction_reason: 'FREE_CREDIT_GRANT',
      reference_type: 'EXTERNAL',
      reference_id,
      idempotency_key: callersKey.parse(`files ${reference_id}`),
      description: '',
      metadata: null,
      author: { user_id: 'somebody', now },
    });
  }
});
