/**
 * kill -9 of a scheduler that sends records to a provider, at each of its calls and when it writes the mapping: the next scheduler sends nothing
 * twice and loses nothing, once the claim of the dead one has expired (docs/integrations/README.md, "Sending a record").
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { pushPending } from '../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../actions/delivery/webhooks/dispatch-events.ts';
import { startScheduler } from '../../scheduler/main.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { holdWrite } from '../support/held-write.ts';
import { StripeFake } from '../support/providers/stripe-fake.ts';
import { QUICK, startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';

const KEY = 'a key of the settings that has 32 characters';

/** Held with its effect still to come: the fake takes effect when the caller is dead. */
const CALLS = [
  /POST customers$/,
  /POST invoices$/,
  /POST invoices.*add_lines$/,
  /POST invoices.*finalize$/,
  /POST payment_records.report_payment$/,
  /POST invoices.*attach_payment$/,
  /POST credit_notes$/,
];
const MAPPED = ['invoice', 'payment'];

describe('a scheduler that is killed while it sends', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;

  const request = async (path: `/${string}`, body: object) => {
    const answer = await api.request('POST', path, { body });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body as Record<string, string>;
  };
  const postgres = () => api.services.postgres;
  const newInvoice = async () => {
    const { id: customer_id } = await request('/customers', { external_id: `customer ${++customers}`, name: 'Acme' });
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    return (await request('/invoices', { customer_id, ...amounts, invoice_status: 'FINALIZED' }))['id']!;
  };
  const addMoney = async (invoice_id: string) => {
    const payment = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
    const [line] = await postgres()('invoice_line_items').where({ invoice_id });
    const line_items = [{ invoice_line_item_id: line.id, amount: '30' }];
    await request('/payments', { ...payment, amount: '40', currency: 'usd' });
    await request('/creditnotes', { invoice_id, reason: 'BILLING_ERROR', line_items });
  };
  const sent = async (count: number) => {
    const waiting = await postgres()('system_events').whereNull('dispatched_at').limit(1);
    const mappings = await postgres()('integration_mappings').where({ mapping_state: 'made', pending_since: null });
    return waiting.length === 0 && mappings.length === count;
  };
  const kill = async (child: Awaited<ReturnType<typeof startSchedulerProcess>>) => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  /** As if the lease of the dead scheduler's claims had passed. */
  const expireClaims = () =>
    postgres()('integration_mappings')
      .whereNotNull('claimed_until')
      .update({ claimed_until: postgres().raw('clock_timestamp()') });
  const runUntilSent = async (count: number) => {
    const now = new Date();
    const scheduler = startScheduler(api.services, { clock: () => now, liveness: QUICK });
    try {
      await until('all is sent', () => sent(count), 60_000);
    } finally {
      await scheduler.stop();
    }
  };

  beforeEach(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now: new Date(), config });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const made = await request('/connections', { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data });
    connection_id = made['id']!;
  });
  afterEach(async () => {
    await api.stop();
    await fake.stop();
  });

  const expectOnce = async (invoice_id: string, isMoney: boolean) => {
    const invoices = fake.listInvoices().map(({ status, total, amount_remaining, metadata }) => {
      return { status, total, amount_remaining, id: metadata['farthing_invoice_id'] };
    });
    const amount_remaining = isMoney ? 3_000 : 10_000;
    expect(invoices).to.deep.equal([{ status: 'open', total: 10_000, amount_remaining, id: invoice_id }]);
    const counts = ['customer', 'payment_record', 'credit_note'].map((object) => fake.book.list(object).length);
    expect(counts).to.deep.equal(isMoney ? [1, 1, 1] : [1, 0, 0]);
    const errors = await postgres()('integration_mappings').whereNotNull('push_error').select('push_error');
    expect(errors).to.deep.equal([]);
  };

  /** Sends an invoice without a process of its own. */
  const sendHere = async () => {
    while ((await dispatchBatch(api.services, { has_targets: true, now: new Date() })).dispatched > 0);
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    const run = { connection_id, settings, clock: () => new Date(), mayGoOn: async () => true };
    expect(await pushPending(api.services, api.scope, run)).to.deep.equal({ ended: 'done', sent: 2 });
  };

  type Death = { readonly isMoney: boolean; readonly reached: () => Promise<unknown>; readonly revive: () => unknown };

  /** The scheduler dies when `reached` resolves; the next one sends the rest. Money is sent after its invoice. */
  async function sendWithDeath({ isMoney, reached, revive }: Death) {
    const invoice_id = await newInvoice();
    if (isMoney) {
      await sendHere();
      await addMoney(invoice_id);
    }
    const child = await startSchedulerProcess(api.services, new Date());
    await reached();
    await kill(child);
    await revive();
    expect(await expireClaims(), 'the dead scheduler had claimed the record').to.equal(1);
    await runUntilSent(isMoney ? 4 : 2);
    await expectOnce(invoice_id, isMoney);
  }

  for (const call of CALLS)
    it(`during ${call.source}`, async () => {
      const { arrived, release } = fake.hold(call);
      const isMoney = /payment|credit/.test(call.source);
      await sendWithDeath({ isMoney, reached: () => arrived, revive: release });
    });

  for (const entity_type of MAPPED)
    it(`when the ${entity_type} is there and its mapping is being written`, async () => {
      const when = `new.mapping_state = 'made' and new.entity_type = '${entity_type}'`;
      const held = await holdWrite(postgres(), { table: 'integration_mappings', on: 'update', when });
      const { reached, release: revive } = held;
      await sendWithDeath({ isMoney: entity_type === 'payment', reached, revive });
    });
});
