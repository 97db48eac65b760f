/** Lines of a subscription: with prices of their own, added, changed and ended. */
import { expect } from 'chai';
import type { ErrorAnswer } from '../../support/answers.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

describe('line items of a subscription', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [
      fixed('30', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      usage('calls', '0.01'),
    ]);
  });
  after(() => world.stop());

  const inline = (fields: Fields = {}) => ({
    type: 'FIXED',
    billing_model: 'FLAT_FEE',
    billing_period: 'MONTHLY',
    invoice_cadence: 'ADVANCE',
    price_unit_type: 'FIAT',
    amount: '12',
    ...fields,
  });
  const refused = async <Method extends string, Path extends string>(method: Method, path: Path, body: Fields) => {
    const answer = await world.api.request(method, path, { body });
    expect(answer.status, answer.text).to.equal(400);
    const { code, details } = answer.body as ErrorAnswer;
    return [code, details?.field];
  };

  describe('with the subscription', () => {
    it('a line states the price that it charges', async () => {
      const price = inline({
        amount: '0.02',
        type: 'USAGE',
        invoice_cadence: 'ARREAR',
        meter_id: world.id('meter calls'),
      });
      const setup = inline({ amount: '99', billing_period: 'ONETIME', display_name: 'Set-up', currency: 'USD' });
      const made = await world.subscribe('inline', 'Pro', {
        line_items: [{ price }, { price: setup, quantity: '2', start_date: '2026-01-20T00:00:00Z' }],
      });
      const [, , calls, fee] = made.line_items;
      const own = { entity_type: 'subscription', entity_id: made.id, plan_display_name: null };
      expect(calls).to.deep.include({ ...own, display_name: 'calls', meter_display_name: 'calls', quantity: '0' });
      expect(calls!.price).to.include({
        entity_type: 'SUBSCRIPTION',
        entity_id: made.id,
        amount: '0.02',
        currency: 'usd',
      });
      expect(fee).to.deep.include({ ...own, display_name: 'Set-up', quantity: '2', billing_period: 'ONETIME' });
      expect(fee!.price!.start_date).to.equal('2026-01-20T00:00:00Z');
    });

    const wrong: [string, (price: Fields) => Fields, string][] = [
      ['both a price and an id', (price) => ({ price, price_id: 'price_1' }), 'line_items[0].price'],
      ['neither', () => ({}), 'line_items[0].price_id'],
      ['another currency', (price) => ({ price: { ...price, currency: 'eur' } }), 'line_items[0].price.currency'],
      ['no amount', (price) => ({ price: { ...price, amount: undefined } }), 'line_items[0].price.amount'],
      ['usage in advance', (price) => ({ price: { ...price, type: 'USAGE' } }), 'line_items[0].price.invoice_cadence'],
    ];
    for (const [name, line, field] of wrong) {
      it(`refuses ${name}`, async () => {
        const body = {
          external_customer_id: 'inline',
          plan_id: world.id('plan Pro'),
          currency: 'usd',
          billing_period: 'MONTHLY',
          line_items: [line(inline())],
        };
        expect(await refused('POST', '/subscriptions', body)).to.deep.equal(['validation_error', field]);
      });
    }
  });

  describe('of a subscription that runs', () => {
    let subscription: { id: string; line_items: { id: string; price_id: string }[] };
    before(async () => {
      await world.on('2026-01-01', () => world.subscribe('runs', 'Pro'));
      subscription = await world.subscription('runs');
      world.at('2026-01-11');
    });

    const ask = async <Method extends string, Path extends string>(
      method: Method,
      path: Path,
      body: Fields,
      status: number,
    ) => {
      const answer = await world.api.request(method, path, { body });
      expect(answer.status, answer.text).to.equal(status);
      return answer.body;
    };
    const add = (body: Fields, status = 201) =>
      ask('POST', `/subscriptions/${subscription.id}/lineitems`, body, status);
    const of = (id: string) => `/subscriptions/lineitems/${id}` as const;

    it('201 a line with a price of its own, from now on, and a version more', async () => {
      const { version } = await world.subscription('runs');
      const made = await add({ price: inline({ invoice_cadence: 'ARREAR' }), quantity: 3, metadata: { a: 'b' } });
      expect(made).to.deep.include({
        subscription_id: subscription.id,
        quantity: '3',
        start_date: '2026-01-11T00:00:00Z',
        end_date: null,
        entity_type: 'subscription',
        metadata: { a: 'b' },
      });
      expect(made.price!.amount).to.equal('12');
      expect((await world.subscription('runs')).version).to.equal(version + 1);
    });

    it('201 a line of a price that exists, with dates of its own', async () => {
      const price_id = subscription.line_items[0]!.price_id;
      const dates = { start_date: '2026-02-03T00:00:00Z', end_date: '2026-02-20T00:00:00Z' };
      const made = await add({ price_id, ...dates, display_name: 'Second base' });
      expect(made).to.deep.include({ price_id, ...dates, display_name: 'Second base', entity_type: 'plan' });
    });

    it('200 metadata changes in place, and so does what a line charges already', async () => {
      const { id, start_date } = await add({ price: inline({ invoice_cadence: 'ARREAR' }) });
      const changed = await ask('PUT', of(id), { metadata: { team: 'x' }, amount: '12' }, 200);
      expect(changed).to.deep.include({ id, start_date, metadata: { team: 'x' } });
    });

    it('200 what it charges is changed by a line that follows it, with the root of its prices', async () => {
      const line = await add({ price: inline({ invoice_cadence: 'ARREAR' }), quantity: '2' });
      world.at('2026-01-13');
      const second = await ask('PUT', of(line.id), { amount: '20' }, 200);
      expect(second).to.include({ quantity: '2', start_date: '2026-01-13T00:00:00Z' });
      expect(second.price).to.include({ amount: '20', parent_price_id: line.price_id, entity_type: 'SUBSCRIPTION' });
      const tiers = [{ up_to: null, unit_amount: '3' }];
      const third = await ask('PUT', of(second.id), { billing_model: 'TIERED', tier_mode: 'VOLUME', tiers }, 200);
      expect(third.price).to.include({ billing_model: 'TIERED', parent_price_id: line.price_id });
      const { items } = await ask(
        'POST',
        '/subscriptions/lineitems/search',
        { subscription_ids: [subscription.id], active_filter: false, price_ids: [line.price_id, second.price_id] },
        200,
      );
      // The second was replaced at the instant at which it began: it has never been.
      expect(items.map(({ id, end_date }) => [id, end_date])).to.deep.equal([[line.id, '2026-01-13T00:00:00Z']]);
    });

    it('200 another quantity is charged by a line that follows it, with its price or another', async () => {
      world.at('2026-01-12');
      const line = await add({ price: inline({ invoice_cadence: 'ADVANCE', amount: '31' }), quantity: '2' });
      const same = await ask('PUT', of(line.id), { quantity: '2.0' }, 200);
      expect(same.id).to.equal(line.id);
      const before = (await world.invoices('runs')).length;
      const more = await ask('PUT', of(line.id), { quantity: '5', effective_from: '2026-01-22T00:00:00Z' }, 200);
      expect(more).to.deep.include({ quantity: '5', price_id: line.price_id, start_date: '2026-01-22T00:00:00Z' });
      expect((await world.invoices('runs')).length).to.be.greaterThan(before);
      const arrear = await add({ price: inline({ invoice_cadence: 'ARREAR' }), quantity: '2' });
      world.at('2026-01-13');
      const both = await ask('PUT', of(arrear.id), { quantity: '3', amount: '7' }, 200);
      expect([both.quantity, both.price!.amount]).to.deep.equal(['3', '7']);
      const meter_id = world.id('meter calls');
      const measured = await add({ price: inline({ type: 'USAGE', invoice_cadence: 'ARREAR', meter_id }) });
      for (const [id, quantity] of [
        [both.id, '-1'],
        [measured.id, '4'],
      ] as const)
        expect((await ask('PUT', of(id), { quantity }, 400)).details!.field).to.equal('quantity');
    });

    it('200 what a line is committed to is changed by a line that follows it', async () => {
      world.at('2026-01-13');
      const meter_id = world.id('meter calls');
      const line = await add({ price: inline({ type: 'USAGE', invoice_cadence: 'ARREAR', amount: '0.5', meter_id }) });
      world.at('2026-01-14');
      const stated = { commitment_amount: '100', commitment_overage_factor: '2', commitment_true_up_enabled: true };
      const committed = await ask('PUT', of(line.id), stated, 200);
      expect(committed).to.include({ ...stated, commitment_type: 'amount', price_id: line.price_id });
      expect(committed.start_date).to.equal('2026-01-14T00:00:00Z');
      expect((await ask('PUT', of(committed.id), stated, 200)).id).to.equal(committed.id);
      world.at('2026-01-15');
      const dearer = await ask('PUT', of(committed.id), { amount: '0.6' }, 200);
      expect(dearer).to.include(stated);
      world.at('2026-01-16');
      expect(await ask('PUT', of(dearer.id), { commitment_amount: '0' }, 200)).to.include({
        commitment_amount: null,
        commitment_true_up_enabled: false,
      });
      const fixedLine = subscription.line_items[0]!.id;
      expect((await ask('PUT', of(fixedLine), stated, 400)).details!.field).to.equal('commitment_amount');
      world.at('2026-01-13');
    });

    it('200 times of day are changed by a line with a price of its own, and taken away by an empty list', async () => {
      await world.meter('cpu', { type: 'SUM', field: 'n', bucket_size: 'HOUR' });
      await world.plan('Cpu', [usage('cpu', '1')]);
      await world.on('2026-01-01');
      const { id, line_items } = await world.subscribe('times', 'Cpu');
      const [first] = line_items;
      world.at('2026-01-11');
      const change = async (line: string, body: Fields) => {
        const answer = await world.api.request('PUT', `/subscriptions/lineitems/${line}`, { body });
        expect(answer.status, answer.text).to.equal(200);
        return answer.body;
      };
      const night = { start: { hour: 22 }, end: { hour: 6 }, commitment_value: '5', true_up_enabled: true };
      const asked = { commitment_windowed: true, commitment_time_buckets: [night] };
      const timed = await change(first!.id, asked);
      expect(timed).to.include({ start_date: '2026-01-11T00:00:00Z', commitment_windowed: true });
      expect(timed.commitment_time_buckets![0]).to.deep.include({ end: { hour: 6, minute: 0 }, commitment_value: '5' });
      expect(timed.price_id).to.not.equal(first!.price_id);
      const price = await world.get(`/prices/${timed.price_id}`);
      expect(price.commitment_time_buckets).to.deep.equal(timed.commitment_time_buckets);
      expect(price).to.include({ entity_id: id, parent_price_id: first!.price_id });
      expect((await change(timed.id, asked)).id, 'the same again').to.equal(timed.id);
      world.at('2026-01-12');
      const dearer = [{ ...night, commitment_value: '6' }];
      const changed = await change(timed.id, { ...asked, commitment_time_buckets: dearer });
      expect(changed.commitment_time_buckets![0]!.commitment_value).to.equal('6');
      world.at('2026-01-13');
      const plain = await change(changed.id, { commitment_time_buckets: [] });
      expect(plain).to.include({ commitment_windowed: false, commitment_time_buckets: null });
      expect((await world.get(`/prices/${plain.price_id}`)).commitment_time_buckets).to.equal(null);
      const path = `/subscriptions/lineitems/${plain.id}` as const;
      const field = 'commitment_time_buckets';
      expect(await refused('PUT', path, { [field]: [night] })).to.deep.equal(['validation_error', field]);
      const whole = await world.subscribe('committed as a whole', 'Cpu', { commitment_amount: '5' });
      const usageTerms = { type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: world.id('meter cpu') };
      const timedPrice = { price: inline({ ...usageTerms, [field]: [night] }) };
      expect(await refused('POST', `/subscriptions/${whole.id}/lineitems`, timedPrice)).to.deep.equal([
        'validation_error',
        'price',
      ]);
    });

    it('200 a line ends, and one that has not begun is taken out', async () => {
      const line = await add({ price: inline({ invoice_cadence: 'ARREAR' }) });
      const later = '2026-01-25T00:00:00Z';
      expect(await ask('DELETE', of(line.id), { effective_from: later }, 200)).to.include({ end_date: later });
      const coming = await add({ price: inline(), start_date: '2026-03-01T00:00:00Z' });
      expect(await ask('DELETE', of(coming.id), {}, 200)).to.include({
        end_date: coming.start_date,
        status: 'deleted',
      });
      await ask('DELETE', of(coming.id), {}, 404);
    });

    it('a price of a meter that never resets changes with the period', async () => {
      const meter = await world.meter('seats', { type: 'LATEST', field: 'n' }, { reset_usage: 'NEVER' });
      const price = inline({ type: 'USAGE', invoice_cadence: 'ARREAR', meter_id: meter.id });
      const { id } = await add({ price });
      const inside = await ask('PUT', of(id), { amount: '2', effective_from: '2026-01-20T00:00:00Z' }, 400);
      expect(inside.details!.field).to.equal('effective_from');
      expect(await ask('PUT', of(id), { amount: '2' }, 200)).to.include({ start_date: '2026-02-01T00:00:00Z' });
    });

    it('a line of a phase lives within it', async () => {
      const phases = [
        { start_date: '2026-01-11T00:00:00Z', end_date: '2026-03-01T00:00:00Z' },
        { start_date: '2026-03-01T00:00:00Z' },
      ];
      world.at('2026-01-11');
      const phased = await world.subscribe('phased', 'Pro', { phases });
      const lines = `/subscriptions/${phased.id}/lineitems`;
      const [first, second] = phased.phases;
      const body = { price: inline(), subscription_phase_id: first!.id };
      expect(await ask('POST', lines, body, 201)).to.include({ ...phases[0], subscription_phase_id: first!.id });
      const later = await ask('POST', lines, { ...body, subscription_phase_id: second!.id }, 201);
      expect(later).to.include({ ...phases[1], end_date: null });
      const outside = { ...body, end_date: '2026-04-01T00:00:00Z' };
      expect((await ask('POST', lines, outside, 400)).details!.field).to.equal('end_date');
      const foreign = await ask('POST', `/subscriptions/${subscription.id}/lineitems`, body, 400);
      expect(foreign.details!.field).to.equal('subscription_phase_id');
    });

    it('a start that lies ahead: nothing is invoiced before the opening', async () => {
      world.at('2026-01-14');
      const ahead = await world.subscribe('ahead', 'Pro', { start_date: '2026-02-01T00:00:00Z' });
      const added = await ask('POST', `/subscriptions/${ahead.id}/lineitems`, { price: inline() }, 201);
      expect(added.start_date).to.equal('2026-02-01T00:00:00Z');
      expect(await world.invoices('ahead')).to.deep.equal([]);
      await ask('PUT', of(ahead.line_items[0]!.id), { amount: '31' }, 200);
      // The scheduler has not come to its opening yet: that comes first.
      world.at('2026-02-01');
      await ask('DELETE', of(added.id), { effective_from: '2026-02-15T00:00:00Z' }, 200);
      expect((await world.invoices('ahead')).map(({ total, subtotal }) => [total, subtotal])).to.deep.equal([
        ['43', '43'],
        ['0', '-6'],
      ]);
      world.at('2026-01-14');
    });

    it('a draft is as if it were made now: nothing is invoiced, and what ends has never been', async () => {
      const draft = await world.subscribe('drafted', 'Pro', { subscription_status: 'draft' });
      const [base] = draft.line_items;
      const own = await ask('PUT', of(base!.id), { amount: '5' }, 200);
      expect(own.start_date).to.equal(base!.start_date);
      await ask('POST', `/subscriptions/${draft.id}/lineitems`, { price: inline() }, 201);
      const { line_items } = await world.subscription('drafted');
      expect(line_items.map(({ price }) => price!.amount)).to.deep.equal(['0.01', '5', '12']);
      expect(await world.invoices('drafted')).to.deep.equal([]);
    });

    const wrong: [string, Fields, string][] = [
      ['neither a price nor an id', {}, 'price_id'],
      ['a start in a time that is invoiced', { start_date: '2025-12-31T00:00:00Z' }, 'start_date'],
      ['an end before the start', { end_date: '2026-01-02T00:00:00Z' }, 'end_date'],
      ['a quantity below 0', { quantity: '-1' }, 'quantity'],
      ['another currency', { price: inline({ currency: 'eur' }) }, 'price.currency'],
    ];
    for (const [name, fields, field] of wrong) {
      it(`400 ${name}`, async () => {
        const body = name.startsWith('neither') ? fields : { price: inline(), ...fields };
        expect((await add(body, 400)).details!.field).to.equal(field);
      });
    }

    it('400 what a line cannot become', async () => {
      const { id } = await add({ price: inline({ billing_period: 'ONETIME' }) });
      expect((await ask('PUT', of(id), { amount: '1' }, 400)).message).to.contain('charged once');
      const base = subscription.line_items[0]!.id;
      const early = { amount: '1', effective_from: '2025-12-31T00:00:00Z' };
      expect((await ask('PUT', of(base), early, 400)).details!.field).to.equal('effective_from');
      const alone = { effective_from: '2026-01-20T00:00:00Z' };
      expect((await ask('PUT', of(base), alone, 400)).details!.field).to.equal('effective_from');
      expect((await ask('PUT', of(base), { amount: '-1' }, 400)).details!.field).to.equal('amount');
    });

    it('400 lines of a subscription that is over', async () => {
      const over = await world.subscribe('over', 'Pro');
      await world.cancel('over');
      const answer = await ask('POST', `/subscriptions/${over.id}/lineitems`, { price: inline() }, 400);
      expect(answer).to.include({ code: 'invalid_operation' });
      expect((await ask('DELETE', of(over.line_items[0]!.id), {}, 400)).code).to.equal('invalid_operation');
    });

    it('401, 403, and 404 for another tenant', async () => {
      const { id } = subscription.line_items[0]!;
      const reader = await world.api.keyWithRoles(['event_reader']);
      const { key } = await world.api.otherTenant();
      const requests: [string, string, Fields][] = [
        ['POST', `/subscriptions/${subscription.id}/lineitems`, { price: inline() }],
        ['PUT', of(id), { amount: '1' }],
        ['DELETE', of(id), {}],
      ];
      for (const [method, path, body] of requests) {
        const status = async (given: string | null) =>
          (await world.api.request(method, path, { body, key: given })).status;
        expect([await status(null), await status(reader), await status(key)], path).to.deep.equal([401, 403, 404]);
      }
    });

    it('two changes of one line at once leave one line that goes on', async () => {
      world.at('2026-01-13');
      const { id } = await add({ price: inline() });
      world.at('2026-01-14');
      const amounts = ['21', '22', '23'];
      const answers = await Promise.all(
        amounts.map((amount) => world.api.request('PUT', of(id), { body: { amount } })),
      );
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400, 400]);
      const { line_items } = await world.subscription('runs');
      const open = line_items.filter(({ price, end_date }) => amounts.includes(price!.amount) && end_date === null);
      expect(open).to.have.length(1);
    });
  });
});
