import { expect } from 'chai';
import type { Customer, ErrorAnswer, Invoice } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/taxes', () => {
  let api: TestApi;
  let customer: Customer;
  let count = 0;
  before(async () => {
    api = await startTestApi({ now: NOW });
    customer = await created('/customers', { external_id: 'acme' });
  });
  after(() => api.stop());

  const send = <Method extends string, Path extends string>(
    method: Method,
    path: Path,
    body?: unknown,
    key?: string | null,
  ) => api.request(method, path, { body, ...(key === undefined ? {} : { key }) });
  async function created<Path extends string>(path: Path, body: unknown, status = 201) {
    const answer = await send('POST', path, body);
    expect(answer.status, answer.text).to.equal(status);
    return answer.body;
  }
  const rate = (fields: Record<string, unknown> = {}) => ({
    name: 'VAT',
    code: `vat-${++count}`,
    percentage_value: '19',
    ...fields,
  });
  const attach = (tax_rate_code: string, fields: Record<string, unknown> = {}) =>
    send('POST', '/taxes/associations', { tax_rate_code, external_customer_id: 'acme', ...fields });
  const refused = ({ status, body }: { status: number; body: Partial<ErrorAnswer> | null }) => [
    status,
    body!.details?.field,
  ];

  describe('rates', () => {
    it('201 answers every key of the contract, and it is read again', async () => {
      const body = rate({ code: 'Gst', percentage_value: '8.8750', description: 'State', metadata: { a: 'b' } });
      const made = await created('/taxes/rates', body);
      const { id, created_by: _by, updated_by: _too, ...rest } = made;
      expect(id).to.match(/^taxrate_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...body,
        ...api.scope,
        percentage_value: '8.875',
        fixed_value: null,
        tax_behavior: 'exclusive',
        tax_rate_type: 'percentage',
        tax_rate_status: 'ACTIVE',
        scope: 'INTERNAL',
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect((await send('GET', `/taxes/rates/${id}`)).body).to.deep.equal(made);
    });

    const sound: [string, Record<string, unknown>, Record<string, unknown>][] = [
      ['0 percent', { percentage_value: '0' }, { percentage_value: '0' }],
      ['100 percent', { percentage_value: 100 }, { percentage_value: '100' }],
      ['an amount, told by its value', { percentage_value: null, fixed_value: '2.5' }, { tax_rate_type: 'fixed' }],
      ['an amount of 0', { tax_rate_type: 'FIXED', percentage_value: null, fixed_value: '0' }, { fixed_value: '0' }],
      ['a scope in any case', { scope: 'onetime' }, { scope: 'ONETIME' }],
    ];
    for (const [what, fields, expected] of sound)
      it(`201 for ${what}`, async () => {
        expect(await created('/taxes/rates', rate(fields))).to.include(expected);
      });

    const wrong: [string, Record<string, unknown>, number, string?][] = [
      ['more than 100 percent', { percentage_value: '100.01' }, 400, 'percentage_value'],
      ['less than 0 percent', { percentage_value: '-1' }, 400, 'percentage_value'],
      ['no value', { percentage_value: null }, 400, 'percentage_value'],
      ['two values', { fixed_value: '1' }, 400, 'fixed_value'],
      ['an amount as a percentage', { tax_rate_type: 'fixed' }, 400, 'fixed_value'],
      ['a negative amount', { percentage_value: null, fixed_value: '-1' }, 400, 'fixed_value'],
      ['a scope that is none', { scope: 'LOCAL' }, 400, 'scope'],
      ['a blank code', { code: ' ' }, 400, 'code'],
      ['a code that is there', { code: 'Gst' }, 409, 'code'],
    ];
    for (const [why, fields, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        expect(refused(await send('POST', '/taxes/rates', rate(fields)))).to.deep.equal([status, field]);
      });

    it('PUT changes what describes it, DELETE is 204 and gives the code back', async () => {
      const made = await created('/taxes/rates', rate());
      const put = (body: unknown) => send('PUT', `/taxes/rates/${made.id}`, body);
      const changes = { code: 'new-code', description: 'x', tax_rate_status: 'INACTIVE', metadata: { c: 'd' } };
      expect((await put(changes)).body).to.deep.equal({ ...made, ...changes });
      expect(refused(await put({ code: 'Gst' }))[0]).to.equal(409);
      expect(refused(await put({ value: '2' }))).to.deep.equal([400, 'value']);
      expect(refused(await attach('new-code'))).to.deep.equal([400, 'tax_rate_code']);
      const gone = await send('DELETE', `/taxes/rates/${made.id}`);
      expect([gone.status, gone.text]).to.deep.equal([204, '']);
      expect((await send('GET', `/taxes/rates/${made.id}`)).body.status).to.equal('archived');
      expect((await put({ name: 'x' })).status).to.equal(400);
      await created('/taxes/rates', rate({ code: 'new-code' }));
    });

    it('is neither changed nor archived while something is taxed with it', async () => {
      const made = await created('/taxes/rates', rate());
      const association = (await attach(made.code)).body;
      expect(refused(await send('PUT', `/taxes/rates/${made.id}`, { name: 'x' }))[0]).to.equal(400);
      expect(refused(await send('DELETE', `/taxes/rates/${made.id}`))[0]).to.equal(400);
      expect((await send('GET', `/taxes/rates/${made.id}`)).body).to.deep.equal(made);
      await send('DELETE', `/taxes/associations/${association.id}`);
      expect((await send('DELETE', `/taxes/rates/${made.id}`)).status).to.equal(204);
      expect((await attach(made.code)).status).to.equal(404);
    });

    it('are listed as a bare array: by ids, codes, scope and filters, a page at a time', async () => {
      const { key } = await api.otherTenant();
      for (const [code, scope] of [
        ['a', 'INTERNAL'],
        ['b', 'EXTERNAL'],
        ['c', 'INTERNAL'],
      ])
        await send('POST', '/taxes/rates', rate({ code, scope }), key);
      const codes = async (query: string) => {
        const { body } = await send('GET', `/taxes/rates?sort=code&order=asc&${query}`, undefined, key);
        return body.map((one) => one.code);
      };
      expect(await codes('')).to.deep.equal(['a', 'b', 'c']);
      expect(await codes('taxrate_codes=a,c,z')).to.deep.equal(['a', 'c']);
      expect(await codes('scope=external')).to.deep.equal(['b']);
      expect(await codes('limit=1&offset=1')).to.deep.equal(['b']);
      const { id } = (await send('GET', '/taxes/rates?taxrate_codes=b', undefined, key)).body[0]!;
      expect(await codes(`taxrate_ids=${id}`)).to.deep.equal(['b']);
      expect((await send('GET', '/taxes/rates?expand=plans', undefined, key)).status).to.equal(400);
    });
  });

  describe('associations', () => {
    it('200 answers every key of the contract with its rate, and it is read again', async () => {
      const made = await created('/taxes/rates', rate());
      const answer = await attach(made.code, {
        currency: 'EUR',
        metadata: { a: 'b' },
        end_date: '2027-01-01T00:00:00Z',
      });
      expect(answer.status, answer.text).to.equal(200);
      const { id, created_by: _by, updated_by: _too, ...rest } = answer.body;
      expect(id).to.match(/^ta_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(rest).to.deep.equal({
        ...api.scope,
        tax_rate_id: made.id,
        tax_rate: made,
        entity_type: 'customer',
        entity_id: customer.id,
        priority: 100,
        auto_apply: true,
        currency: 'eur',
        start_date: '2026-03-15T12:00:00Z',
        end_date: '2027-01-01T00:00:00Z',
        metadata: { a: 'b' },
        status: 'published',
        created_at: '2026-03-15T12:00:00Z',
        updated_at: '2026-03-15T12:00:00Z',
      });
      expect((await send('GET', `/taxes/associations/${id}`)).body).to.deep.equal(answer.body);
      const twice = await attach(made.code, {
        external_customer_id: null,
        entity_type: 'customer',
        entity_id: customer.id,
        currency: 'eur',
      });
      expect(twice.status).to.equal(409);
      expect((await attach(made.code, { currency: 'usd' })).status).to.equal(200);
    });

    it('one that ends leaves room for another from then on, and comes not back into its time', async () => {
      const { code } = await created('/taxes/rates', rate());
      const first = await attach(code);
      const until = '2026-03-20T00:00:00Z';
      expect((await attach(code, { start_date: until })).status, 'the first is open').to.equal(409);
      const change = (end_date: string | null) => send('PUT', `/taxes/associations/${first.body.id}`, { end_date });
      expect((await change(until)).status).to.equal(200);
      expect((await attach(code, { start_date: '2026-03-19T00:00:00Z' })).status).to.equal(409);
      const [one, other] = await Promise.all([
        attach(code, { start_date: until }),
        attach(code, { start_date: until }),
      ]);
      expect([one.status, other.status].sort()).to.deep.equal([200, 409]);
      expect((await change(null)).status, 'another is there from then on').to.equal(409);
      expect((await change('2026-03-19T00:00:00Z')).status).to.equal(200);
    });

    it('of the tenant, without its id or with it; of a subscription and an invoice', async () => {
      const { code } = await created('/taxes/rates', rate());
      const nobody = { external_customer_id: undefined };
      const tenant = await attach(code, { ...nobody, entity_type: 'TENANT' });
      expect(tenant.body.entity_id).to.equal(api.scope.tenant_id);
      const plan = await created('/plans', { name: 'Pro' });
      await created('/prices', {
        entity_type: 'PLAN',
        entity_id: plan.id,
        type: 'FIXED',
        billing_model: 'FLAT_FEE',
        amount: '10',
        currency: 'usd',
        billing_period: 'MONTHLY',
        invoice_cadence: 'ADVANCE',
      });
      const terms = { plan_id: plan.id, currency: 'usd', billing_period: 'MONTHLY', start_date: NOW };
      const subscription = await created('/subscriptions', { customer_id: customer.id, ...terms });
      const invoice = await written();
      for (const [entity_type, entity_id] of [
        ['subscription', subscription.id],
        ['invoice', invoice.id],
      ])
        expect((await attach(code, { ...nobody, entity_type, entity_id })).body).to.include({ entity_type, entity_id });
    });

    const written = (fields: Record<string, unknown> = {}) =>
      created('/invoices', {
        customer_id: customer.id,
        currency: 'usd',
        subtotal: '100',
        total: '100',
        amount_due: '100',
        ...fields,
      });
    const attachTo = (invoice: Invoice, code: string) =>
      attach(code, { external_customer_id: undefined, entity_type: 'invoice', entity_id: invoice.id });

    it('of an invoice alone while it is a draft: what is final is not taxed any more', async () => {
      const { code } = await created('/taxes/rates', rate());
      const final = await written({ invoice_status: 'FINALIZED' });
      expect(refused(await attachTo(final, code))).to.deep.equal([400, 'entity_id']);
      expect((await send('GET', `/invoices/${final.id}`)).body.total).to.equal(final.total);
    });

    it('of an invoice count whatever period it is of', async () => {
      const { code } = await created('/taxes/rates', rate());
      const past = {
        billing_reason: 'SUBSCRIPTION_CYCLE',
        period_start: '2026-01-01T00:00:00Z',
        period_end: '2026-02-01T00:00:00Z',
      };
      const stated = await written({ ...past, tax_rates: [code], invoice_status: 'FINALIZED' });
      const drafted = await written({ ...past, tax_rates: [code] });
      const attached = await written(past);
      await attachTo(attached, code);
      for (const { id } of [drafted, attached])
        expect((await send('POST', `/invoices/${id}/finalize`)).status).to.equal(200);
      for (const { id } of [stated, drafted, attached])
        expect((await send('GET', `/invoices/${id}`)).body).to.include({ total_tax: '19', total: '119' });
    });

    const theirs = 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X';
    const wrong: [string, Record<string, unknown>, number, string?][] = [
      ['nothing that is taxed', { external_customer_id: null }, 400, 'entity_type'],
      ['no id', { external_customer_id: null, entity_type: 'subscription' }, 400, 'entity_id'],
      ['an id that is not the customer', { entity_id: theirs }, 400, 'entity_id'],
      ['a customer as a subscription', { entity_type: 'subscription' }, 400, 'external_customer_id'],
      ['an unknown kind', { entity_type: 'plan' }, 400, 'entity_type'],
      ['an unknown external id', { external_customer_id: 'nobody' }, 404, 'external_customer_id'],
      ['an unknown id', { external_customer_id: null, entity_type: 'customer', entity_id: theirs }, 404, 'entity_id'],
      [
        'another tenant',
        { external_customer_id: null, entity_type: 'tenant', entity_id: 'tenant_x' },
        404,
        'entity_id',
      ],
      ['an unknown rate', { tax_rate_code: 'none' }, 404, 'tax_rate_code'],
      ['a negative priority', { priority: -1 }, 400, 'priority'],
      ['a currency that is none', { currency: 'zzz' }, 400, 'currency'],
      ['an end at its start', { start_date: NOW, end_date: NOW }, 400, 'end_date'],
    ];
    for (const [why, fields, status, field] of wrong)
      it(`${status} for ${why}`, async () => {
        const { code } = await created('/taxes/rates', rate());
        expect(refused(await attach(code, fields))).to.deep.equal([status, field]);
      });

    it('PUT changes what is given and checks the rest; DELETE answers it archived', async () => {
      const { code } = await created('/taxes/rates', rate());
      const made = (await attach(code)).body;
      const put = (body: unknown) => send('PUT', `/taxes/associations/${made.id}`, body);
      const changes = { priority: 0, auto_apply: false, end_date: '2026-05-01T00:00:00Z', metadata: { c: 'd' } };
      expect((await put(changes)).body).to.deep.equal({ ...made, ...changes });
      expect(refused(await put({ start_date: '2026-06-01T00:00:00Z' }))).to.deep.equal([400, 'end_date']);
      expect(refused(await put({ priority: -1 }))).to.deep.equal([400, 'priority']);
      expect((await put({ end_date: null })).body.end_date).to.equal(null);
      const gone = await send('DELETE', `/taxes/associations/${made.id}`);
      expect(gone.status).to.equal(200);
      expect(gone.body).to.include({ id: made.id, status: 'archived' });
      expect((await put({ priority: 1 })).status).to.equal(400);
      expect((await attach(code)).status).to.equal(200);
    });

    it('are listed by rate, by what is taxed, by currency; and 404 and 400 as when they are made', async () => {
      const other = await created('/customers', { external_id: 'other' });
      const one = await created('/taxes/rates', rate());
      const two = await created('/taxes/rates', rate());
      const made = (await attach(one.code, { external_customer_id: 'other', currency: 'usd', auto_apply: false })).body;
      await attach(two.code, { external_customer_id: 'other' });
      const list = async (query: string) => send('GET', `/taxes/associations?${query}`);
      const rates = async (query: string) =>
        (await list(`sort=created_at&order=asc&${query}`)).body.items.map((item) => item.tax_rate_id);
      expect(await rates('external_customer_id=other')).to.have.members([one.id, two.id]);
      expect(await rates(`entity_type=customer&entity_id=${other.id}&currency=USD`)).to.deep.equal([one.id]);
      expect(await rates(`external_customer_id=other&auto_apply=true`)).to.deep.equal([two.id]);
      expect(await rates(`tax_rate_id=${one.id}`)).to.deep.equal([one.id]);
      expect(await rates(`tax_rate_ids=${one.id},${two.id}`)).to.have.members([one.id, two.id]);
      const { body } = await list(`tax_association_ids=${made.id}&expand=tax_rate`);
      expect(body.items).to.deep.equal([made]);
      expect((await list(`tax_association_ids=${made.id}`)).body.items[0]!.tax_rate).to.equal(null);
      expect((await list('external_customer_id=nobody')).status).to.equal(404);
      expect(refused(await list(`external_customer_id=other&entity_id=${customer.id}`))).to.deep.equal([
        400,
        'entity_id',
      ]);
    });
  });

  it('of an invoice that is final at once are those of its answer, also where credits leave nothing of a line to be taxed', async () => {
    const { id: customer_id } = await created('/customers', { external_id: 'thrifty' });
    const config = { allowed_price_types: ['ALL'] };
    const purse = { customer_id, currency: 'usd', initial_credits_to_load: '0.01', config };
    await created('/wallets', purse, 200);
    const { code } = await created('/taxes/rates', rate({ percentage_value: '33.3333' }));
    const line_items = ['0.01', '90', '0.01'].map((amount) => ({ display_name: 'work', amount, quantity: '1' }));
    const amounts = { amount_due: '90.02', total: '90.02', subtotal: '90.02' };
    const wanted = { customer_id, currency: 'usd', ...amounts, line_items, tax_rates: [code] };
    const made = await created('/invoices', { ...wanted, invoice_status: 'FINALIZED' });
    const stored = (await send('GET', `/invoices/${made.id}`)).body;
    const taxed = ({ line_items: lines }: Invoice) => lines.map(({ tax_amount }) => Number(tax_amount));
    expect(Number(made.total_tax)).to.equal(30);
    expect([taxed(made), taxed(stored)]).to.deep.equal([
      [0, 30, 0],
      [0, 30, 0],
    ]);
    expect(stored.line_items).to.deep.equal(made.line_items);
  });

  it('401, 403, and 404 for what another tenant has', async () => {
    const made = await created('/taxes/rates', rate());
    const association = (await attach(made.code)).body;
    expect((await send('GET', `/taxes/rates/${made.id}`, undefined, null)).status).to.equal(401);
    const reader = await api.keyWithRoles(['all_reader']);
    expect((await send('POST', '/taxes/rates', rate(), reader)).status).to.equal(403);
    const { key } = await api.otherTenant();
    await send('POST', '/taxes/rates', rate({ code: 'theirs' }), key);
    const asks: [string, string, unknown?][] = [
      ['GET', `/taxes/rates/${made.id}`],
      ['PUT', `/taxes/rates/${made.id}`, { name: 'Theirs' }],
      ['DELETE', `/taxes/rates/${made.id}`],
      ['GET', `/taxes/associations/${association.id}`],
      ['PUT', `/taxes/associations/${association.id}`, { priority: 1 }],
      ['DELETE', `/taxes/associations/${association.id}`],
      ['POST', '/taxes/associations', { tax_rate_code: 'theirs', external_customer_id: 'acme' }],
      ['POST', '/taxes/associations', { tax_rate_code: 'theirs', entity_type: 'customer', entity_id: customer.id }],
      ['POST', '/taxes/associations', { tax_rate_code: made.code, entity_type: 'tenant' }],
    ];
    for (const [method, path, body] of asks)
      expect((await send(method, path, body, key)).status, `${method} ${path}`).to.equal(404);
    expect((await send('GET', `/taxes/associations/${association.id}`)).body).to.deep.equal(association);
  });
});
