/**
 * Drafts that an advance of a clock makes final without a second plan, and what makes it plan them again
 * (docs/decisions/0007-cached-answers.md).
 */
import { expect } from 'chai';
import { ClockAdvancePlanCache } from '../../actions/invoicing/billing/clock-advance-plan-cache.ts';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { finalizeDueInvoices } from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { beginAdvance, lockAdvance } from '../../storage/models/schedule/clock-advances.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const CUSTOMERS = ['acme', 'bravo'];

describe('scenario: planned once', () => {
  let world: World;
  let plans: ClockAdvancePlanCache;
  let month = 1;
  let workflow_id: string;
  let planned = 0;
  let looked = 0;
  const note = ({ sql }: { sql: string }) => {
    // What stands on earlier invoices is read with each plan.
    if (sql.includes('computed_from - ')) planned++;
    // Whether anything was corrected is asked where earlier charges are looked at.
    if (sql.includes('greatest(applied_at')) looked++;
  };

  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z', test_clock: true });
    await world.meter('calls');
    const prices = [usage('calls', '1', { display_name: 'calls' }), fixed('10', { invoice_cadence: 'ADVANCE' })];
    await world.plan('Pro', prices);
    await world.post('/coupons', {
      name: 'A tenth',
      coupon_code: 'TENTH',
      cadence: 'forever',
      type: 'percentage',
      percentage_off: '10',
    });
    for (const customer of CUSTOMERS) await world.subscribe(customer, 'Pro');
    world.api.services.postgres.on('query', note);
  });
  after(() => world.stop());

  const start = () => new Date(Date.UTC(2031, month, 1));
  const clock = () => world.api.services.postgres('test_clocks').where(world.api.scope);
  const heldBy = (worker: string, place: { tenant_id: string; environment_id: string; workflow_id: string }) =>
    new ClockAdvancePlanCache((transaction) => lockAdvance(transaction, place, worker));

  /** The month ends for both: their drafts are in hand. The advance may go on for some more. */
  async function drafted(more = 0): Promise<void> {
    const { services, scope } = world.api;
    const used = new Date(Date.UTC(2031, month - 1, 10)).toISOString();
    for (const customer of CUSTOMERS) await world.use(customer, 'calls', 5, { at: used });
    await world.waitForPipeline();
    const target = Date.UTC(2031, month + more, 1, 3);
    workflow_id = (await world.requestAdvance(new Date(target).toISOString())).workflow_id!;
    const place = { ...scope, workflow_id };
    await beginAdvance(services.postgres, place, 'this');
    await clock().update({ frozen_time: start() });
    plans = heldBy('this', place);
    planned = 0;
    await billDuePeriods(services, start(), { only: scope, plans });
    expect(planned).to.equal(1);
  }

  /** The next month ends in the same advance; answers how often earlier charges were looked at. */
  async function nextDrafted(): Promise<number> {
    const { services, scope } = world.api;
    month++;
    await clock().update({ frozen_time: start() });
    looked = 0;
    await billDuePeriods(services, start(), { only: scope, plans });
    return looked;
  }

  /** They have rested; answers how often they were planned for it, and what they come to. */
  async function final(): Promise<[number, string[]]> {
    const { services, scope } = world.api;
    planned = 0;
    const now = new Date(start().getTime() + 2 * HOUR_MS);
    const { finalized, failed } = await finalizeDueInvoices(services, { now, delay_seconds: 7200, only: scope, plans });
    expect([finalized, failed]).to.deep.equal([2, []]);
    return [planned, await Promise.all(CUSTOMERS.map(async (customer) => (await last(customer))!.total))];
  }

  async function last(customer: string) {
    return (await world.invoices(customer)).at(-1);
  }

  /** What is left of the advance; the next test is about the next month. */
  afterEach(async () => {
    expect(await world.work(workflow_id, AbortSignal.timeout(60_000))).to.equal('completed');
    month++;
  });

  const stop = async (): Promise<void> => {
    await world.post(`/test-clocks/${(await world.testClock()).id}/stop`, {});
  };
  const priced = (amount: string) =>
    world.api.services
      .postgres('prices')
      .where({ ...world.api.scope, type: 'USAGE' })
      .update({ amount });

  it('they say what a second plan would', async () => {
    await drafted();
    expect(await final()).to.deep.equal([0, ['15', '15']]);
  });

  /** Of the month that has ended. */
  async function useLate(): Promise<void> {
    const [{ target_time }] = await clock();
    await clock().update({ test_clock_status: 'ready', target_time: null });
    await world.use('acme', 'calls', 7, { at: new Date(Date.UTC(2031, month - 1, 20)).toISOString() });
    await clock().update({ test_clock_status: 'advancing', target_time });
    await world.waitForPipeline();
  }

  it('are planned again with an event that was let in before the advance and came behind their drafts', async () => {
    await drafted();
    await useLate();
    expect(await final()).to.deep.equal([1, ['22', '15']]);
  });

  const changes = [
    ['the clock was stopped', stop],
    [
      'another advance was asked for',
      async () => {
        await stop();
        await world.work(workflow_id, AbortSignal.timeout(60_000));
        workflow_id = (await world.requestAdvance(new Date(start().getTime() + 3 * HOUR_MS).toISOString()))
          .workflow_id!;
      },
    ],
    [
      'another worker has begun',
      () => beginAdvance(world.api.services.postgres, { ...world.api.scope, workflow_id }, 'another'),
    ],
    ['something else was done', async () => plans.forget()],
  ] as const;

  describe('are planned again, as it is then, when', () => {
    for (const [when, happens] of changes)
      it(when, async () => {
        await drafted();
        await happens();
        await priced('2');
        expect(await final()).to.deep.equal([1, ['20', '20']]);
        await priced('1');
      });
  });

  describe('what was charged before them', () => {
    it('is not looked at again in the advance', async () => {
      await drafted(2);
      expect((await final())[1]).to.deep.equal(['15', '15']);
      expect(await nextDrafted()).to.equal(0);
      expect(await final()).to.deep.equal([0, ['10', '10']]);
      expect(await nextDrafted()).to.equal(0);
    });

    it('is looked at again with an event that came behind', async () => {
      await drafted(2);
      await final();
      await useLate();
      expect(await nextDrafted()).to.equal(1);
      expect(await final()).to.deep.equal([0, ['17', '10']]);
      expect(await nextDrafted()).to.equal(1);
      expect(await final()).to.deep.equal([0, ['10', '10']]);
    });

    for (const [when, happens] of changes)
      it(`is looked at again when ${when}`, async () => {
        await drafted(1);
        await final();
        await happens();
        expect(await nextDrafted()).to.equal(1);
        await final();
      });
  });

  describe('what is done beside them', () => {
    const MONTHLY = { cadence: 'RECURRING', period: 'MONTHLY', period_count: 1 };

    it('is told of what is overdue, given and expired without another look at what was charged', async () => {
      const subscription_id = world.id('subscription acme');
      const expiring = { expiration_type: 'DURATION', expiration_duration: 1, expiration_duration_unit: 'DAY' };
      const grant = { name: 'Gift', scope: 'SUBSCRIPTION', subscription_id, credits: '1', ...MONTHLY, ...expiring };
      const { id } = await world.post('/creditgrants', { ...grant, start_date: start().toISOString() });
      [planned, looked] = [0, 0];
      workflow_id = (await world.requestAdvance(new Date(Date.UTC(2031, month + 4, 3)).toISOString())).workflow_id!;
      await world.work(workflow_id, AbortSignal.timeout(60_000));
      const { progress } = await world.testClock();
      expect(progress.done).to.include.keys('told', 'granted', 'expired');
      // Those of both subscriptions are asked as one.
      expect([planned, looked]).to.deep.equal([5, 1]);
      await world.api.request('DELETE', `/creditgrants/${id}`);
      month += 4;
    });
  });

  describe('of several periods', () => {
    it('are planned again where the subscription has several', async () => {
      await drafted();
      month++;
      const { services, scope } = world.api;
      await clock().update({ frozen_time: start() });
      await billDuePeriods(services, start(), { only: scope, plans });
      const now = new Date(start().getTime() + 2 * HOUR_MS);
      planned = 0;
      const report = await finalizeDueInvoices(services, { now, delay_seconds: 7200, only: scope, plans });
      expect([report.finalized, planned]).to.deep.equal([4, 2]);
    });

    it('those that an advance has drafted itself are planned once', async () => {
      await world.advance(new Date(Date.UTC(2031, month, 1)).toISOString());
      planned = 0;
      workflow_id = (await world.requestAdvance(new Date(Date.UTC(2031, month + 3, 2)).toISOString())).workflow_id!;
      await world.work(workflow_id, AbortSignal.timeout(60_000));
      // And once more the one that was drafted before.
      expect(planned).to.equal(4);
      month += 3;
      expect((await last('bravo'))!.total).to.equal('10');
    });
  });

  describe('have on them what came when the clock was stopped:', () => {
    const subscription = () => `/subscriptions/${world.id('subscription acme')}`;
    for (const [what, happens, expected] of [
      [
        'what was edited on the draft',
        async () => {
          const { id, line_items } = (await last('acme'))!;
          const lines = line_items.map(({ subscription_line_item_id, period_start, period_end }) => ({
            subscription_line_item_id,
            period_start,
            period_end,
            amount: '3',
            quantity: '1',
          }));
          const answer = await world.api.request('POST', `/invoices/${id}/compute?sync=true`, {
            body: { line_items: lines },
          });
          expect(answer.status, answer.text).to.equal(200);
        },
        ['6', '15'],
      ],
      [
        'a coupon',
        () =>
          world.post(`${subscription()}/modify/execute`, {
            type: 'coupon',
            coupon_params: { action: 'add', coupon_code: 'TENTH', start_date: start().toISOString() },
          }),
        ['14', '15'],
      ],
    ] as const)
      it(what, async () => {
        await drafted();
        await stop();
        await happens();
        const [, totals] = await final();
        expect(totals).to.deep.equal(expected);
      });
  });
});
