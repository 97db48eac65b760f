/**
 * docs/integrations/README.md: after any order of invoices, payments, credit notes, voids, pushes and lost answers, a
 * last push makes the amount due at the provider equal to the remaining amount here, or a refusal gives the reason.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { pushPending } from '../../../../actions/delivery/integrations/push-pending.ts';
import { dispatchBatch } from '../../../../actions/delivery/webhooks/dispatch-events.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { ageKeys } from '../../../support/providers/aged-keys.ts';
import { type Disturbance, StripeFake } from '../../../support/providers/stripe-fake.ts';

const KEY = 'a key of the settings that has 32 characters';
const DISTURBANCES: Disturbance[] = [
  'lost_request',
  'lost_answer',
  'fault',
  'lost_fault',
  'unavailable',
  'rate_limit',
  'html',
];

type Step =
  | { readonly do: 'pay' | 'credit' | 'set_paid'; readonly amount: number }
  | { readonly do: 'refund' | 'void_note' | 'void_payment' | 'void' | 'push' | 'day' | 'pay_there' }
  | { readonly do: 'disturb'; readonly what: Disturbance };

const amount = fc.integer({ min: 1, max: 60 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pay' as const), amount }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('credit' as const), amount }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('set_paid' as const), amount }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'refund' as const,
        'void_note' as const,
        'void_payment' as const,
        'void' as const,
        'pay_there' as const,
      ),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('push' as const, 'push' as const, 'day' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('disturb' as const), what: fc.constantFrom(...DISTURBANCES) }) },
);

describe('both sides of a connection', () => {
  let fake: StripeFake;
  let api: TestApi;
  let connection_id: string;
  let customers = 0;
  let now = new Date();

  before(async () => {
    fake = await new StripeFake().start();
    const config = { SECRETS_KEYS: KEY, PROVIDER_ADDRESSES: `stripe=${fake.url.href}` };
    api = await startTestApi({ now, config });
    const encrypted_secret_data = { stripe: { secret_key: 'sk_test_fake' } };
    const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data };
    connection_id = (await api.request('POST', '/connections', { body })).body.id;
  });
  after(async () => {
    await api.stop();
    await fake.stop();
  });

  const table = (name: string) => api.services.postgres(name);
  const push = async () => {
    while ((await dispatchBatch(api.services, { has_targets: true, now: new Date() })).dispatched > 0);
    const settings = { SECRETS_KEYS: [KEY], PROVIDER_ADDRESSES: [`stripe=${fake.url.href}`] };
    await pushPending(api.services, api.scope, {
      connection_id,
      settings,
      clock: () => now,
      mayGoOn: async () => true,
    });
  };
  const newInvoice = async () => {
    const customer = { external_id: `customer ${++customers}`, name: 'Acme' };
    const customer_id = (await api.request('POST', '/customers', { body: customer })).body.id;
    const line_items = [{ display_name: 'Help', amount: '100', quantity: '1' }];
    const amounts = { amount_due: '100', total: '100', subtotal: '100', currency: 'usd', line_items };
    const body = { customer_id, ...amounts, invoice_status: 'FINALIZED' };
    return (await api.request('POST', '/invoices', { body })).body.id as string;
  };
  const newest = async (name: string, where: object) =>
    (await table(name).where(where).orderBy('id', 'desc').first())?.id;
  const findThere = (invoice_id: string) =>
    fake.listInvoices().filter(({ metadata }) => metadata['farthing_invoice_id'] === invoice_id);

  /** Takes one step. A step that this service refuses changes nothing. */
  const take = async (invoice_id: string, one: Step): Promise<unknown> => {
    switch (one.do) {
      case 'pay': {
        const paid = { destination_type: 'INVOICE', destination_id: invoice_id, payment_method_type: 'OFFLINE' };
        // Each payment has its own key, because equal payments within a minute count as one.
        const idempotency_key = `${invoice_id} ${Math.random()}`;
        const body = { ...paid, amount: String(one.amount), currency: 'usd', idempotency_key };
        return api.request('POST', '/payments', { body });
      }
      case 'credit': {
        const line = await newest('invoice_line_items', { invoice_id });
        const line_items = [{ invoice_line_item_id: line, amount: String(one.amount) }];
        const body = {
          invoice_id,
          reason: 'BILLING_ERROR',
          line_items,
          idempotency_key: `${invoice_id} ${Math.random()}`,
        };
        return api.request('POST', '/creditnotes', { body });
      }
      case 'set_paid': {
        const body = { payment_status: 'PENDING', amount: String(one.amount) };
        return api.request('PUT', `/invoices/${invoice_id}/payment`, { body });
      }
      case 'refund':
        return api.request('POST', `/payments/${await newest('payments', { destination_id: invoice_id })}/refund`, {
          body: {},
        });
      case 'void_payment': {
        const id = await newest('payments', { destination_id: invoice_id });
        return api.request('PUT', `/payments/${id}`, { body: { payment_status: 'VOIDED' } });
      }
      case 'void_note':
        return api.request('POST', `/creditnotes/${await newest('credit_notes', { invoice_id })}/void`);
      case 'void':
        return api.request('POST', `/invoices/${invoice_id}/void`);
      case 'pay_there': {
        const open = findThere(invoice_id).find(({ status }) => status === 'open');
        return open && fake.book.payInvoice(open.id, { card: 'pm_card_visa' });
      }
      case 'push':
        return push();
      case 'day':
        now = new Date(now.getTime() + 86_400_000);
        await ageKeys(api.services.postgres);
        return fake.forgetKeys();
      case 'disturb':
        return fake.disturb(/POST/, one.what);
    }
  };

  const listRefusals = async (invoice_id: string): Promise<string[]> => {
    const payments = table('payments').where({ destination_id: invoice_id }).select('id');
    const notes = table('credit_notes').where({ invoice_id }).select('id');
    const refused = await table('integration_mappings')
      .whereNotNull('push_error')
      .where(
        (any) =>
          void any.where({ entity_id: invoice_id }).orWhereIn('entity_id', payments).orWhereIn('entity_id', notes),
      )
      .select('push_error');
    return refused.map(({ push_error }) => push_error);
  };

  it('agree, or the difference is told', async function () {
    this.timeout(600_000);
    let agreed = 0;
    const plays = fc.array(step, { minLength: 3, maxLength: 14 });
    await fc.assert(
      fc.asyncProperty(plays, async (steps) => {
        now = new Date();
        const invoice_id = await newInvoice();
        let isPaidThere = false;
        for (const one of steps) {
          if (one.do === 'pay_there') isPaidThere ||= findThere(invoice_id).some(({ status }) => status === 'open');
          await take(invoice_id, one);
        }
        fake.clearDisturbances();
        for (let times = 0; times < 3; times++) {
          now = new Date(now.getTime() + 2 * 3_600_000);
          await push();
        }
        const pending = await table('integration_mappings')
          .whereNotNull('pending_since')
          .whereNot('mapping_state', 'gone');
        expect(pending, 'nothing waits').to.deep.equal([]);
        const there = findThere(invoice_id).filter(({ status }) => status !== 'void');
        expect(there.length, 'never two of them').to.be.at.most(1);
        if ((await listRefusals(invoice_id)).length > 0 || isPaidThere) return;
        const { invoice_status, amount_remaining } = await table('invoices').where({ id: invoice_id }).first();
        const due = invoice_status === 'VOIDED' ? 0 : Number(amount_remaining) * 100;
        expect(there[0]?.amount_remaining ?? 0, 'the same remains').to.equal(due);
        expect(there[0]?.status ?? 'paid').to.equal(due > 0 ? 'open' : 'paid');
        agreed++;
      }),
      { numRuns: 40 },
    );
    expect(agreed, 'runs without a refusal').to.be.at.least(8);
  });
});
