/** Changes inside a period whose credits and charges come to what was served, whatever was paid before and whichever came first. */
import { expect } from 'chai';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

// Answers of every shape.
type Answer = any;
type Fields = Record<string, unknown>;

describe('scenario: changes to the penny', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Seat', [fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' })]);
    await world.plan('Two', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'desk' }),
    ]);
    await world.plan('Large', [fixed('93', { invoice_cadence: 'ADVANCE', display_name: 'large' })]);
    await world.plan('Quarter', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'month' }),
      fixed('90', { invoice_cadence: 'ARREAR', billing_period: 'QUARTERLY', display_name: 'quarter' }),
    ]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  const path = (customer: string, verb: string) => `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}`;
  const line = async (customer: string, name: string): Promise<Answer> => {
    const { line_items } = await world.subscription(customer);
    return line_items.findLast(
      ({ display_name, end_date }: Answer) => display_name === name && (!end_date || Date.parse(end_date) > +world.now),
    );
  };
  const change = async (method: string, id: string, body: Fields) => {
    const answer = await world.api.request(method, `/subscriptions/lineitems/${id}`, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body;
  };
  const reprice = async (customer: string, name: string, body: Fields) =>
    change('PUT', (await line(customer, name)).id, body);
  const last = async (customer: string) => (await world.statements(customer)).at(-1);
  const none = { proration_behavior: 'none' };
  const toPlan = (plan: string, fields: Fields = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    billing_cadence: 'RECURRING',
    billing_period: 'MONTHLY',
    billing_cycle: 'anniversary',
    ...fields,
  });

  describe('a line of months in a subscription of quarters', () => {
    const quarterly = { billing_period: 'QUARTERLY' };

    it('is credited for every month that was charged, and the line that follows pays for each', async () => {
      await world.on('2026-01-01', () => world.subscribe('months', 'Quarter', quarterly));
      await world.on('2026-02-15', () => reprice('months', 'month', { amount: '62' }));
      expect(await last('months')).to.equal(
        'SUBSCRIPTION_UPDATE FINALIZED 2026-02-15..2026-04-01 = 46.5\n' +
          '  month (unused time) 2026-02-15..2026-03-01: 1 = -15.5\n' +
          '  month (unused time) 2026-03-01..2026-04-01: 1 = -31\n' +
          '  month 2026-02-15..2026-03-01: 1 = 31\n  month 2026-03-01..2026-04-01: 1 = 62',
      );
      await world.on('2026-04-01');
      expect(await last('months')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-04-01 = 276\n' +
          '  quarter 2026-01-01..2026-04-01: 1 = 90\n  month 2026-04-01..2026-05-01: 1 = 62\n' +
          '  month 2026-05-01..2026-06-01: 1 = 62\n  month 2026-06-01..2026-07-01: 1 = 62',
      );
    });

    it('that follows without proration is charged when all that was paid is over', async () => {
      await world.on('2026-01-01', () => world.subscribe('kept months', 'Quarter', quarterly));
      await world.on('2026-02-15', () => reprice('kept months', 'month', { amount: '62', ...none }));
      await world.on('2026-04-01');
      expect(await world.statements('kept months')).to.have.lengthOf(2);
      expect(await last('kept months'))
        .to.contain('= 276\n')
        .and.not.contain('2026-03-01');
    });

    it('that is taken off is credited to the end of what it was charged for', async () => {
      await world.on('2026-01-01', () => world.subscribe('no months', 'Quarter', quarterly));
      await world.on('2026-02-15', async () => change('DELETE', (await line('no months', 'month')).id, {}));
      expect(await last('no months'))
        .to.contain('= -15.5\n')
        .and.contain('= -31');
    });
  });

  describe('without proration, and then with it, in one period', () => {
    it('what was paid for the time is given back once', async () => {
      await world.on('2026-01-01', () => world.subscribe('kept', 'Seat'));
      await world.on('2026-01-11', () => reprice('kept', 'seat', { amount: '62', ...none }));
      await world.on('2026-01-16', () => reprice('kept', 'seat', { amount: '93' }));
      expect(await last('kept')).to.equal(
        'SUBSCRIPTION_UPDATE FINALIZED 2026-01-16..2026-02-01 = 32\n' +
          '  seat (unused time) 2026-01-16..2026-02-01: 1 = -16\n  seat 2026-01-16..2026-02-01: 1 = 48',
      );
      await world.on('2026-01-21', async () => change('DELETE', (await line('kept', 'seat')).id, {}));
      expect(await last('kept')).to.equal(
        'SUBSCRIPTION_UPDATE SKIPPED 2026-01-21..2026-02-01 = 0\n  seat (unused time) 2026-01-21..2026-02-01: 1 = -33',
      );
    });

    it('also of a plan with several lines, and of a cancellation', async () => {
      await world.on(
        '2026-01-01',
        () => world.subscribe('planned', 'Two'),
        () => world.subscribe('left', 'Two'),
      );
      await world.on(
        '2026-01-11',
        () => world.post(path('planned', 'change/execute'), toPlan('Seat', none)),
        () => world.post(path('left', 'change/execute'), toPlan('Seat', none)),
      );
      await world.on('2026-01-16');
      const changed = await world.post(path('planned', 'change/execute'), toPlan('Large'));
      expect(changed.invoice ?? (await world.invoices('planned')).at(-1)).to.include({ subtotal: '0' });
      expect(await last('planned')).to.equal(
        'SUBSCRIPTION_UPDATE SKIPPED 2026-01-16..2026-02-01 = 0\n' +
          '  base (unused time) 2026-01-16..2026-02-01: 1 = -16\n  desk (unused time) 2026-01-16..2026-02-01: 1 = -32\n' +
          '  large 2026-01-16..2026-02-01: 1 = 48',
      );
      const cancelled = await world.cancel('left', {
        cancellation_type: 'immediate',
        proration_behavior: 'create_prorations',
      });
      expect(cancelled.total_credit_amount).to.equal('48');
    });

    it('a draft that rests says the same as if it had been final', async () => {
      await world.on('2026-01-01', () => world.subscribe('rests', 'Seat'));
      await world.on('2026-02-01');
      await world.on('2026-02-08', () => reprice('rests', 'seat', { amount: '62', ...none }));
      expect(await last('rests')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 31\n  seat 2026-02-01..2026-03-01: 1 = 31',
      );
      await world.on('2026-02-15', () => reprice('rests', 'seat', { amount: '93' }));
      expect(await last('rests')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 62\n' +
          '  seat 2026-02-01..2026-02-15: 1 = 15.5\n  seat 2026-02-15..2026-03-01: 1 = 46.5',
      );
      await world.on('2026-03-01');
      expect(await last('rests')).to.contain('= 93\n');
    });

    it('a change that lies in a later period is charged from its day on, and not earlier', async () => {
      await world.on('2026-01-01', () => world.subscribe('later', 'Seat'));
      await world.on('2026-01-11', () =>
        reprice('later', 'seat', { amount: '62', effective_from: '2026-02-15T00:00:00Z', ...none }),
      );
      await world.on('2026-02-01');
      expect(await last('later')).to.equal(
        'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 46.5\n' +
          '  seat 2026-02-01..2026-02-15: 1 = 15.5\n  seat 2026-02-15..2026-03-01: 1 = 31',
      );
    });
  });
});
