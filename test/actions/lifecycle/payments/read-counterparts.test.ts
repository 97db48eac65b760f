/** docs/rules/payments.md, "Tried again": an invoice that is being paid at Stripe, or was paid there without a notification, is not charged. */
import { expect } from 'chai';
import { processDuePayments } from '../../../../actions/lifecycle/payments/due-payments.ts';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { StripeDouble } from '../../../support/providers/stripe-double.ts';
import type { IntentRecord } from '../../../support/providers/stripe-fake-payments.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe('an automatic attempt for an invoice that was sent', () => {
  const provider = new StripeDouble();
  const { book } = provider.fake;
  let account: ConnectedAccount;

  before(async () => {
    account = await ConnectedAccount.open(provider);
  });
  beforeEach(() => {
    account.now = new Date();
    account.api.setNow(account.now);
  });
  afterEach(() => provider.fake.clearDisturbances());
  after(() => account.stop());

  const saveCard = (customer_id: string, gateway_payment_method_id: string) =>
    account.request('POST', `/payments/customers/${customer_id}/methods`, {
      payment_gateway: 'stripe',
      gateway_payment_method_id,
    });
  /** A sent invoice whose first automatic attempt was declined; the customer has another card now. */
  const newDeclined = async () => {
    const customer_id = await account.newCustomer();
    await saveCard(customer_id, 'pm_card_chargeCustomerFail');
    const invoice_id = await account.newInvoice(customer_id);
    await account.push();
    await account.request('POST', `/invoices/${invoice_id}/payment/attempt`, {});
    const found = await account.api.request('GET', `/payments?destination_id=${invoice_id}`);
    const { id } = found.body.items[0]!;
    expect(await show(id)).to.include({ payment_status: 'PENDING', attempt_count: 1 });
    await saveCard(customer_id, 'pm_card_visa');
    const copy_id: string = (await account.findMapping(invoice_id)).provider_entity_id;
    return { id, invoice_id, copy_id };
  };
  const show = (id: string) => account.request('GET', `/payments/${id}`);
  const runDue = async (after_ms: number) => {
    account.now = new Date(account.now.getTime() + after_ms);
    account.api.setNow(account.now);
    const { failed } = await processDuePayments(account.api.services, { now: account.now });
    expect(failed).to.deep.equal([]);
  };
  const countCharges = (payment_id: string) =>
    book.list<IntentRecord>('payment_intent').filter(({ metadata }) => metadata['farthing_payment_id'] === payment_id)
      .length;
  /** The charge that Stripe has made for its own page of the invoice. */
  const findPageIntent = (copy_id: string) =>
    book.find<IntentRecord>('payment_intent', book.listPayments(copy_id)[0]!.payment.payment_intent!);

  it('waits for a bank debit there, which then pays the invoice', async () => {
    const { id, invoice_id, copy_id } = await newDeclined();
    findPageIntent(copy_id).status = 'processing';
    await runDue(3 * DAY_MS);
    const error_message = 'a payment of the invoice is in progress at stripe: the attempt waits';
    expect(await show(id)).to.include({ payment_status: 'PENDING', attempt_count: 1, error_message });
    book.payInvoice(copy_id, { card: 'pm_card_visa' });
    await runDue(HOUR_MS);
    expect(await show(id)).to.include({ payment_status: 'VOIDED', attempt_count: 1 });
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(countCharges(id)).to.equal(1);
  });

  it('charges after a bank debit there has failed', async () => {
    const { id, invoice_id, copy_id } = await newDeclined();
    findPageIntent(copy_id).status = 'processing';
    await runDue(3 * DAY_MS);
    const last_payment_error = { type: 'card_error', message: 'The bank has refused the debit.' };
    Object.assign(findPageIntent(copy_id), { status: 'requires_payment_method', last_payment_error });
    await runDue(HOUR_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });

  it('does not wait for a customer who has to confirm a payment there', async () => {
    const { id, copy_id } = await newDeclined();
    findPageIntent(copy_id).status = 'requires_action';
    await runDue(3 * DAY_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
  });

  it('charges the rest of a payment there whose notification was lost', async () => {
    const { id, invoice_id, copy_id } = await newDeclined();
    book.payInvoice(copy_id, { card: 'pm_card_visa', amount: 3_000 });
    await runDue(3 * DAY_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2, amount: '70' });
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });

  it('waits while the invoice cannot be read', async () => {
    const { id } = await newDeclined();
    provider.disturb('read', 'fault');
    await runDue(3 * DAY_MS);
    const waiting = await show(id);
    expect(waiting).to.include({ payment_status: 'PENDING', attempt_count: 1 });
    expect(waiting['error_message']).to.contain('could not be read').and.to.contain('the attempt waits');
    await runDue(2 * HOUR_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
  });

  it('charges if Stripe no longer has the invoice, and a person is asked', async () => {
    const { id, invoice_id, copy_id } = await newDeclined();
    book.records.delete(copy_id);
    await runDue(3 * DAY_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
    expect((await account.findMapping(invoice_id)).attention_reason).to.equal('stripe no longer has it');
  });

  it('charges although the credentials of another provider that has the invoice cannot be opened', async () => {
    const { id, invoice_id } = await newDeclined();
    const { postgres } = account.api.services;
    const other = { connection: 'conn_unreadable', mapping: 'map_unreadable' };
    const copyRow = (table: string, from: string, changes: object) =>
      postgres.raw(
        `insert into ${table} select (jsonb_populate_record(null::${table}, to_jsonb(t) || ?::jsonb)).* from ${table} as t where id = ?`,
        [JSON.stringify(changes), from],
      );
    // Sealed for another connection, so it cannot be opened for this one.
    await copyRow('connections', account.connection_id, { id: other.connection, provider_type: 'razorpay' });
    const mapping = await account.findMapping(invoice_id);
    const changes = { id: other.mapping, connection_id: other.connection, provider_entity_id: 'inv_there' };
    await copyRow('integration_mappings', mapping.id, changes);
    await runDue(3 * DAY_MS);
    expect(await show(id)).to.include({ payment_status: 'SUCCEEDED', attempt_count: 2 });
    const unread = await postgres('integration_mappings').where({ id: other.mapping }).first();
    expect(unread.attention_reason).to.contain('cannot be read');
    await postgres('integration_mappings').where({ id: other.mapping }).delete();
    await postgres('connections').where({ id: other.connection }).delete();
  });
});
