/** A scheduler continues when the clock of the database is moved: records are sent, webhooks are processed and money is charged. */
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { moveDatabaseClock } from '../support/moved-clock.ts';
import { ConnectedAccount } from '../support/providers/connected-account.ts';
import { StripeDouble } from '../support/providers/stripe-double.ts';
import { QUICK } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;

describe('a scheduler while the clock of the database is moved', () => {
  const there = new StripeDouble();
  let account: ConnectedAccount;
  let scheduler: ReturnType<typeof startScheduler>;
  let setDatabaseClock: (instant: Date) => Promise<void>;

  before(async () => {
    account = await ConnectedAccount.open(there);
    setDatabaseClock = await moveDatabaseClock(account.api.services.postgres, ['clock_timestamp', 'now']);
    const { services } = account.api;
    const config = { ...services.config, BILLING_INTERVAL_SECONDS: 1 };
    scheduler = startScheduler({ ...services, config }, { clock: () => account.now, liveness: QUICK });
  });
  after(async () => {
    await scheduler.stop();
    await account.stop();
  });

  const untilSent = (invoice_id: string) =>
    until('the invoice is sent', async () => {
      const mapping = await account.findMapping(invoice_id);
      return mapping?.mapping_state === 'made' && (mapping.provider_entity_id as string);
    });
  const untilPaid = (invoice_id: string) =>
    until('the invoice is paid', async () => (await account.showPaid(invoice_id)) === 'SUCCEEDED 100');

  /** Creates a charge whose answer is lost, so that the scheduler has to query its outcome. */
  async function newCharge(): Promise<string> {
    const customer_id = await account.newCustomer();
    const method = { payment_gateway: 'stripe', gateway_payment_method_id: 'pm_card_visa' };
    await account.request('POST', `/payments/customers/${customer_id}/methods`, method);
    const invoice_id = await account.newInvoice(customer_id);
    there.fake.disturb(/POST payment_intents$/, 'lost_answer');
    const charge = { payment_method_type: 'CARD', payment_gateway: 'stripe', payment_method_id: 'pm_card_visa' };
    const destination = { destination_type: 'INVOICE', destination_id: invoice_id };
    await account.request('POST', '/payments', { ...destination, ...charge, amount: '100', currency: 'usd' });
    return invoice_id;
  }

  for (const [name, by_ms] of [
    ['back an hour', -HOUR_MS],
    ['forward a day', 24 * HOUR_MS],
    ['back to the true time', 0],
  ] as const)
    it(name, async () => {
      account.now = new Date();
      account.api.setNow(account.now);
      const paid = await account.newInvoice();
      const copy_id = await untilSent(paid);
      const charged = await newCharge();
      await setDatabaseClock(new Date(Date.now() + by_ms));
      // The lost answer has paused the connection, and the outcome of the charge is queried a minute later.
      account.passSeconds(120);
      const sent = await account.newInvoice();
      await untilSent(sent);
      there.payCopy(copy_id);
      await account.deliverAll();
      await untilPaid(paid);
      await untilPaid(charged);
      expect(account.showCopies(sent)).to.deep.equal(['open 100']);
      expect(await account.listPayments(paid)).to.have.length(1);
      expect(await account.listPayments(charged)).to.have.length(1);
      const intents = there.fake.book.list('payment_intent');
      const own = intents.filter(({ metadata }) => metadata['farthing_invoice_id'] === charged);
      expect(own.map(({ status }) => status)).to.deep.equal(['succeeded']);
    });
});
