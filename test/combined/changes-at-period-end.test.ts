/**
 * Plan changes at the end of the period of subscriptions that have paid for longer than that (docs/rules/subscriptions.md, "Plan changes";
 * docs/rules/proration.md, "One netted invoice"): what is given back is netted with what begins.
 */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice, PlanChange } from '../support/answers.ts';
import { fixed, startWorld, statement, usage, type World } from '../support/world.ts';

const YEARLY = { invoice_cadence: 'ADVANCE', billing_period: 'ANNUAL' };

describe('scenario: plan changes at the end of a period that is not the end of what is paid', () => {
  let world: World;
  let addon_id: string;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Plain', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'plain' }),
      usage('calls', '0.01', { display_name: 'calls' }),
    ]);
    await world.plan('Licensed', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'plain' }),
      fixed('365', { ...YEARLY, display_name: 'licence' }),
    ]);
    await world.plan('Other', [fixed('62', { invoice_cadence: 'ADVANCE', display_name: 'other' })]);
    await world.plan('Dear', [fixed('500', { invoice_cadence: 'ADVANCE', display_name: 'dear' })]);
    await world.plan('Year', [fixed('730', { ...YEARLY, display_name: 'year' })]);
    const addon = { name: 'Support', lookup_key: 'support', type: 'onetime' };
    addon_id = (await world.post('/addons', addon)).id;
    const price = fixed('365', { ...YEARLY, display_name: 'support' });
    await world.post('/prices', { entity_type: 'ADDON', entity_id: addon_id, currency: 'usd', ...price });
  });
  after(() => world.stop());

  const ask = <Verb extends string>(customer: string, verb: Verb, body: Record<string, unknown>) =>
    world.post(`/subscriptions/${world.id(`subscription ${customer}`)}/change/${verb}`, body);
  const toYear = (fields: object = {}) => ({
    target_plan_id: world.id('plan Year'),
    proration_behavior: 'create_prorations',
    billing_cadence: 'RECURRING',
    billing_period: 'ANNUAL',
    billing_cycle: 'anniversary',
    ...fields,
  });
  const to = (plan: string, fields: object = {}) => ({
    target_plan_id: world.id(`plan ${plan}`),
    proration_behavior: 'create_prorations',
    ...fields,
  });
  const balance = async (customer: string): Promise<string> => {
    const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
    return wallets[0]?.balance ?? '0';
  };
  /** What everything has come to by then. */
  const charged = async (customer: string): Promise<string> => {
    const invoices = (await world.invoices(customer)).filter((one) => one.invoice_status !== 'VOIDED');
    return sumDecimals(invoices.flatMap((one) => one.line_items.map((line) => new Decimal(line.amount)))).toFixed();
  };

  const CASES = {
    'an add-on of years, to years': {
      start: (name: string) => world.subscribe(name, 'Plain', { addons: [{ addon_id }] }),
      request: toYear,
      verb: 'execute',
      // A year of the plan, and the year of the add-on that begins in it: what is paid of this one is neither owed nor given back.
      netted: '1095',
      back: '0',
      whole: '1491',
    },
    'a line of years of the plan, in the same periods': {
      start: (name: string) => world.subscribe(name, 'Licensed'),
      request: (fields: object = {}) => to('Other', fields),
      verb: 'v2/execute',
      netted: '-272',
      back: '272',
      whole: '124',
    },
    'the same, to a plan that costs more': {
      start: (name: string) => world.subscribe(name, 'Licensed'),
      request: (fields: object = {}) => to('Dear', fields),
      verb: 'v2/execute',
      netted: '166',
      back: '0',
      whole: '562',
    },
  };

  for (const [title, { start, request, verb, netted, back, whole }] of Object.entries(CASES))
    it(`${title}: one invoice nets it, as it was previewed`, async () => {
      const [late, now] = [`${title}, at the end`, `${title}, at once`];
      await world.on('2026-01-01', () => start(late));
      await world.pay(late);
      await start(now);
      await world.on('2026-01-20');
      const body = request({ change_at: 'end_of_period' });
      const said = await ask(late, verb.replace('execute', 'preview'), body);
      await ask(late, verb, body);
      const previewed = await world.preview(late);
      await world.on(
        '2026-02-01',
        () => world.finalize(),
        () => ask(now, verb, request()),
      );
      const updates = (await world.invoices(late)).filter((one) => one.billing_reason === 'SUBSCRIPTION_UPDATE');
      const sums = updates.map(({ line_items }) =>
        sumDecimals(line_items.map((line) => new Decimal(line.amount))).toFixed(),
      );
      expect(sums).to.deep.equal([netted]);
      const [invoice] = 'next_invoice_preview' in said ? [said.next_invoice_preview] : invoicesOf(said as PlanChange);
      expect(invoice!.line_items!.map((line) => line.amount)).to.deep.equal(
        updates[0]!.line_items.map((line) => line.amount),
      );
      const done = (await world.invoices(late)).filter((one) => one.billing_reason !== 'SUBSCRIPTION_CREATE');
      expect(linesOf([previewed])).to.deep.equal(linesOf(done));
      expect(await balance(late)).to.equal(back);
      expect(await charged(late)).to.equal(whole);
    });

  const invoicesOf = (said: PlanChange) => said.changed_resources.invoices.map(({ invoice }) => invoice);
  const linesOf = (invoices: readonly Invoice[]) =>
    invoices
      .flatMap((one) => statement(one).split('\n').slice(1))
      .filter((line: string) => !line.endsWith(': 0 = 0'))
      .sort();

  it('the same as a change at that instant', async () => {
    await world.finalize();
    await world.on('2026-03-01');
    await world.finalize();
    for (const title of Object.keys(CASES))
      expect(await charged(`${title}, at the end`), title).to.equal(await charged(`${title}, at once`));
  });

  it('what is beside the plan is charged again when its own year ends, and once', async () => {
    await world.on('2027-02-01');
    const name = 'an add-on of years, to years, at the end';
    const lines = (await world.invoices(name)).flatMap(({ line_items }) => line_items);
    const support = lines.filter(({ display_name }) => display_name!.startsWith('support'));
    const paid = support.map((line) => [line.period_start!.slice(0, 10), line.amount]);
    expect(paid.sort()).to.deep.equal([
      ['2026-01-01', '365'],
      ['2026-02-01', '-334'],
      ['2026-02-01', '334'],
      ['2027-01-01', '365'],
      ['2028-01-01', '365'],
    ]);
  });
});
