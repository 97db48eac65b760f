/** The end of a trial is moved, and commitments begin where it ends. */
import { expect } from 'chai';
import type { Invoice, Modification } from '../support/answers.ts';
import { dates, payNewest, startTrialsWorld } from '../support/trials.ts';
import { startWorld, summarizeInvoice, usage, type World } from '../support/world.ts';

describe('scenario: ends of trials', () => {
  let world: World;
  before(async () => {
    world = await startTrialsWorld();
  });
  after(() => world.stop());

  const pay = (customer: string) => payNewest(world, customer);

  describe('the end of a trial moves', () => {
    const modify = (customer: string, verb: 'preview' | 'execute', trial_end_params: object) =>
      world.api.request('POST', `/subscriptions/${world.id(`subscription ${customer}`)}/modify/${verb}`, {
        body: { type: 'trial_end', trial_end_params },
      });
    const without = ({ invoices, subscriptions }: Modification['changed_resources']) => ({
      subscriptions,
      said: invoices.map(({ invoice }) => summarizeInvoice(invoice as Invoice)),
    });

    it('at once: the first invoice is that which was previewed', async () => {
      await world.on('2028-01-01', () => world.subscribe('eager', 'Tried', { payment_behavior: 'allow_incomplete' }));
      world.at('2028-01-05T06:00:00Z');
      const preview = await modify('eager', 'preview', { action: 'immediate' });
      expect(await world.statements('eager')).to.have.length(1);
      const done = await modify('eager', 'execute', { action: 'immediate' });
      expect([preview.status, done.status], done.text).to.deep.equal([200, 200]);
      expect(without(done.body.changed_resources!)).to.deep.equal(without(preview.body.changed_resources!));
      expect(done.body.changed_resources.subscriptions).to.deep.equal([
        {
          id: world.id('subscription eager'),
          action: 'updated',
          status: 'incomplete',
          trial_end: '2028-01-05T06:00:00Z',
          current_period_end: '2028-02-05T06:00:00Z',
        },
      ]);
      expect(done.body.subscription).to.include({
        subscription_status: 'incomplete',
        billing_anchor: '2028-01-05T06:00:00Z',
      });
      await pay('eager');
      await world.on('2028-02-05T06:00:00Z');
      expect(await world.statements('eager')).to.have.length(3);
      expect((await modify('eager', 'execute', { action: 'immediate' })).body.details!.field).to.equal(
        'subscription_status',
      );
    });

    it('to a later or an earlier instant: nothing is charged before it', async () => {
      await world.on('2028-03-01', () => world.subscribe('moved', 'Tried'));
      const later = { action: 'scheduled_date', new_trial_end: '2028-03-22T00:00:00Z' };
      const preview = await modify('moved', 'preview', later);
      const done = await modify('moved', 'execute', later);
      expect(done.body.changed_resources, done.text).to.deep.equal(preview.body.changed_resources);
      expect(dates(done.body.subscription!)).to.deep.equal([
        'trialing',
        '2028-03-01T00:00:00.000Z',
        '2028-03-22T00:00:00.000Z',
        '2028-03-22T00:00:00.000Z',
      ]);
      await world.on('2028-03-21');
      expect(await world.statements('moved')).to.have.length(1);
      await modify('moved', 'execute', { action: 'scheduled_date', new_trial_end: '2028-03-21T12:00:00Z' });
      await world.on('2028-03-21T12:00:00Z');
      expect((await world.statements('moved'))[1]).to.contain(
        'TRIAL_END FINALIZED 2028-03-21T12:00..2028-04-21T12:00 = 30',
      );
    });

    it('not while it is to be cancelled at its end, which would be another', async () => {
      await world.on('2028-04-25', () => world.subscribe('cancelled', 'Tried'));
      await world.cancel('cancelled', { cancellation_type: 'end_of_period' });
      for (const params of [
        { action: 'immediate' },
        { action: 'scheduled_date', new_trial_end: '2028-04-28T00:00:00Z' },
      ]) {
        const answer = await modify('cancelled', 'execute', params);
        expect([answer.status, answer.body.details?.field]).to.deep.equal([400, 'cancel_at_period_end']);
      }
    });

    const refused = [
      [
        'a past instant',
        { action: 'scheduled_date', new_trial_end: '2028-05-02T00:00:00Z' },
        'trial_end_params.new_trial_end',
      ],
      ['no instant', { action: 'scheduled_date' }, 'trial_end_params.new_trial_end'],
      [
        'an instant of what is immediate',
        { action: 'immediate', new_trial_end: '2028-05-10T00:00:00Z' },
        'trial_end_params.new_trial_end',
      ],
      ['an action that there is not', { action: 'never' }, 'trial_end_params.action'],
    ] as const;
    it('400 names what is wrong', async () => {
      await world.on('2028-05-01', () => world.subscribe('refused', 'Tried'));
      world.at('2028-05-03');
      for (const [name, params, field] of refused) {
        const answer = await modify('refused', 'execute', params);
        expect([answer.status, answer.body.details?.field], name).to.deep.equal([400, field]);
      }
      world.at('2028-05-16');
      const over = await modify('refused', 'execute', {
        action: 'scheduled_date',
        new_trial_end: '2028-06-01T00:00:00Z',
      });
      expect([over.status, over.body.details!.field]).to.deep.equal([400, 'subscription_status']);
    });

    it('of an end and the scheduler, and of two ends, one opens what is paid for', async () => {
      await world.on('2028-07-01', () => world.subscribe('raced', 'Tried'));
      world.at('2028-07-08');
      const ends = [1, 2, 3].map(() => modify('raced', 'execute', { action: 'immediate' }));
      const [answers] = await Promise.all([Promise.all(ends), world.bill()]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400, 400]);
      expect(await world.statements('raced')).to.have.length(2);
    });
  });
});

describe('scenario: commitments behind trials', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.stop());

  // docs/rules/commitments.md, "Shorter periods": nothing is committed to in a trial.
  it('a commitment, of the line or of the whole, begins where the trial ends: cut with the first period, in terms from there on', async () => {
    await world.meter('calls');
    await world.plan('Committed', []);
    const { id: line } = await world.price('Committed', usage('calls', '1', { display_name: 'calls' }));
    const money = { commitment_amount: '280', overage_factor: '1', enable_true_up: true };
    const ofLine = (terms: object) => ({ line_item_commitments: { [line]: terms } });
    const until = (trial_end: string) => ({
      trial_start: '2029-01-20T00:00:00Z',
      trial_end,
      billing_cycle: 'calendar',
    });
    const [soon, later] = [until('2029-01-25T00:00:00Z'), until('2029-02-08T00:00:00Z')];
    // Of the term of a quarter that begins in February three paid months are over on 1 May.
    const quarter = { ...money, commitment_duration: 'QUARTERLY' };
    const all = [
      ['soon whole', { ...soon, ...money }],
      ['soon line', { ...soon, ...ofLine(money) }],
      ['later whole', { ...later, ...money }],
      ['later line', { ...later, ...ofLine(money) }],
      ['term whole', { ...later, ...quarter }],
      ['term line', { ...later, ...ofLine(quarter) }],
    ] as const;
    await world.on('2029-01-20');
    for (const [customer, terms] of all) await world.subscribe(customer, 'Committed', terms);
    for (const day of ['2029-02-01', '2029-03-01', '2029-04-01', '2029-05-01', '2029-06-01']) {
      await world.on(day);
      await world.finalize();
    }
    const totals = async (customer: string) => {
      const invoices = await world.invoices(customer);
      return invoices
        .filter(({ total }) => total !== '0')
        .map(({ period_start, total }) => `${period_start!.slice(5, 10)} ${total}`);
    };
    // 7 of 31 days and 21 of 28.
    const monthly = ['03-01 280', '04-01 280', '05-01 280'];
    for (const which of ['whole', 'line']) {
      expect((await totals(`soon ${which}`))[0], which).to.equal('01-25 63.23');
      expect(await totals(`later ${which}`), which).to.deep.equal(['02-08 210', ...monthly]);
      expect(await totals(`term ${which}`), which).to.deep.equal(['05-01 280']);
    }
  });
});
