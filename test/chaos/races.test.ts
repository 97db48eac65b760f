/**
 * What is asked and what is due at one instant, from several schedulers at once: whatever comes between what, a subscription ends as it
 * would have if each had waited for the one before, in one order or another; and no job does anything when it runs again. The orders
 * are not told here but lived: each on a subscription of its own, one deed after the other.
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { billDuePeriods, billPeriod } from '../../actions/lifecycle/billing/bill-period.ts';
import { billThreshold, billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { listDueWork } from '../../actions/schedule/due-work.ts';
import { startScheduler } from '../../scheduler/main.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import { QUICK, startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const NOW = '2026-02-01T00:00:00Z';
const SUBJECTS = 3;

/** On one subscription; the jobs are done on it alone, or by two schedulers on whatever is due. */
type Deed = (customer: string) => Promise<unknown>;
type Play = { readonly begins: string; readonly subscribe: Deed; readonly deeds: Readonly<Record<string, Deed>> };

describe('scenario: many at once', () => {
  let world: World;
  let others: Stores[];
  /** What is left after each order, of each play. */
  const possible = new Map<string, Set<string>>();

  before(async function () {
    this.timeout(300_000);
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { services } = world.api;
    others = [1, 2].map(() => ({ ...services, postgres: connectPostgres(readUrl(services.postgres)) }));
    await world.meter('calls');
    const ahead = (amount: string, display_name: string) => fixed(amount, { invoice_cadence: 'ADVANCE', display_name });
    const calls = usage('calls', '1', { display_name: 'calls' });
    await world.plan('Basic', [ahead('31', 'seat'), calls]);
    await world.plan('Pro', [ahead('62', 'pro'), usage('calls', '2', { display_name: 'pro calls' })]);
    const slabs: [number | null, string][] = [
      [10, '1'],
      [null, '0.5'],
    ];
    await world.plan('Calls', [tiers('calls', slabs, { display_name: 'calls' })]);
    for (const begins of [...new Set(plays.map(([, play]) => play.begins))].sort()) {
      world.at(begins);
      for (const [name, play] of plays.filter(([, one]) => one.begins === begins))
        for (const customer of [...serial(play).map(([order]) => order), ...crowd]) {
          const who = `${name}: ${customer}`;
          await play.subscribe(who);
          await world.use(who, 'calls', 20, { at: '2026-01-20T00:00:00Z' });
        }
    }
    world.at(NOW);
    await world.waitForPipeline();
    // Before anything runs that does whatever is due.
    for (const [name, play] of plays)
      for (const [order, deeds] of serial(play)) {
        for (const deed of deeds) await deed(`${name}: ${order}`);
        const outcome = await ended(`${name}: ${order}`);
        possible.set(name, (possible.get(name) ?? new Set()).add(outcome));
      }
  });
  after(async () => {
    for (const { postgres } of others) await postgres.destroy();
    await world.stop();
  });

  const crowd = Array.from({ length: SUBJECTS }, (_, index) => `at once ${index + 1}`);
  const id = (customer: string) => world.id(`subscription ${customer}`);
  const send = async (customer: string, verb: string, body: object, method = 'POST') => {
    const answer = await world.api.request(method, `/subscriptions/${id(customer)}${verb}`, { body });
    // It came too late for what it asked; never a failure of ours.
    expect(answer.status, answer.text).to.be.oneOf([200, 400, 409]);
  };
  const stores = () => world.api.services;

  const bill: Deed = async (customer) => {
    const due = { subscription_id: id(customer), now: world.now };
    while ((await billPeriod(stores(), world.api.scope, due)) === 'billed');
  };
  const look: Deed = (customer) =>
    billThreshold(stores(), world.api.scope, { subscription_id: id(customer), now: world.now });
  const cancel: Deed = (customer) =>
    send(customer, '/cancel', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
  const change: Deed = (customer) =>
    send(customer, '/change/v2/execute', {
      target_plan_id: world.id('plan Pro'),
      proration_behavior: 'create_prorations',
    });
  const seats: Deed = async (customer) => {
    const { line_items } = await world.subscription(customer);
    const seat = line_items.find(({ display_name }) => display_name === 'seat');
    const quantity_change_params = { line_items: [{ id: seat!.id, quantity: '3' }] };
    await send(customer, '/modify/execute', { type: 'quantity_change', quantity_change_params });
  };
  const noThreshold: Deed = (customer) => send(customer, '', { auto_invoice_threshold: '0' }, 'PUT');
  const childLeaves: Deed = (customer) =>
    send(customer, '/modify/execute', {
      type: 'inheritance',
      inheritance_params: { action: 'remove', external_customer_ids_to_remove: [`${customer}, child`] },
    });

  const basic: Deed = (customer) => world.subscribe(customer, 'Basic');
  const tried: Deed = (customer) => world.subscribe(customer, 'Basic', { trial_period_days: 14 });
  const watched: Deed = (customer) => world.subscribe(customer, 'Calls', { auto_invoice_threshold: '10' });
  const parent: Deed = async (customer) => {
    await world.customer(`${customer}, child`);
    const inheritance = { external_customer_ids_to_inherit_subscription: [`${customer}, child`] };
    await world.subscribe(customer, 'Basic', { inheritance });
  };

  const plays: [string, Play][] = [
    [
      'the end of a period, seats and a cancellation',
      { begins: '2026-01-01', subscribe: basic, deeds: { bill, seats, cancel } },
    ],
    ['a plan, seats and a cancellation', { begins: '2026-01-15', subscribe: basic, deeds: { change, seats, cancel } }],
    [
      'the end of a trial, a plan and a cancellation',
      { begins: '2026-01-18', subscribe: tried, deeds: { bill, change, cancel } },
    ],
    [
      'a threshold, its end and a cancellation',
      { begins: '2026-01-15', subscribe: watched, deeds: { look, noThreshold, cancel } },
    ],
    [
      'a period of a family, a child and a cancellation',
      { begins: '2026-01-01', subscribe: parent, deeds: { bill, childLeaves, cancel } },
    ],
  ];

  /** Each order of the deeds, by its name. */
  function serial({ deeds }: Play): [string, Deed[]][] {
    return orders(Object.keys(deeds)).map((names) => [names.join(', '), names.map((name) => deeds[name]!)]);
  }

  /** What is left of it: invoices, what was given back, what it has and how it stands. */
  async function ended(customer: string): Promise<string> {
    const { subscription_status, current_period_start, current_period_end, line_items } =
      await world.subscription(customer);
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    const lines = line_items.map(
      (line) => `${line.display_name} × ${line.quantity} ${line.start_date}..${line.end_date}`,
    );
    return [
      `${subscription_status} ${current_period_start}..${current_period_end}`,
      ...lines.sort(),
      ...(await world.statements(customer)),
      ...wallets.map(({ balance }) => `given back: ${balance}`),
    ].join('\n');
  }

  for (const [name, play] of plays)
    it(`${name}: as in one of their orders`, async () => {
      const outcomes = [...possible.get(name)!];
      const asked = crowd.flatMap((customer) => {
        const { bill: _bill, look: _look, ...requests } = play.deeds;
        return Object.values(requests).map((deed) => deed(`${name}: ${customer}`));
      });
      const jobs = others.flatMap((each) => [billDuePeriods(each, world.now), billThresholds(each, world.now)]);
      await Promise.all(asked);
      for (const { failed } of await Promise.all(jobs)) expect(failed).to.deep.equal([]);
      // Who was held by somebody else is left to the next run.
      await billDuePeriods(stores(), world.now);
      await billThresholds(stores(), world.now);
      for (const customer of crowd) {
        const found = await ended(`${name}: ${customer}`);
        expect(outcomes, `${customer} is as after no order`).to.include(found);
      }
    });

  it('a scheduler is killed in the middle of a billing, and another finishes it: each period once', async () => {
    const customers = Array.from({ length: 4 }, (_, index) => `behind ${index + 1}`);
    for (const customer of customers) await world.subscribe(customer, 'Basic', { start_date: '2025-08-01T00:00:00Z' });
    const due = async () =>
      (await world.invoices(customers[0]!)).length + (await world.invoices(customers.at(-1)!)).length;
    const before = await due();
    const child = await startSchedulerProcess(stores(), world.now);
    await until('it is in the middle', async () => (await due()) > before + 2, 60_000);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const reached = await due();
    const scheduler = startScheduler(world.api.services, { clock: world.api.services.clock, liveness: QUICK });
    const isOver = async () => {
      const all = await Promise.all(customers.map((customer) => world.subscription(customer)));
      return all.every(({ current_period_start }) => current_period_start === NOW);
    };
    await until('another has finished', isOver, 60_000);
    await scheduler.stop();
    expect(reached, 'it was killed before its end').to.be.below(2 * 7);
    const expected = Array.from({ length: 6 }, (_, month) => {
      const [start, end] = [month + 7, month + 8].map((each) =>
        new Date(Date.UTC(2025, each)).toISOString().slice(0, 10),
      );
      return `SUBSCRIPTION_CYCLE ${start}..${end} = 31`;
    });
    for (const customer of customers) {
      const heads = (await world.statements(customer)).map((text) =>
        text.split('\n')[0]!.replace(/ (DRAFT|FINALIZED)/, ''),
      );
      expect(heads).to.deep.equal(['SUBSCRIPTION_CREATE 2025-08-01..2025-09-01 = 31', ...expected]);
    }
  }).timeout(300_000);

  it('a scheduler is killed while it invoices a threshold and ends what was to be cancelled: nothing is left, and each is done once', async () => {
    world.at('2026-01-15');
    await watched('reaching');
    await world.subscribe('ending', 'Basic');
    // Only what was paid is given back into the wallet.
    await world.pay('ending');
    const scheduled = { cancellation_type: 'scheduled_date', cancel_at: '2026-01-31T00:00:00Z' };
    await world.cancel('ending', { ...scheduled, proration_behavior: 'create_prorations' });
    const customers = ['reaching', 'ending'];
    const before = await Promise.all(customers.map(ended));
    world.at('2026-01-31T12:00:00Z');
    await world.use('reaching', 'calls', 20, { at: '2026-01-20T00:00:00Z' });
    await world.waitForPipeline();
    const { postgres } = stores();
    // Whatever is done is told of in its transaction: each waits there, with all that it has written.
    const holding = await postgres.transaction();
    await holding.raw('lock table system_events in exclusive mode');
    const child = await startSchedulerProcess(stores(), world.now);
    const waiting = () =>
      postgres('pg_stat_activity').where({ wait_event_type: 'Lock' }).whereRaw('datname = current_database()');
    await until('both are in the middle', async () => (await waiting()).length >= 2, 60_000);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await holding.rollback();
    await until('what it had begun is undone', async () => (await waiting()).length === 0);
    expect(await Promise.all(customers.map(ended))).to.deep.equal(before);
    for (const _again of [1, 2]) {
      const [looked, billed] = await Promise.all([
        billThresholds(stores(), world.now),
        billDuePeriods(stores(), world.now),
      ]);
      expect([looked.failed, billed.failed]).to.deep.equal([[], []]);
    }
    expect((await world.statements('reaching')).at(-1)).to.equal(
      'THRESHOLD_BILLING FINALIZED 2026-01-15..2026-01-31T12:00 = 15\n  calls 2026-01-15..2026-01-31T12:00: 20 = 15',
    );
    const [status, , ...rest] = (await ended('ending')).split('\n');
    expect(status).to.contain('cancelled');
    expect(rest.at(-1)).to.equal('given back: 15');
    expect(rest.filter((text) => text.includes('SUBSCRIPTION_CYCLE'))).to.have.length(1);
    world.at(NOW);
  }).timeout(300_000);

  it('each job run again, by two at once, changes nothing', async () => {
    const counted = async () => {
      const { rows } = await stores().postgres.raw(
        `select (select count(*) from invoices) as invoices, (select count(*) from invoice_line_items) as lines,
          (select count(*) from system_events) as events, (select count(*) from audit_entries) as records,
          (select sum(version) from subscriptions) as versions`,
      );
      return rows[0];
    };
    world.at('2026-02-01T02:00:00Z');
    const kinds = listDueWork({ FINALIZATION_DELAY_SECONDS: 7200, EXPORT_DELAY_SECONDS: 300 });
    for (const kind of kinds) await kind.run(stores(), { now: world.now });
    const before = await counted();
    for (const kind of kinds)
      for (const { done, failed } of await Promise.all(others.map((each) => kind.run(each, { now: world.now })))) {
        expect(
          Object.values(done).every((count) => count === 0),
          `${kind.name}: ${JSON.stringify(done)}`,
        ).to.equal(true);
        expect(failed).to.deep.equal([]);
      }
    expect(await counted()).to.deep.equal(before);
  });
});

function orders<One>(of: readonly One[]): One[][] {
  if (of.length <= 1) return [[...of]];
  return of.flatMap((first, index) => orders(of.toSpliced(index, 1)).map((rest) => [first, ...rest]));
}
