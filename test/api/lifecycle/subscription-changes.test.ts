/** Changes of a subscription over HTTP: who may ask for them, that a preview says what is done, and who comes first of many at once. */
import { expect } from 'chai';
import fc from 'fast-check';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Invoice, InvoiceLine, Modification } from '../../support/answers.ts';
import { fixed, startWorld, summarizeInvoice, type World } from '../../support/world.ts';

describe('changes of subscriptions', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.plan('Basic', [
      fixed('50', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      fixed('12.35', { invoice_cadence: 'ADVANCE', display_name: 'base', min_quantity: '2' }),
      fixed('31', { display_name: 'support' }),
    ]);
    await world.plan('Pro', [fixed('80', { invoice_cadence: 'ADVANCE', display_name: 'pro' })]);
  });
  after(() => world.stop());

  const path = <Verb extends string>(customer: string, verb: Verb) =>
    `/subscriptions/${world.id(`subscription ${customer}`)}/${verb}` as const;
  const send = (customer: string, verb: string, body: object) =>
    world.api.request('POST', path(customer, verb), { body });
  const linesOf = async (customer: string) => {
    const { line_items } = await world.subscription(customer);
    const open = line_items.filter((line) => line.end_date === null);
    return new Map(open.map((line) => [line.display_name, line]));
  };
  const quantities = async (customer: string, asked: Record<string, string | number>, effective_date?: string) => {
    const lines = await linesOf(customer);
    const line_items = Object.entries(asked).map(([name, quantity]) => ({
      id: lines.get(name)!.id,
      quantity: String(quantity),
      effective_date,
    }));
    return { type: 'quantity_change', quantity_change_params: { line_items } };
  };
  const toPro = () => ({ target_plan_id: world.id('plan Pro'), proration_behavior: 'create_prorations' });
  const walletOf = async (customer: string) =>
    (await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`))[0]?.balance ?? '0';

  describe('who may ask', () => {
    before(() => world.on('2026-01-01', () => world.subscribe('asked', 'Basic')));
    const operations: [string, () => Promise<object>][] = [
      ['modify/preview', () => quantities('asked', { seat: 2 })],
      ['modify/execute', () => quantities('asked', { seat: 2 })],
      ['change/v2/preview', async () => toPro()],
      ['change/v2/execute', async () => toPro()],
    ];
    for (const [verb, bodyOf] of operations) {
      it(`${verb}: 401 without a key, 403 without the permission, 404 for another tenant`, async () => {
        const body = await bodyOf();
        const by = async (key: string | null) =>
          (await world.api.request('POST', path('asked', verb), { body, key })).status;
        const role = verb.endsWith('preview') ? 'event_ingestor' : 'all_reader';
        const other = (await world.api.otherTenant()).key;
        expect([await by(null), await by(await world.api.keyWithRoles([role])), await by(other)]).to.deep.equal([
          401, 403, 404,
        ]);
      });
    }

    it('schedules and wallets: 404 for another tenant', async () => {
      const other = (await world.api.otherTenant()).key;
      await world.post(path('asked', 'cancel'), { cancellation_type: 'end_of_period' });
      const { id } = (await world.get(path('asked', 'schedules'))).schedules![0]!;
      const asked = [
        path('asked', 'schedules'),
        `/subscriptions/schedules/${id}`,
        `/customers/${world.id('customer asked')}/wallets`,
      ];
      for (const each of asked)
        expect((await world.api.request('GET', each, { key: other })).status, each).to.equal(404);
      const { schedule } = await world.get(`/subscriptions/${world.id('subscription asked')}/v2?expand=schedule`);
      expect(schedule).to.deep.include({ id, schedule_type: 'cancellation', can_be_cancelled: true });
      const undo = await world.api.request('POST', `/subscriptions/schedules/${id}/cancel`, { key: other });
      expect(undo.status).to.equal(404);
      const { schedules, count } = (await world.api.request('GET', '/subscriptions/schedules', { key: other })).body;
      expect([schedules, count]).to.deep.equal([[], 0]);
      await world.post('/subscriptions/schedules/cancel', {
        subscription_id: world.id('subscription asked'),
        schedule_type: 'cancellation',
      });
      const again = await world.api.request('POST', `/subscriptions/schedules/${id}/cancel`);
      expect([again.status, again.body.code]).to.deep.equal([400, 'invalid_operation']);
      const { items } = await world.get(
        `/subscriptions?subscription_ids=${world.id('subscription asked')}&expand=schedule`,
      );
      expect(items[0]!.schedule, 'nothing is to happen').to.equal(null);
    });
  });

  describe('400 by the field', () => {
    before(() => world.on('2026-01-01', () => world.subscribe('wrong', 'Basic')));
    const at = 'quantity_change_params.line_items[0]';
    const cases: [string, () => Promise<object>, string][] = [
      ['no parameters', async () => ({ type: 'quantity_change' }), 'quantity_change_params'],
      [
        'those of another type',
        async () => ({ ...(await quantities('wrong', { seat: 2 })), tax_params: { action: 'add' } }),
        'tax_params',
      ],
      ['after the period', () => quantities('wrong', { seat: 2 }, '2026-02-01T00:00:00Z'), `${at}.effective_date`],
      ['before the period', () => quantities('wrong', { seat: 2 }, '2025-12-31T23:59:59Z'), `${at}.effective_date`],
      ['below min_quantity', () => quantities('wrong', { base: 1 }), `${at}.quantity`],
      ['below 0', () => quantities('wrong', { seat: -1 }), `${at}.quantity`],
      ['a type that nobody knows', async () => ({ type: 'pause' }), 'type'],
    ];
    for (const [what, bodyOf, field] of cases)
      it(what, async () => {
        const { status, body } = await send('wrong', 'modify/execute', await bodyOf());
        expect([status, body.details?.field], body.message).to.deep.equal([400, field]);
      });

    it('404 for a line of another subscription', async () => {
      await world.subscribe('neighbour', 'Basic');
      const { status } = await send('wrong', 'modify/execute', await quantities('neighbour', { seat: 2 }));
      expect(status).to.equal(404);
    });
  });

  it('a preview says what is then done, and writes nothing', async () => {
    await world.on('2026-01-01', () => world.subscribe('previewed', 'Basic'));
    const quantity = fc.integer({ min: 2, max: 9 });
    const days = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { minLength: 4, maxLength: 4 });
    const changes = fc.array(fc.record({ seat: quantity, base: quantity, support: quantity }), {
      minLength: 4,
      maxLength: 4,
    });
    const [chosenDays] = fc.sample(days, 1);
    const [chosen] = fc.sample(changes, 1);
    for (const [index, day] of [...chosenDays!].sort((a, b) => a - b).entries()) {
      world.at(`2026-01-${String(day).padStart(2, '0')}T07:11:13Z`);
      const body = await quantities('previewed', chosen![index]!);
      const said = await world.post(path('previewed', 'modify/preview'), body as never);
      const again = await world.post(path('previewed', 'modify/preview'), body as never);
      const done = await world.post(path('previewed', 'modify/execute'), body as never);
      expect(again).to.deep.equal(said);
      expect(effect(done.changed_resources!)).to.deep.equal(effect(said.changed_resources!));
    }
  });

  describe('many at once', () => {
    const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).sort((a, b) => a - b);

    it('of one line: one changes it, and it is charged once', async () => {
      await world.on('2026-01-01', () => world.subscribe('race', 'Basic'));
      world.at('2026-01-16');
      const body = await quantities('race', { seat: 3 });
      const answers = await Promise.all(Array.from({ length: 5 }, () => send('race', 'modify/execute', body)));
      expect(statuses(answers)).to.deep.equal([200, 400, 400, 400, 400]);
      expect((await world.invoices('race')).map(({ total }) => total)).to.deep.equal(['74.7', '51.61']);
    });

    it('cancellations: one ends it, and unused time is given back once', async () => {
      await world.on('2026-01-01', () => world.subscribe('leaving', 'Basic'));
      await world.pay('leaving');
      world.at('2026-01-16');
      const body = { cancellation_type: 'immediate', proration_behavior: 'create_prorations' };
      const answers = await Promise.all(Array.from({ length: 4 }, () => send('leaving', 'cancel', body)));
      expect(statuses(answers)).to.deep.equal([200, 400, 400, 400]);
      expect(await walletOf('leaving')).to.equal('38.56'); // 25.81 of 50, 12.75 of 24.70
    });

    it('two subscriptions of one customer: their credits make one wallet', async () => {
      await world.on('2026-01-01', () => world.subscribe('twice', 'Basic'));
      const first = path('twice', 'cancel');
      await world.pay('twice');
      await world.subscribe('twice', 'Basic');
      await world.pay('twice');
      world.at('2026-01-16');
      const body = { cancellation_type: 'immediate', proration_behavior: 'create_prorations' };
      const answers = await Promise.all(
        [first, path('twice', 'cancel')].map((one) => world.api.request('POST', one, { body })),
      );
      expect(statuses(answers)).to.deep.equal([200, 200]);
      expect(await walletOf('twice')).to.equal('77.12');
    });

    it('plan changes, modifications and cancellations: each sees what came before it', async () => {
      await world.on('2026-01-01', () => world.subscribe('mixed', 'Basic'));
      world.at('2026-01-16');
      const body = await quantities('mixed', { seat: 3 });
      const answers = await Promise.all([
        send('mixed', 'change/v2/execute', toPro()),
        send('mixed', 'modify/execute', body),
        send('mixed', 'change/v2/execute', toPro()),
        send('mixed', 'cancel', { cancellation_type: 'immediate', proration_behavior: 'create_prorations' }),
      ]);
      for (const { status } of answers) expect(status).to.be.oneOf([200, 400]);
      expect(answers.at(-1)!.status).to.equal(200);
      // Whatever came first: what was billed for the time behind the cancellation has been given back.
      const lines = (await world.invoices('mixed')).flatMap((invoice) => invoice.line_items);
      const later = lines.filter((line) => Date.parse(line.period_start!) >= Date.parse('2026-01-16'));
      const opening = sumDecimals(lines.filter((line) => line.amount === '50' || line.amount === '24.7').map(amountOf));
      const kept = opening.plus(sumDecimals(later.map(amountOf)));
      expect(kept.toFixed()).to.equal('36.14'); // 15 of 31 days of 74.70: 24.19 and 11.95
    });

    it('a change and the billing of the period that ends: the new period is charged once, with the change', async () => {
      await world.on('2026-01-01', () => world.subscribe('due', 'Basic'));
      const body = await quantities('due', { seat: 3 });
      world.at('2026-02-01');
      await world.waitForPipeline();
      const [answer] = await Promise.all([send('due', 'modify/execute', body), world.bill(), world.bill()]);
      expect(answer.status, answer.text).to.equal(200);
      await world.bill();
      await world.finalize();
      const lines = (await world.invoices('due')).flatMap((invoice) => invoice.line_items);
      const february = lines.filter(
        (line) => line.display_name!.startsWith('seat') && line.period_start === '2026-02-01T00:00:00Z',
      );
      expect(sumDecimals(february.map(amountOf)).toFixed()).to.equal('150');
    });
  });
});

const amountOf = ({ amount }: InvoiceLine) => new Decimal(amount);

/** What is changed, without what only a record that is there has. */
function effect({ line_items, invoices }: Modification['changed_resources']) {
  const lines = line_items.map(({ id: _id, ...line }) => line);
  const said = invoices.map(({ action, invoice }) => ({ action, ...summarizeInvoice(invoice as Invoice) }));
  return { lines, said };
}
