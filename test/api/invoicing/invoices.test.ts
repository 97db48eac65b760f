import { expect } from 'chai';
import type { Customer, Invoice } from '../../support/answers.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const NOW = '2026-03-15T12:00:00.000Z';

describe('/invoices', () => {
  let api: TestApi;
  let customer: Customer;

  before(async () => {
    api = await startTestApi({ now: NOW });
    customer = await make('/customers', { external_id: 'acme', name: 'Acme' });
  });
  after(() => api.stop());

  const make = async <Path extends string>(path: Path, body: unknown) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const body = (fields: Record<string, unknown> = {}) => ({
    customer_id: customer.id,
    currency: 'usd',
    amount_due: '30',
    total: '30',
    subtotal: '30',
    line_items: [
      { display_name: 'Set-up', amount: '10.00', quantity: '1' },
      { display_name: 'Training', amount: '20', quantity: '2' },
    ],
    ...fields,
  });
  const post = (fields: Record<string, unknown> = {}) => api.request('POST', '/invoices', { body: body(fields) });
  const create = (fields: Record<string, unknown> = {}) => make('/invoices', body(fields));
  const of = (amount: string) => ({ amount_due: amount, total: amount, subtotal: amount, line_items: undefined });
  const get = async (id: string) => (await api.request('GET', `/invoices/${id}`)).body;
  const finalize = (id: string) => api.request('POST', `/invoices/${id}/finalize`);
  const createFinal = async (fields: Record<string, unknown> = {}) => {
    const { id } = await create(fields);
    const answer = await finalize(id);
    expect(answer.status, answer.text).to.equal(200);
    return get(id);
  };
  const pay = (id: string, request: Record<string, unknown>) =>
    api.request('PUT', `/invoices/${id}/payment`, { body: request });
  const search = async (filter: Record<string, unknown>) => {
    const answer = await api.request('POST', '/invoices/search', { body: filter });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.items.map(({ id }) => id);
  };
  const subscribe = async (price: Record<string, unknown> = {}, terms: Record<string, unknown> = {}) => {
    const plan = await make('/plans', { name: 'Pro' });
    await make('/prices', {
      entity_type: 'PLAN',
      entity_id: plan.id,
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      billing_period: 'MONTHLY',
      billing_cadence: 'RECURRING',
      invoice_cadence: 'ADVANCE',
      price_unit_type: 'FIAT',
      currency: 'usd',
      amount: '40',
      ...price,
    });
    const request = {
      customer_id: customer.id,
      plan_id: plan.id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      ...terms,
    };
    return make('/subscriptions', request);
  };

  describe('201', () => {
    it('a draft of what was given', async () => {
      const invoice = await create({ description: 'Start', metadata: { po: '7' }, due_date: '2026-04-01T00:00:00Z' });
      expect(invoice.id).to.match(/^inv_[0-9A-HJKMNP-TV-Z]{26}$/);
      expect(invoice).to.include({
        customer_id: customer.id,
        invoice_type: 'ONE_OFF',
        invoice_status: 'DRAFT',
        payment_status: 'PENDING',
        billing_reason: 'MANUAL',
        currency: 'usd',
        subtotal: '30',
        total: '30',
        amount_due: '30',
        amount_paid: '0',
        amount_remaining: '30',
        total_tax: '0',
        invoice_number: null,
        due_date: '2026-04-01T00:00:00Z',
        version: 1,
      });
      expect(invoice.metadata).to.deep.equal({ po: '7' });
      expect(invoice.customer!.id).to.equal(customer.id);
      expect(invoice.line_items.map((line) => [line.display_name, line.amount, line.currency])).to.deep.equal([
        ['Set-up', '10', 'usd'],
        ['Training', '20', 'usd'],
      ]);
    });

    it('without lines the whole amount is one line', async () => {
      const { line_items } = await create({ ...of('12.34'), description: 'Consulting' });
      expect(line_items).to.have.length(1);
      expect(line_items[0]).to.include({ amount: '12.34', quantity: '1', display_name: 'Consulting' });
    });

    it('finalized at once when asked', async () => {
      const invoice = await create({ invoice_status: 'FINALIZED' });
      expect(invoice.invoice_status).to.equal('FINALIZED');
      expect(invoice.invoice_number).to.match(/^INV-202603-\d{5}$/);
    });

    it('not at all when it cannot be finalized', async () => {
      // Computed before the period that it names is over.
      const subscription = await subscribe();
      const early = {
        invoice_type: 'SUBSCRIPTION',
        billing_reason: 'SUBSCRIPTION_CYCLE',
        subscription_id: subscription.id,
        billing_period: 'MONTHLY',
        line_items: [
          { display_name: 'Pro', price_id: subscription.line_items[0]!.price_id, amount: '30', quantity: '1' },
        ],
        period_start: '2026-03-02T00:00:00Z',
        period_end: '2026-04-02T00:00:00Z',
        idempotency_key: 'too-early',
      };
      const refused = await post({ ...early, invoice_status: 'FINALIZED' });
      expect([refused.status, refused.body.code], refused.text).to.deep.equal([400, 'invalid_operation']);
      await create({ ...early, invoice_status: 'DRAFT' });
    });

    it('with what was paid already', async () => {
      const paid = await create({ payment_status: 'SUCCEEDED', invoice_status: 'FINALIZED' });
      expect(paid).to.include({ amount_paid: '30', amount_remaining: '0', payment_status: 'SUCCEEDED' });
      const partly = await create({ amount_paid: '10' });
      expect(partly).to.include({ amount_paid: '10', amount_remaining: '20', payment_status: 'PENDING' });
    });

    it('a credit may be negative', async () => {
      const credit = await create({ invoice_type: 'CREDIT', ...of('-5') });
      expect(credit).to.include({ total: '-5', amount_due: '-5', amount_remaining: '0', payment_status: 'PENDING' });
    });

    it('a credit that is final is in the wallet of its customer, once, and nobody asks for it', async () => {
      const { id: customer_id } = (await api.request('POST', '/customers', { body: { external_id: 'credited' } })).body;
      const { id } = await create({ customer_id, invoice_type: 'CREDIT', ...of('-5') });
      const wallets = async () => (await api.request('GET', `/customers/${customer_id}/wallets`)).body;
      expect(await wallets()).to.deep.equal([]);
      const final = await api.request('POST', `/invoices/${id}/finalize`);
      expect(final.status, final.text).to.equal(200);
      const credit = (await api.request('GET', `/invoices/${id}`)).body;
      expect(credit).to.include({
        amount_due: '-5',
        amount_paid: '0',
        amount_remaining: '0',
        payment_status: 'SUCCEEDED',
        due_date: null,
      });
      expect((await wallets()).map(({ balance, currency }) => [balance, currency])).to.deep.equal([['5', 'usd']]);
      const refused = await api.request('POST', `/invoices/${id}/void`);
      expect([refused.status, refused.body.code], refused.text).to.deep.equal([400, 'invalid_operation']);
    });

    it('what was paid before an invoice became final is held against what is due then', async () => {
      const rate = { name: 'VAT', code: 'vat', percentage_value: '10' };
      expect((await api.request('POST', '/taxes/rates', { body: rate })).status).to.equal(201);
      const coupon = { name: 'All', coupon_code: 'ALL', type: 'percentage', percentage_off: '100', cadence: 'forever' };
      expect((await api.request('POST', '/coupons', { body: coupon })).status).to.equal(201);
      for (const [stated, expected] of [
        [{ tax_rates: ['vat'], amount_paid: '10' }, ['PENDING', '33', '23', null]],
        [{ coupons: ['ALL'], amount_paid: '0' }, ['SUCCEEDED', '0', '0', null]],
        [{ amount_paid: '35', payment_status: 'OVERPAID', invoice_status: 'FINALIZED' }, ['OVERPAID', '30', '0', '5']],
      ] as const) {
        const { id, invoice_status } = await create(stated);
        if (invoice_status === 'DRAFT') await api.request('POST', `/invoices/${id}/finalize`);
        const { payment_status, amount_due, amount_remaining, overpaid_amount } = (
          await api.request('GET', `/invoices/${id}`)
        ).body;
        expect([payment_status, amount_due, amount_remaining, overpaid_amount]).to.deep.equal(expected);
      }
      const paid = {
        ...of('0'),
        line_items: [],
        amount_paid: '5',
        payment_status: 'OVERPAID',
        invoice_status: 'FINALIZED',
      };
      expect(await create(paid)).to.include({ payment_status: 'OVERPAID', overpaid_amount: '5', amount_paid: '5' });
    });

    it('a number that an invoice of another format has is passed over', async () => {
      const setting = (value: unknown) => api.request('PUT', '/settings/invoice_config', { body: { value } });
      const before = (await api.request('GET', '/settings/invoice_config')).body.value;
      await setting({ prefix: 'RE', separator: '', format: 'YYYY', suffix_length: 6, start_sequence: 31501 });
      const first = [await create({ invoice_status: 'FINALIZED' }), await create({ invoice_status: 'FINALIZED' })];
      expect(first.map(({ invoice_number }) => invoice_number)).to.deep.equal(['RE2026031501', 'RE2026031502']);
      await setting({ format: 'YYYYMMDD', suffix_length: 2, start_sequence: 1 });
      const others = [await create({ invoice_status: 'FINALIZED' }), await create({ invoice_status: 'FINALIZED' })];
      expect(others.map(({ invoice_number }) => invoice_number)).to.deep.equal(['RE2026031503', 'RE2026031504']);
      await setting(before);
    });
  });

  it('computes the amounts that are not sent: of the lines, or of the one amount that is', async () => {
    const unsent = { amount_due: undefined, total: undefined, subtotal: undefined };
    const lines = [
      { amount: '12.5', quantity: '1' },
      { amount: '7.25', quantity: '1' },
    ];
    const sums = { subtotal: '19.75', total: '19.75', amount_due: '19.75' };
    expect(await create({ ...unsent, line_items: lines })).to.include(sums);
    for (const field of ['amount_due', 'total', 'subtotal']) {
      const invoice = await create({ ...unsent, line_items: undefined, [field]: '19.75' });
      expect(invoice, field).to.include(sums);
      expect(invoice.line_items, field).to.have.length(1);
    }
  });

  describe('400', () => {
    const refused: [string, Record<string, unknown>, RegExp, string?][] = [
      ['lines that do not sum to the amount due', { amount_due: '31' }, /amount_due/],
      ['a subtotal that is another', { subtotal: '29' }, /subtotal/],
      ['a draft that is paid', { payment_status: 'SUCCEEDED' }, /payment_status/],
      ['a draft that is overpaid', { payment_status: 'OVERPAID', amount_paid: '40' }, /payment_status/],
      ['a total that is another', { total: '29' }, /total/],
      ['a negative line', { ...of('-1'), line_items: [{ amount: '-1', quantity: '1' }] }, /line_items\[0\]\.amount/],
      ['a negative quantity', { ...of('1'), line_items: [{ amount: '1', quantity: '-1' }] }, /quantity/],
      ['parts of a cent', of('0.001'), /amount/],
      ['a currency that is none', { currency: 'zzz' }, /currency/],
      ['a period that ends before it starts', { period_start: NOW, period_end: '2026-03-01T00:00:00Z' }, /period_end/],
      ['a subscription invoice without a subscription', { invoice_type: 'SUBSCRIPTION' }, /subscription_id/],
      ['an amount that is no decimal', { amount_due: 'ten' }, /amount_due/],
      ['more paid than due, and still pending', { amount_paid: '31' }, /amount/],
      ['a status of a running payment', { payment_status: 'REFUNDED' }, /payment_status/],
      ['voided from the start', { invoice_status: 'VOIDED' }, /invoice_status/],
      ['a number of its own', { invoice_number: 'X-1' }, /invoice_number/, 'invalid_operation'],
      ['a coupon of a credit', { invoice_type: 'CREDIT', coupons: ['coupon_1'] }, /coupons/, 'invalid_operation'],
      ['a tax of a credit', { invoice_type: 'CREDIT', tax_rates: ['tax_1'] }, /tax_rates/, 'invalid_operation'],
      ['a coupon of no line', { line_item_coupons: [{ line_item_id: '7', coupon_id: 'c' }] }, /line_item_coupons\[0\]/],
      [
        'a price type that is none',
        { line_items: [{ amount: '30', quantity: '1', price_type: '=1+1' }] },
        /line_items\[0\]\.price_type/,
      ],
      ['prepaid credits', { total_prepaid_applied: '5' }, /total_prepaid_applied: is computed/],
      [
        'prepaid credits of a line',
        { line_items: [{ amount: '30', quantity: '1', prepaid_credits_applied: '5' }] },
        /line_items\[0\]\.prepaid_credits_applied: is computed/,
      ],
      ['no amount at all', { ...of('1'), amount_due: null, total: null, subtotal: null }, /amount_due: is required/],
    ];
    for (const [name, fields, message, code = 'validation_error'] of refused) {
      it(name, async () => {
        const answer = await post(fields);
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.code).to.equal(code);
        expect(answer.body.message).to.match(message);
      });
    }

    const noneOf: [field: string, of: Record<string, unknown>][] = [
      ['price_id', {}],
      ['meter_id', {}],
      ['plan_id', {}],
      ['subscription_id', {}],
      ['subscription_line_item_id', {}],
      ['entity_id', { entity_type: 'PLAN' }],
      ['entity_id', { entity_type: 'subscription' }],
      ['entity_id', { entity_type: 'Addon' }],
    ];
    for (const [field, of_what] of noneOf) {
      it(`a line with the ${field} of nothing, ${JSON.stringify(of_what)}`, async () => {
        const good = { amount: '10', quantity: '1' };
        const answer = await post({
          line_items: [good, { amount: '20', quantity: '1', ...of_what, [field]: 'nobody' }],
        });
        expect([answer.status, answer.body.details?.field]).to.deep.equal([400, `line_items[1].${field}`]);
      });
    }

    const namingNothing: [what: string, of: Record<string, unknown>][] = [
      ['an entity_id and no entity_type', { entity_id: 'nobody' }],
      ['an entity_id that nobody can look for', { entity_id: 'nobody', entity_type: 'price' }],
      ['an entity_type that nobody knows', { entity_type: 'zebra' }],
      ['a plan_id that is said to be no plan', { plan_id: 'a plan', entity_type: 'subscription' }],
    ];
    for (const [what, of_what] of namingNothing) {
      it(`a line with ${what}`, async () => {
        const good = { amount: '10', quantity: '1' };
        const answer = await post({ line_items: [good, { amount: '20', quantity: '1', ...of_what }] });
        expect([answer.status, answer.body.details?.field]).to.deep.equal([400, 'line_items[1].entity_type']);
      });
    }

    it('a line with an entity_id of nothing beside the plan_id of a plan', async () => {
      const { plan_id } = await subscribe();
      const answer = await post({ line_items: [{ amount: '30', quantity: '1', plan_id, entity_id: 'nobody' }] });
      expect([answer.status, answer.body.details?.field]).to.deep.equal([400, 'line_items[0].entity_id']);
    });

    it('not a line that names its plan, its subscription or its add-on, in either way', async () => {
      const addon = await make('/addons', { name: 'More', lookup_key: 'more', type: 'multiple_instance' });
      const { id, plan_id } = await subscribe();
      const line = (fields: Record<string, unknown>) => ({ amount: '10', quantity: '1', ...fields });
      const line_items = [
        line({ entity_id: addon.id, entity_type: 'ADDON' }),
        line({ entity_id: id, entity_type: 'subscription' }),
        line({ plan_id }),
      ];
      const { status, text } = await post({ line_items });
      expect(status, text).to.equal(201);
    });

    it("a line with a plan of another tenant, or a subscription of somebody else's", async () => {
      const theirs = await api.otherTenant();
      const { body: plan } = await api.request('POST', '/plans', { key: theirs.key, body: { name: 'Theirs' } });
      const line = (fields: Record<string, unknown>) => ({ line_items: [{ amount: '30', quantity: '1', ...fields }] });
      expect((await post(line({ plan_id: plan.id }))).body.details).to.deep.equal({ field: 'line_items[0].plan_id' });
      const other = await make('/customers', { external_id: 'outsider' });
      const { id } = await subscribe();
      const refused = await post({ customer_id: other.id, ...line({ subscription_id: id }) });
      expect(refused.body.details).to.deep.equal({ field: 'line_items[0].subscription_id' });
      expect((await post(line({ subscription_id: id }))).status).to.equal(201);
    });

    it("a subscription of somebody else's", async () => {
      const other = await make('/customers', { external_id: 'stranger' });
      const { id } = await subscribe();
      expect((await post({ customer_id: other.id, subscription_id: id })).status).to.equal(400);
    });
  });

  it('401 without a key', async () => {
    expect((await api.request('GET', '/invoices', { key: null })).status).to.equal(401);
  });

  it('404 for no customer, and for the invoice of another tenant', async () => {
    expect((await post({ customer_id: 'cust_no' })).status).to.equal(404);
    const { id } = await create();
    const { key } = await api.otherTenant();
    expect((await api.request('GET', `/invoices/${id}`, { key })).status).to.equal(404);
    expect((await api.request('PUT', `/invoices/${id}`, { key, body: { metadata: {} } })).status).to.equal(404);
    for (const verb of ['finalize', 'void', 'compute']) {
      expect((await api.request('POST', `/invoices/${id}/${verb}`, { key })).status, verb).to.equal(404);
    }
    expect(
      (await api.request('PUT', `/invoices/${id}/payment`, { key, body: { payment_status: 'FAILED' } })).status,
    ).to.equal(404);
    expect((await api.request('GET', '/invoices', { key })).body.items).to.deep.equal([]);
  });

  it('409 for one idempotency key twice, also at once; a void invoice gives it back', async () => {
    const [first, second] = await Promise.all([1, 2].map(() => post({ idempotency_key: 'order-7' })));
    expect([first!.status, second!.status].sort()).to.deep.equal([201, 409]);
    const { id } = [first!, second!].find(({ status }) => status === 201)!.body;
    expect((await api.request('POST', `/invoices/${id}/void`)).status).to.equal(200);
    expect((await post({ idempotency_key: 'order-7' })).status).to.equal(201);
  });

  describe('POST /invoices/:id/finalize', () => {
    it('numbers are gapless and unique, also at once', async () => {
      const drafts = await Promise.all([1, 2, 3, 4, 5].map(() => create()));
      const answers = await Promise.all(drafts.map(({ id }) => finalize(id)));
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200]);
      const numbers = await Promise.all(
        drafts.map(async ({ id }) => Number((await get(id)).invoice_number!.slice(-5))),
      );
      const least = Math.min(...numbers);
      expect(numbers.sort((a, b) => a - b)).to.deep.equal([0, 1, 2, 3, 4].map((n) => least + n));
    });

    it('400 when it is not a draft', async () => {
      const { id } = await createFinal();
      const again = await finalize(id);
      expect([again.status, again.body.code]).to.deep.equal([400, 'invalid_operation']);
    });

    it('an invoice of nothing is paid', async () => {
      const invoice = await createFinal({ ...of('0'), line_items: [] });
      expect(invoice).to.include({ payment_status: 'SUCCEEDED', invoice_status: 'FINALIZED', total: '0' });
    });
  });

  describe('PUT /invoices/:id', () => {
    const put = (id: string, request: unknown) => api.request('PUT', `/invoices/${id}`, { body: request });

    it('changes dates, address and metadata, and no amount', async () => {
      const { id } = await createFinal();
      const changes = {
        due_date: '2026-05-01T00:00:00Z',
        issue_date: '2026-03-01T00:00:00Z',
        invoice_pdf_url: 'https://example.com/1.pdf',
        metadata: { a: 'b' },
      };
      const answer = await put(id, { ...changes, total: '1' });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.deep.include({ ...changes, total: '30' });
    });

    it('400 for an address that is a program', async () => {
      const { id } = await create();
      for (const invoice_pdf_url of ['javascript:alert(1)', 'data:text/html,x', 'nowhere']) {
        const answer = await put(id, { invoice_pdf_url });
        expect([answer.status, answer.body.details?.field]).to.deep.equal([400, 'invoice_pdf_url']);
      }
    });

    it('400 for a due date in the past, and for an invoice that is void', async () => {
      const { id } = await create();
      expect((await put(id, { due_date: '2026-03-15T11:59:59Z' })).status).to.equal(400);
      await api.request('POST', `/invoices/${id}/void`);
      expect((await put(id, { metadata: {} })).status).to.equal(400);
    });
  });

  describe('PUT /invoices/:id/payment', () => {
    const transitions: [string[], string, boolean][] = [
      [[], 'PENDING', true],
      [[], 'SUCCEEDED', true],
      [[], 'FAILED', true],
      [[], 'REFUNDED', false],
      [['FAILED'], 'PENDING', true],
      [['FAILED'], 'SUCCEEDED', true],
      [['SUCCEEDED'], 'SUCCEEDED', true],
      [['SUCCEEDED'], 'PENDING', false],
      [['SUCCEEDED'], 'FAILED', false],
    ];
    for (const [before, to, allowed] of transitions) {
      it(`from ${before[0] ?? 'PENDING'} to ${to}: ${allowed ? 'allowed' : '400'}`, async () => {
        const { id } = await createFinal();
        for (const status of before) expect((await pay(id, { payment_status: status })).status).to.equal(200);
        const answer = await pay(id, { payment_status: to });
        expect(answer.status, answer.text).to.equal(allowed ? 200 : 400);
        if (allowed) expect(answer.body.payment_status).to.equal(to);
      });
    }

    it('what is paid and what remains make what is due', async () => {
      const { id } = await createFinal();
      const partly = (await pay(id, { payment_status: 'PENDING', amount: '12.50' })).body;
      expect(partly).to.include({ amount_paid: '12.5', amount_remaining: '17.5', paid_at: null });
      const all = (await pay(id, { payment_status: 'paid' })).body;
      expect(all).to.include({ payment_status: 'SUCCEEDED', amount_paid: '30', amount_remaining: '0' });
      expect(all.paid_at).to.equal('2026-03-15T12:00:00Z');
      const over = (await pay(id, { payment_status: 'OVERPAID', amount: '40' })).body;
      expect(over).to.include({ amount_paid: '40', amount_remaining: '0', overpaid_amount: '10' });
      expect((await pay(id, { payment_status: 'SUCCEEDED' })).status).to.equal(400);
    });

    it('400 for amounts that contradict the status, and for a draft', async () => {
      const { id } = await createFinal();
      for (const request of [
        { payment_status: 'SUCCEEDED', amount: '29' },
        { payment_status: 'SUCCEEDED', amount: '31' },
        { payment_status: 'OVERPAID', amount: '30' },
        { payment_status: 'OVERPAID' },
        { payment_status: 'PENDING', amount: '30' },
        { payment_status: 'PENDING', amount: '-1' },
        { payment_status: 'PENDING', amount: '0.001' },
      ]) {
        expect((await pay(id, request)).status, JSON.stringify(request)).to.equal(400);
      }
      const draft = await create();
      expect((await pay(draft.id, { payment_status: 'SUCCEEDED' })).body.code).to.equal('invalid_operation');
    });
  });

  describe('POST /invoices/:id/void', () => {
    const voidIt = (id: string, request?: unknown) => api.request('POST', `/invoices/${id}/void`, { body: request });

    it('keeps the number and says when', async () => {
      const { id, invoice_number } = await createFinal({ metadata: { a: '1' } });
      const answer = await voidIt(id, { metadata: { why: 'typo' } });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.message).to.be.a('string');
      const voided = await get(id);
      expect(voided).to.include({ invoice_status: 'VOIDED', invoice_number, voided_at: '2026-03-15T12:00:00Z' });
      expect(voided.metadata).to.deep.equal({ a: '1', why: 'typo' });
      expect((await voidIt(id)).body.code).to.equal('invalid_operation');
    });

    it('gives what was paid to the prepaid wallet, once', async () => {
      const { id } = await createFinal();
      await pay(id, { payment_status: 'SUCCEEDED' });
      const answers = await Promise.all([voidIt(id), voidIt(id)]);
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, 400]);
      expect(await get(id)).to.include({ invoice_status: 'VOIDED', payment_status: 'REFUNDED', refunded_amount: '30' });
      const [wallet] = (await api.request('GET', `/customers/${customer.id}/wallets`)).body;
      expect(wallet).to.include({ wallet_type: 'PRE_PAID', balance: '30' });
      const { items } = (await api.request('GET', `/wallets/${wallet!.id}/transactions`)).body;
      expect(items[0]).to.include({ transaction_reason: 'INVOICE_VOID_REFUND', reference_id: id, amount: '30' });
    });
  });

  describe('compute and preview', () => {
    it('202 with ids, or 200 with the invoice when sync', async () => {
      const { id } = await create();
      const later = await api.request('POST', `/invoices/${id}/compute`);
      expect(later.status, later.text).to.equal(202);
      expect(Object.keys(later.body).sort()).to.deep.equal(['message', 'run_id', 'workflow_id']);
      const now = await api.request<{ invoice: Invoice; skipped: boolean }>(
        'POST',
        `/invoices/${id}/compute?sync=true`,
      );
      expect(now.status, now.text).to.equal(200);
      expect(now.body.skipped).to.equal(false);
      expect(now.body.invoice).to.include({ id, total: '30' });
      expect(now.body.invoice.line_items).to.have.length(2);
      const dictated = await api.request('POST', `/invoices/${id}/compute`, { body: { total: '5' } });
      expect(dictated.status).to.equal(400);
      await finalize(id);
      expect((await api.request('POST', `/invoices/${id}/compute`)).status).to.equal(400);
    });

    for (const path of ['/invoices/preview', '/invoices/internal/preview']) {
      it(`${path} stores nothing`, async () => {
        const subscription = await subscribe();
        const before = await search({ subscription_id: subscription.id });
        const answer = await api.request('POST', path, { body: { subscription_id: subscription.id } });
        expect(answer.status, answer.text).to.equal(200);
        // The next period's advance charge; the running one's is invoiced.
        expect(answer.body).to.include({ id: '', subtotal: '40', invoice_number: null });
        expect(await search({ subscription_id: subscription.id })).to.deep.equal(before);
      });
    }

    it('404 for no subscription', async () => {
      expect(
        (await api.request('POST', '/invoices/preview', { body: { subscription_id: 'subs_no' } })).status,
      ).to.equal(404);
    });
  });

  describe('search', () => {
    it('finds by every filter', async () => {
      const other = await make('/customers', { external_id: 'globex' });
      const found = await create({
        customer_id: other.id,
        currency: 'EUR',
        period_start: '2026-01-01T00:00:00Z',
        period_end: '2026-02-01T00:00:00Z',
        metadata: { order: '9' },
      });
      for (const filter of [
        { invoice_ids: [found.id] },
        { customer_id: other.id },
        { external_customer_id: 'globex' },
        { customer_id: other.id, invoice_type: 'one_off', invoice_status: ['draft'], payment_status: ['pending'] },
        { customer_id: other.id, billing_reason: 'MANUAL', currency: 'eur' },
        { customer_id: other.id, amount_due_gt: 29.99, amount_remaining_gt: '29' },
        { customer_id: other.id, period_start_gte: '2026-01-01T00:00:00Z', period_end_lte: '2026-02-01T00:00:00Z' },
        { customer_id: other.id, period_start_lte: '2026-01-01T00:00:00Z', period_end_gte: '2026-02-01T00:00:00Z' },
        { metadata: { order: '9' } },
        {
          filters: [{ field: 'total', operator: 'gt', data_type: 'number', value: { number: 29 } }],
          customer_id: other.id,
        },
      ]) {
        expect(await search(filter), JSON.stringify(filter)).to.deep.equal([found.id]);
      }
      for (const filter of [
        { customer_id: other.id, amount_due_gt: '30' },
        { customer_id: other.id, invoice_status: ['FINALIZED'] },
        { customer_id: other.id, period_start_gte: '2026-01-01T00:00:01Z' },
        { external_customer_id: 'nobody' },
      ]) {
        expect(await search(filter), JSON.stringify(filter)).to.deep.equal([]);
      }
    });

    it('hides skipped invoices unless they are asked for', async () => {
      const { id } = await subscribe({ amount: '0' });
      expect(await search({ subscription_id: id })).to.deep.equal([]);
      expect(await search({ subscription_id: id, invoice_status: ['SKIPPED'] })).to.have.length(1);
    });

    it('expands, and leaves line items out when asked', async () => {
      const { id } = await subscribe();
      const path = `/invoices?subscription_id=${id}&expand=customer,subscription.plan` as const;
      const [full] = (await api.request('GET', path)).body.items!;
      expect(full!.customer!.id).to.equal(customer.id);
      expect(full!.subscription!.plan!.name).to.equal('Pro');
      expect(full!.line_items).to.have.length(1);
      const [bare] = (await api.request('GET', `/invoices?subscription_id=${id}&skip_line_items=true`)).body.items;
      expect(bare).to.include({ line_items: null, customer: null, subscription: null });
      expect((await api.request('GET', '/invoices?expand=moon')).status).to.equal(400);
    });
  });

  it('sums up what a customer was billed and owes, per currency', async () => {
    const own = await make('/customers', { external_id: 'summed' });
    const paid = await createFinal({ customer_id: own.id, ...of('10') });
    await pay(paid.id, { payment_status: 'SUCCEEDED' });
    await createFinal({ customer_id: own.id, ...of('20'), due_date: '2026-03-14T00:00:00Z' });
    await createFinal({ customer_id: own.id, ...of('5'), due_date: '2026-04-14T00:00:00Z' });
    await createFinal({ customer_id: own.id, currency: 'eur', ...of('7') });
    await create({ customer_id: own.id, ...of('99') });
    await createFinal({ customer_id: own.id, invoice_type: 'CREDIT', ...of('-8') });
    const answer = await api.request('GET', `/customers/${own.id}/invoices/summary`);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body).to.include({ customer_id: own.id, default_currency: 'usd' });
    expect(answer.body.summaries[0]).to.deep.equal({
      customer_id: own.id,
      currency: 'usd',
      total_revenue_amount: '35',
      total_unpaid_amount: '25',
      total_overdue_amount: '20',
      total_invoice_count: 4,
      unpaid_invoice_count: 2,
      overdue_invoice_count: 1,
      unpaid_usage_charges: '0',
      unpaid_fixed_charges: '25',
    });
    expect(answer.body.summaries[1]).to.include({ currency: 'eur', total_revenue_amount: '7' });
  });
});
