/**
 * A year of four customers by the clock of their environment: what it says at the end is what the scheduler would have made of it
 * day by day, whenever it is told, and however often it is broken off.
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { findThresholdCheck } from '../../actions/schedule/next-threshold-check.ts';
import { startScheduler } from '../../scheduler/main.ts';
import { purgePublishedBefore } from '../../storage/queue/unstreamed-events.ts';
import { QUICK, startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const START = '2031-01-01T00:00:00Z';
const CUSTOMERS = ['acme', 'bravo', 'charlie', 'dora'];

async function catalogue(world: World): Promise<void> {
  await world.meter('calls');
  await world.plan('Pro', [
    fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
    usage('calls', '0.01', { display_name: 'calls' }),
  ]);
  await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  await world.plan('Yearly', [
    fixed('100', { invoice_cadence: 'ADVANCE', display_name: 'licence', billing_period: 'ANNUAL' }),
  ]);
}

/** The days on which somebody does something; between them lies what is due. */
const DAYS: [string, (world: World) => Promise<unknown>[]][] = [
  ['2031-01-01', (world) => [world.subscribe('acme', 'Pro')]],
  ['2031-01-10', (world) => [world.use('acme', 'calls', 1200)]],
  ['2031-01-15', (world) => [world.subscribe('bravo', 'Calls')]],
  ['2031-01-31', (world) => [world.subscribe('charlie', 'Yearly', { billing_period: 'ANNUAL' })]],
  ['2031-02-20', (world) => [world.use('acme', 'calls', 300), world.use('bravo', 'calls', 7)]],
  ['2031-03-05', (world) => [world.subscribe('dora', 'Pro', { trial_period_days: 14 })]],
  ['2031-06-02', (world) => [world.use('bravo', 'calls', 3)]],
  ['2031-06-20', (world) => [world.cancel('bravo', { cancellation_type: 'end_of_period' })]],
  ['2031-12-24', (world) => [world.use('acme', 'calls', 5)]],
];
const END = '2032-02-01T12:00:00Z';

async function live(world: World): Promise<void> {
  for (const [day, deeds] of DAYS) await world.on(day, () => Promise.all(deeds(world)));
  await world.on(END);
}

/** Without a clock the scheduler looks again and again: here at the days of the story, where periods end, and two hours later. */
async function liveByTheScheduler(world: World): Promise<void> {
  const deeds = new Map(DAYS.map(([day, done]) => [Date.parse(day), done]));
  const months = Array.from({ length: 14 }, (_, month) => month);
  const ends = months.flatMap((month) => [1, 15, 19].map((day) => Date.UTC(2031, month, day)));
  const looks = [...deeds.keys(), ...ends, Date.UTC(2032, 0, 31)].flatMap((at) => [at, at + 7_200_000]);
  for (const at of [...new Set(looks)].toSorted((a, b) => a - b)) {
    if (at > Date.parse(END)) continue;
    const due = deeds.get(at);
    await world.on(new Date(at).toISOString(), () => Promise.all(due ? due(world) : []));
    await world.finalize(7200);
  }
}

const told = async (world: World) => Promise.all(CUSTOMERS.map((customer) => world.statements(customer)));

const numbersOf = async (world: World): Promise<(string | null)[]> =>
  (await Promise.all(CUSTOMERS.map((customer) => world.invoices(customer)))).flat().map((one) => one.invoice_number);

/** The process that advances the clock is killed on the way, and another takes over. */
async function killed(world: World, day: string): Promise<void> {
  const child = await startSchedulerProcess(world.api.services, world.api.services.clock());
  await world.requestAdvance(day);
  await until('it is on its way', async () => (await world.testClock()).progress.instants >= 2);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect((await world.testClock()).test_clock_status).to.equal('advancing');
  const scheduler = startScheduler(world.api.services, { clock: world.api.services.clock, liveness: QUICK });
  await until('another has taken over', async () => (await world.testClock()).test_clock_status === 'ready', 60_000);
  await scheduler.stop();
  expect((await world.testClock()).frozen_time).to.equal(`${day}T00:00:00Z`);
}

/** Two workers at once, which are broken off; then two again, until the clock is stopped. */
async function disturbed(world: World, day: string): Promise<void> {
  const { workflow_id } = await world.requestAdvance(day);
  const end = new AbortController();
  const both = [1, 2].map(() => world.work(workflow_id!, end.signal).catch((error: Error) => error.name));
  await until('they are on their way', async () => (await world.testClock()).progress.instants >= 2);
  end.abort();
  expect(await Promise.all(both)).to.deep.equal(['AbortError', 'AbortError']);
  const more = [1, 2].map(() => world.work(workflow_id!, AbortSignal.timeout(60_000)));
  await until('they go on', async () => (await world.testClock()).progress.instants >= 5);
  const { id, frozen_time } = await world.testClock();
  const stopped = await world.post(`/test-clocks/${id}/stop`, {});
  expect(stopped.test_clock_status).to.equal('ready');
  expect(Date.parse(stopped.frozen_time)).to.be.within(Date.parse(frozen_time), Date.parse(`${day}T00:00:00Z`) - 1);
  expect(await Promise.all(more)).to.deep.equal(['completed', 'completed']);
}

/** Others wait for its place all the time: its turn is over each third time that it asks, between two instants or in one. Answers how many turns it had. */
async function inTurns(world: World, day: string): Promise<number> {
  const { workflow_id } = await world.requestAdvance(day);
  let asked = 0;
  const mayGoOn = async () => ++asked % 3 > 0;
  for (let turns = 1; ; turns++) {
    const outcome = await world.work(workflow_id!, AbortSignal.timeout(60_000), mayGoOn);
    if (outcome === 'completed') return turns;
    expect(outcome).to.equal('overtaken');
  }
}

describe('a year by the clock of an environment', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: START, test_clock: true });
    await catalogue(world);
    await live(world);
  });
  after(() => world.stop());

  it('has all invoices, each at its instant', async () => {
    const invoices = await world.invoices('acme');
    expect(invoices).to.have.length(14);
    expect((await world.statements('acme')).slice(0, 3)).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2031-01-01..2031-02-01 = 10\n  base 2031-01-01..2031-02-01: 1 = 10',
      'SUBSCRIPTION_CYCLE FINALIZED 2031-01-01..2031-02-01 = 22\n' +
        '  base 2031-02-01..2031-03-01: 1 = 10\n  calls 2031-01-01..2031-02-01: 1200 = 12',
      'SUBSCRIPTION_CYCLE FINALIZED 2031-02-01..2031-03-01 = 13\n' +
        '  base 2031-03-01..2031-04-01: 1 = 10\n  calls 2031-02-01..2031-03-01: 300 = 3',
    ]);
    const [, january] = invoices;
    expect([january!.created_at, january!.finalized_at, january!.invoice_number]).to.deep.equal([
      '2031-02-01T00:00:00Z',
      '2031-02-01T02:00:00Z',
      'INV-203102-00001',
    ]);
    const bravo = await world.subscription('bravo');
    expect([bravo.subscription_status, bravo.cancelled_at]).to.deep.equal(['cancelled', '2031-07-15T00:00:00Z']);
  });

  it('tells each change at its instant, in order, and delivers it by the machine’s clock', async () => {
    const { services, scope } = world.api;
    const events = await services.postgres('system_events').orderBy('sequence');
    const instants = events.map(({ created_at }) => Date.parse(created_at));
    expect(instants).to.deep.equal(instants.toSorted((a, b) => a - b));
    expect(new Set(instants).size).to.be.greaterThan(24);

    const target = { url: 'https://example.com/hook', event_names: ['invoice.finalized'] };
    await world.post('/webhooks/endpoints', target);
    const now = services.clock();
    await dispatchBatch(services, { has_targets: true, now });
    const deliveries = await services.postgres('webhook_deliveries').where(scope);
    expect(deliveries).to.have.length(events.filter(({ event_name }) => event_name === 'invoice.finalized').length);
    for (const { told_at, next_attempt_at } of deliveries)
      expect([told_at, next_attempt_at].map(Date.parse)).to.deep.equal([now.getTime(), now.getTime()]);

    await services.postgres('webhook_deliveries').update({ delivery_status: 'delivered', next_attempt_at: null });
    const purge = (before: Date) => purgePublishedBefore(services.postgres, { before, is_streamed: false });
    expect(await purge(now), 'they are as old as the machine says').to.equal(0);
    expect(await purge(new Date(now.getTime() + 1))).to.equal(events.length);
  });

  it('is the same when its workers are killed, broken off, stopped, and two at once', async () => {
    const again = await startWorld({ now: START, test_clock: true });
    try {
      await catalogue(again);
      for (const [day, deeds] of DAYS) {
        if (day === '2031-06-02') await killed(again, day);
        if (day === '2031-12-24') await disturbed(again, day);
        await again.on(day, () => Promise.all(deeds(again)));
      }
      await again.on(END);
      expect(await told(again)).to.deep.equal(await told(world));
      expect(await numbersOf(again)).to.deep.equal(await numbersOf(world));
    } finally {
      await again.stop();
    }
  });

  it('is the same when it gives its place to others again and again', async () => {
    const again = await startWorld({ now: START, test_clock: true });
    try {
      await catalogue(again);
      let turns = 0;
      for (const [day, deeds] of DAYS) {
        if (day !== DAYS[0]![0]) turns += await inTurns(again, day);
        await again.on(day, () => Promise.all(deeds(again)));
      }
      turns += await inTurns(again, END);
      await again.on(END);
      expect(turns).to.be.greaterThan(30);
      expect(await told(again)).to.deep.equal(await told(world));
      expect(await numbersOf(again)).to.deep.equal(await numbersOf(world));
    } finally {
      await again.stop();
    }
  });

  it('is what the scheduler makes of it without a clock', async () => {
    const scheduled = await startWorld({ now: START });
    try {
      await catalogue(scheduled);
      await liveByTheScheduler(scheduled);
      expect(await told(scheduled)).to.deep.equal(await told(world));
    } finally {
      await scheduled.stop();
    }
  });

  it('stops where something cannot be done, says what, and goes on when that is mended', async () => {
    const { postgres } = world.api.services;
    const terms = (payment_terms: string | null) =>
      postgres('subscriptions')
        .where({ id: world.id('subscription acme') })
        .update({ payment_terms });
    await terms('soon');
    const { workflow_id } = await world.requestAdvance('2032-04-01');
    expect(await world.work(workflow_id!, AbortSignal.timeout(60_000))).to.equal('failed');
    const failed = await world.testClock();
    expect(failed).to.include({ test_clock_status: 'failed', frozen_time: '2032-03-01T02:00:00Z', target_time: null });
    expect(failed.failure!.code).to.equal('validation_error');
    expect(failed.failure!.message).to.match(/^inv_\w{26} at 2032-03-01T02:00:00\.000Z: payment_terms: "soon" is not/);
    await terms(null);
    expect(await world.advance('2032-04-01')).to.include({ frozen_time: '2032-04-01T00:00:00Z', failure: null });
  });

  it('counts what was sent before an advance, whatever the machine’s clock says of it, and an event without a time at its own', async () => {
    await world.pausePipeline();
    const at = await world.testClock();
    const events = [{ event_name: 'calls', external_customer_id: 'acme', event_id: 'no-time', properties: { n: 50 } }];
    await world.send(events);
    const advanced = world.advance('2032-05-02');
    await world.resumePipeline();
    await advanced;
    const event = await world.get('/events/no-time');
    expect(Date.parse(event.event!.timestamp)).to.equal(Date.parse(at.frozen_time));
    expect((await world.statements('acme')).at(-1)).to.contain('calls 2032-04-01..2032-05-01: 50 = 0.5');
    await world.send(events);
    const outcomes = async () => (await world.get('/events/no-time')).outcomes.map(({ outcome }) => outcome);
    await until('what was sent again by a later clock came through', async () => (await outcomes()).length > 0);
    expect(await outcomes()).to.deep.equal(['duplicate']);
  });

  it('looks each day for usage that has reached a threshold', async () => {
    await world.subscribe('eve', 'Calls', { auto_invoice_threshold: '50' });
    await world.send([30, 40].map((n, day) => world.event('eve', 'calls', { n, at: `2032-05-0${4 + day}T10:00:00Z` })));
    const { progress } = await world.advance('2032-05-10');
    // Two instants are those at which invoices of others were overdue.
    expect(progress).to.deep.equal({ instants: 3, done: { invoiced: 1, told: 2 } });
    expect(await world.statements('eve')).to.deep.equal([
      'THRESHOLD_BILLING FINALIZED 2032-05-02..2032-05-06 = 70\n  calls 2032-05-02..2032-05-06: 70 = 70',
    ]);
    const { services, scope } = world.api;
    const nextAfter = async (from: string) =>
      (await findThresholdCheck(services, scope, new Date(from)))?.toISOString().slice(0, 10);
    // The first midnight; those after days with usage; and none where nothing is to come.
    expect(await nextAfter('2032-05-02T12:00:00Z')).to.equal('2032-05-03');
    expect(await nextAfter('2032-05-03T00:00:00Z')).to.equal('2032-05-05');
    expect(await nextAfter('2032-05-05T18:00:00Z')).to.equal('2032-05-06');
    expect(await nextAfter('2032-05-06T00:00:00Z')).to.equal(undefined);
  });

  it('looks once more at the instant at which its worker was killed', async () => {
    const { postgres } = world.api.services;
    await world.subscribe('finn', 'Calls', { auto_invoice_threshold: '50' });
    await world.send([12, 20].map((day) => world.event('finn', 'calls', { n: 60, at: `2032-05-${day}T10:00:00Z` })));
    const { workflow_id } = await world.requestAdvance('2032-05-31');
    const holding = await postgres.transaction();
    await holding.raw('lock table invoices in share mode');
    const child = await startSchedulerProcess(world.api.services, world.api.services.clock());
    const ended = once(child, 'exit');
    try {
      const isHeld = () => postgres('pg_locks').where({ locktype: 'relation', granted: false });
      await until('it is looking', async () => (await isHeld()).length > 0);
      expect((await world.testClock()).frozen_time).to.equal('2032-05-13T00:00:00Z');
    } finally {
      child.kill('SIGKILL');
      await ended;
      await holding.rollback();
    }
    expect(await world.work(workflow_id!, AbortSignal.timeout(60_000))).to.equal('completed');
    const invoices = await world.invoices('finn');
    expect(invoices.map((one) => [one.billing_reason, one.finalized_at, one.total])).to.deep.equal([
      ['THRESHOLD_BILLING', '2032-05-13T00:00:00Z', '60'],
      ['THRESHOLD_BILLING', '2032-05-21T00:00:00Z', '60'],
    ]);
  });

  it('looks once more at the instant at which it has failed', async () => {
    const { postgres } = world.api.services;
    await world.subscribe('hugo', 'Calls', { auto_invoice_threshold: '50' });
    await world.send([world.event('hugo', 'calls', { n: 60, at: '2032-06-01T10:00:00Z' })]);
    const terms = (payment_terms: string | null) =>
      postgres('subscriptions')
        .where({ id: world.id('subscription hugo') })
        .update({ payment_terms });
    await terms('soon');
    const { workflow_id } = await world.requestAdvance('2032-06-01T18:00:00Z');
    expect(await world.work(workflow_id!, AbortSignal.timeout(60_000))).to.equal('completed');
    // Twice: what has failed and fails again is looked at still.
    for (let attempt = 0; attempt < 2; attempt++) {
      const failing = await world.requestAdvance('2032-06-02T06:00:00Z');
      expect(await world.work(failing.workflow_id!, AbortSignal.timeout(60_000))).to.equal('failed');
      expect((await world.testClock()).frozen_time).to.equal('2032-06-02T00:00:00Z');
    }
    await terms(null);
    await world.advance('2032-06-02T06:00:00Z');
    const [invoice] = await world.invoices('hugo');
    expect([invoice?.billing_reason, invoice?.finalized_at]).to.deep.equal([
      'THRESHOLD_BILLING',
      '2032-06-02T00:00:00Z',
    ]);
    await world.cancel('hugo');
  });

  it('waits for a subscription that somebody else holds: the next look is at another instant', async () => {
    const { postgres } = world.api.services;
    await world.subscribe('gina', 'Calls', { auto_invoice_threshold: '50' });
    await world.send([world.event('gina', 'calls', { n: 60, at: '2032-06-02T10:00:00Z' })]);
    const holding = await postgres.transaction();
    await holding('subscriptions')
      .where({ id: world.id('subscription gina') })
      .forUpdate();
    const { workflow_id } = await world.requestAdvance('2032-06-10');
    const advanced = world.work(workflow_id!, AbortSignal.timeout(60_000));
    const isHeld = () => postgres('pg_locks').where({ granted: false });
    await until('it is waited for', async () => (await isHeld()).length > 0);
    await holding.rollback();
    expect(await advanced).to.equal('completed');
    const [invoice] = await world.invoices('gina');
    expect([invoice!.billing_reason, invoice!.finalized_at]).to.deep.equal([
      'THRESHOLD_BILLING',
      '2032-06-03T00:00:00Z',
    ]);
  });
});
