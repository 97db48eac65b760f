/** A preview of a change is what the change then answers, and writes nothing (docs/rules/invoices.md, "Preview and invoice agree"). */
import { expect } from 'chai';
import type { Invoice } from '../../support/answers.ts';
import { countHeldLocks, listChanged, readTraces, SEQUENCES_WITH_GAPS } from '../../support/traces.ts';
import { fixed, startWorld, summarizeInvoice, usage, type World } from '../../support/world.ts';

/** An answer without what a preview leaves open: ids, numbers, and keys that are made of ids. */
function toOpenText(answer: object): object {
  const text = JSON.stringify(answer, (key, value) => (OPEN.includes(key) ? null : value));
  return JSON.parse(text.replaceAll(/[a-z_]+_[0-9A-Z]{26}/g, ''));
}

const listIds = (answer: unknown) => JSON.stringify(answer).match(/[a-z_]+_[0-9A-Z]{26}/g) ?? [];

const OPEN = ['invoice_number', 'credit_note_number', 'idempotency_key'];

describe('previews of changes', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Pro', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'seat' }),
      usage('calls', '0.01', { display_name: 'calls' }),
    ]);
    const tenth = { name: 'Tenth', type: 'percentage', percentage_off: '10', cadence: 'forever' };
    world.remember('coupon', (await world.post('/coupons', tenth)).id);
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', tax_rate_type: 'percentage', percentage_value: '19' });
    await world.customer('acme');
    await world.post('/taxes/associations', { tax_rate_code: 'vat', external_customer_id: 'acme' });
  });
  after(() => world.stop());

  /** Loads the records that an answer may name. */
  async function loadAll(): Promise<unknown> {
    const tables = [
      'customers',
      'plans',
      'prices',
      'meters',
      'coupons',
      'tax_rates',
      'tax_associations',
      'environments',
    ];
    const others = ['tenants', 'users', 'subscriptions', 'subscription_line_items', 'invoices', 'invoice_line_items'];
    const last = ['coupon_associations', 'taxes_applied', 'coupon_applications', 'secrets'];
    const { postgres } = world.api.services;
    return Promise.all([...tables, ...others, ...last].map((table) => postgres(table).select('id')));
  }

  /** Asks for the preview and then for the change; returns what the change answers. */
  async function compare<Preview extends string, Change extends string>(
    paths: readonly [Preview, Change],
    body: Record<string, unknown>,
  ) {
    const { postgres } = world.api.services;
    const before = await readTraces(postgres);
    const known = listIds(await loadAll());
    const preview = await world.post<object>(paths[0], body);
    const changed = listChanged(before, await readTraces(postgres));
    expect(changed.filter((name) => !SEQUENCES_WITH_GAPS.includes(name))).to.deep.equal([]);
    expect(await countHeldLocks(postgres)).to.equal(0);
    for (const id of listIds(preview)) expect(known, id).to.include(id);
    const made = await world.post<object>(paths[1], body);
    const { final_invoice, next_invoice, ...others } = toOpenText(preview) as Record<string, object | null>;
    expect(others).to.deep.equal(toOpenText(made));
    return { preview, made, final_invoice, next_invoice } as const;
  }

  const subscribing = (fields: object = {}) => ({
    external_customer_id: 'acme',
    plan_id: world.id('plan Pro'),
    currency: 'usd',
    billing_period: 'MONTHLY',
    coupons: [world.id('coupon')],
    ...fields,
  });

  it('a new subscription: its lines and its opening invoice with discount and tax, without ids and a number', async () => {
    const { preview, made, next_invoice } = await compare(['/subscriptions/preview', '/subscriptions'], subscribing());
    await expectNext(next_invoice, (made as Previewed).id);
    // 31 of the next month, less a tenth, and 19 % of it.
    expect((next_invoice as PreviewedInvoice).total).to.equal('33.2');
    const { id, latest_invoice, line_items } = preview as Previewed;
    // 31 less a tenth, and 19 % of 27.9.
    expect([id, latest_invoice!.id, latest_invoice!.invoice_number, latest_invoice!.total]).to.deep.equal([
      '',
      '',
      null,
      '33.2',
    ]);
    expect(line_items.map((line) => line.id)).to.deep.equal(['', '']);
    expect((made as Previewed).latest_invoice!.invoice_number).to.match(/1$/);
    world.remember('subscription acme', (made as Previewed).id);
  });

  /** The next invoice of a preview is the previewed one of the created subscription. */
  async function expectNext(next_invoice: object | null | undefined, subscription_id: string): Promise<void> {
    const own = await world.post('/invoices/preview', { subscription_id });
    const summarize = (invoice: Invoice) => [invoice.billing_reason, invoice.total_tax, summarizeInvoice(invoice)];
    expect(summarize(next_invoice as Invoice)).to.deep.equal(summarize(own));
  }

  it('a new subscription with a trial, a shortened first period, or a later start', async () => {
    for (const fields of [
      { trial_period_days: 14 },
      { billing_anchor: '2026-03-20T00:00:00Z', proration_behavior: 'create_prorations' },
      { start_date: '2026-05-01T00:00:00Z' },
      { subscription_status: 'draft' },
    ]) {
      const { made, next_invoice } = await compare(['/subscriptions/preview', '/subscriptions'], subscribing(fields));
      await expectNext(next_invoice, (made as Previewed).id);
    }
  });

  it('a one-off invoice, as a draft and final: no number is drawn', async () => {
    const lines = [{ display_name: 'Training', amount: '100', quantity: '1' }];
    const sums = { subtotal: '100', total: '100', amount_due: '100', currency: 'usd', line_items: lines };
    const body = { customer_id: world.id('customer acme'), ...sums };
    await compare(['/invoices/one-off/preview', '/invoices'], body);
    const { preview, made } = await compare(['/invoices/one-off/preview', '/invoices'], {
      ...body,
      invoice_status: 'FINALIZED',
    });
    const first = made as PreviewedInvoice;
    expect([(preview as PreviewedInvoice).total, first.total]).to.deep.equal(['119', '119']);
    const second = await world.post('/invoices', { ...body, invoice_status: 'FINALIZED' });
    const count = (text: string) => Number(/\d+$/.exec(text)![0]);
    expect(count(second.invoice_number!)).to.equal(count(first.invoice_number!) + 1);
    world.remember('invoice', first.id);
    world.remember('line', first.line_items[0]!.id);
  });

  it('a credit note, which takes effect on the invoice that it shows', async () => {
    const line_items = [{ invoice_line_item_id: world.id('line'), amount: '40' }];
    const body = { invoice_id: world.id('invoice'), reason: 'SERVICE_ISSUE', line_items };
    const { preview } = await compare(['/creditnotes/preview', '/creditnotes'], body);
    const { total_amount, invoice } = preview as { total_amount: string; invoice: PreviewedInvoice };
    expect([total_amount, invoice.amount_remaining]).to.deep.equal(['47.6', '71.4']);
    const tooMuch = { ...body, line_items: [{ ...line_items[0], amount: '61' }] };
    const answer = await world.api.request('POST', '/creditnotes/preview', { body: tooMuch });
    expect(answer.status, answer.text).to.equal(400);
  });

  it('a cancellation now, with credits and the invoice of its arrears, and one at the end of the period', async () => {
    await world.on('2026-03-11', () => world.use('acme', 'calls', 1_000, { at: '2026-03-05T00:00:00Z' }));
    await world.waitForPipeline();
    const path = `/subscriptions/${world.id('subscription acme')}/cancel` as const;
    const scheduled = await world.post(`${path}/preview`, { cancellation_type: 'end_of_period' });
    expect([scheduled.status, scheduled.final_invoice]).to.deep.equal(['active', null]);
    const now = { cancellation_type: 'immediate', proration_behavior: 'create_prorations' };
    const { final_invoice } = await compare([`${path}/preview`, path], now);
    const invoices = await world.invoices('acme');
    const arrears = invoices.find(({ billing_reason }) => billing_reason === 'PRORATION')!;
    expect(final_invoice).to.deep.include({ total: arrears.total, subtotal: '10', billing_reason: 'PRORATION' });
  });
});

type PreviewedInvoice = {
  id: string;
  invoice_number: string | null;
  total: string;
  amount_remaining: string;
  line_items: { id: string }[];
};
type Previewed = { id: string; latest_invoice: PreviewedInvoice | null; line_items: { id: string }[] };
