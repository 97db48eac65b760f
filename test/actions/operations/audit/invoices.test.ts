/** The audit of invoices names what was changed behind the back of the service, and nothing else. */
import { expect } from 'chai';
import type { Finding } from '../../../../actions/operations/audit/findings.ts';
import { auditInvoices, sampleInvoices } from '../../../../actions/operations/audit/invoices.ts';
import type { Invoice } from '../../../support/answers.ts';
import { fixed, startWorld, type World } from '../../../support/world.ts';

describe('audit of the invoices', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.plan('Pro', [fixed('100', { invoice_cadence: 'ADVANCE' })]);
  });
  after(() => world.stop());

  const raw = (statement: string) => world.api.services.postgres.raw(statement);
  async function kinds(look: typeof auditInvoices | typeof sampleInvoices = auditInvoices): Promise<string[]> {
    const findings: Finding[] = [];
    await look(world.api.services, (finding) => findings.push(finding));
    return findings.map(({ kind }) => kind).sort();
  }
  const subscribed = async (customer: string) => {
    await world.customer(customer);
    await world.subscribe(customer, 'Pro');
    return (await world.invoices(customer))[0];
  };
  const paid = (invoice: Invoice, amount: string, fields: object = {}) =>
    world.post('/payments', {
      destination_type: 'INVOICE',
      destination_id: invoice.id,
      payment_method_type: 'OFFLINE',
      amount,
      currency: 'usd',
      ...fields,
    });
  const noted = (invoice: Invoice, amount: string) =>
    world.post('/creditnotes', {
      invoice_id: invoice.id,
      reason: 'SERVICE_ISSUE',
      line_items: [{ invoice_line_item_id: invoice.line_items[0]!.id, amount }],
    });

  it('finds nothing where money has come in and gone back in every way', async () => {
    const whole = await subscribed('whole');
    const payment = await paid(whole!, '100');
    await world.post(`/payments/${payment.id}/refund`, { amount: '30' });
    await noted(whole!, '20');
    const part = await subscribed('part');
    const first = await paid(part!, '40');
    await paid(part!, '50');
    await world.post(`/payments/${first.id}/refund`, {});
    await noted(part!, '10');
    const over = await subscribed('over');
    const much = await paid(over!, '130');
    await world.post(`/payments/${much.id}/refund`, { amount: '35' });
    const mistaken = await paid((await subscribed('mistaken'))!, '60');
    await world.api.request('PUT', `/payments/${mistaken.id}`, { body: { payment_status: 'VOIDED' } });
    const byHand = await subscribed('by hand');
    const body = { payment_status: 'PENDING', amount: '25' };
    expect((await world.api.request('PUT', `/invoices/${byHand!.id}/payment`, { body })).status).to.equal(200);
    await paid(byHand!, '75');
    const gone = await subscribed('gone');
    await paid(gone!, '70');
    await world.post(`/invoices/${gone!.id}/void`, {});
    expect(await kinds()).to.deep.equal([]);
    expect(await kinds(sampleInvoices)).to.deep.equal([]);
    const sums = await auditInvoices(world.api.services, () => undefined);
    expect(sums).to.deep.equal({ invoices: 6, invoice_lines: 6, payments: 7, credit_notes: 2 });
  });

  // [what was changed, how it is taken back, what is told]
  const paying = (customer: string) =>
    `(select i.id from invoices i join customers c on c.id = i.customer_id where c.external_id = '${customer}')`;
  const FAULTS: [string, string, string, string[]][] = [
    [
      'a payment that the invoice has not seen',
      `update payments set amount = amount + 1 where destination_id = ${paying('by hand')}`,
      `update payments set amount = amount - 1 where destination_id = ${paying('by hand')}`,
      ['invoice_paid_differs'],
    ],
    [
      'a receipt that counts twice',
      `update invoices set amount_paid = amount_paid + 75, amount_remaining = 0, overpaid_amount = 75 where id = ${paying('by hand')}`,
      `update invoices set amount_paid = amount_paid - 75, overpaid_amount = null where id = ${paying('by hand')}`,
      ['invoice_paid_differs'],
    ],
    [
      'a refund that the invoice has not seen',
      `update payment_refunds set amount = amount + 5 where payment_id in (select id from payments where destination_id = ${paying('whole')})`,
      `update payment_refunds set amount = amount - 5 where payment_id in (select id from payments where destination_id = ${paying('whole')})`,
      ['invoice_paid_differs', 'payment_refunded_differs'],
    ],
    [
      'more given back than was paid',
      `update invoices set refunded_amount = 101 where id = ${paying('whole')}`,
      `update invoices set refunded_amount = 50 where id = ${paying('whole')}`,
      ['invoice_paid_differs', 'invoice_refunded_differs'],
    ],
    [
      'a note that is more than its line',
      `update credit_note_line_items set amount = 101 where invoice_line_item_id in (select id from invoice_line_items where invoice_id = ${paying('whole')})`,
      `update credit_note_line_items set amount = 20 where invoice_line_item_id in (select id from invoice_line_items where invoice_id = ${paying('whole')})`,
      ['line_credited_too_much'],
    ],
    [
      'an adjustment without a note',
      `update invoices set adjustment_amount = 11, amount_due = 89, amount_remaining = amount_remaining - 1 where id = ${paying('part')}`,
      `update invoices set adjustment_amount = 10, amount_due = 90, amount_remaining = amount_remaining + 1 where id = ${paying('part')}`,
      ['invoice_adjusted_differs'],
    ],
    [
      'a line that is not in the sum',
      `update invoice_line_items set amount = amount + 1 where invoice_id = ${paying('over')}`,
      `update invoice_line_items set amount = amount - 1 where invoice_id = ${paying('over')}`,
      ['invoice_lines_differ'],
    ],
    [
      'a tax of no line',
      `update invoices set total_tax = 1 where id = ${paying('over')}`,
      `update invoices set total_tax = 0 where id = ${paying('over')}`,
      ['invoice_lines_differ', 'invoice_total_differs'],
    ],
    [
      'a total that its sums do not come to',
      `update invoices set total = 101 where id = ${paying('over')}`,
      `update invoices set total = 100 where id = ${paying('over')}`,
      ['invoice_total_differs'],
    ],
    [
      'a number that was given to nobody',
      `update invoices set invoice_number = 'INV-202603-00099' where invoice_number = 'INV-202603-00003'`,
      `update invoices set invoice_number = 'INV-202603-00003' where invoice_number = 'INV-202603-00099'`,
      ['invoice_number_gap'],
    ],
    [
      'a last number that was given to nobody',
      `update invoice_numbers set last_number = last_number + 1`,
      `update invoice_numbers set last_number = last_number - 1`,
      ['invoice_number_gap'],
    ],
    [
      'a last number of a credit note that was given to none',
      `update credit_note_numbers set last_number = last_number + 1`,
      `update credit_note_numbers set last_number = last_number - 1`,
      ['credit_note_number_gap'],
    ],
  ];
  for (const [what, damage, mend, told] of FAULTS)
    it(`tells ${what}`, async () => {
      await raw(damage);
      expect(await kinds(), what).to.deep.equal(told);
      expect(await kinds(sampleInvoices), 'of some').to.deep.equal(told);
      await raw(mend);
      expect(await kinds()).to.deep.equal([]);
    });

  it('knows a start that was raised, and other prefixes, for no gap', async () => {
    const setting = (value: object) => world.api.request('PUT', '/settings/invoice_config', { body: { value } });
    expect((await setting({ prefix: 'RE', start_sequence: 1000 })).status).to.equal(200);
    const { invoice_number } = (await subscribed('later'))!;
    expect(invoice_number).to.equal('RE-202603-01000');
    expect(await kinds()).to.deep.equal([]);
  });
});
