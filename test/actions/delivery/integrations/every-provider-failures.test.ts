/** docs/integrations/README.md, "Sending by itself": failures of every provider with an account, and what follows from them. */
import { expect } from 'chai';
import { PUSHED_ENTITY_TYPES, type PushedEntityType } from '../../../../core/platform/integration/pushed-events.ts';
import { canReceive } from '../../../../integrations/find-capability.ts';
import type { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { describeProviders } from '../../../support/providers/describe-providers.ts';
import type { ProviderDouble } from '../../../support/providers/provider-double.ts';

const HOUR_S = 3_600;
const HOURS_A_DAY = 24;
const PAUSE_S = 60;
const ASKED_PAUSE_S = 300;

type Waiting = { readonly show: () => readonly string[]; readonly expected: readonly string[] };

/** Records that wait to be sent, and what is at the provider when each has been sent once. */
const WAITING: Readonly<
  Record<PushedEntityType, (account: ConnectedAccount, there: ProviderDouble) => Promise<Waiting>>
> = {
  async customer(account, there) {
    const id = await account.newCustomer();
    return { show: () => there.listCustomers(id).map(() => 'customer'), expected: ['customer'] };
  },
  async invoice(account) {
    const id = await account.newInvoice();
    return { show: () => account.showCopies(id), expected: ['open 100'] };
  },
  async payment(account, there) {
    const { invoice_id } = await account.newPushed();
    const id = await account.pay(invoice_id, '40');
    const show = () => [...account.showCopies(invoice_id), ...there.listSentPayments(id)];
    return { show, expected: ['open 60', '40'] };
  },
  async credit_note(account, there) {
    const { invoice_id } = await account.newPushed();
    const id = await account.credit(invoice_id, '30');
    const show = () => [...account.showCopies(invoice_id), ...there.listSentNotes(id)];
    return { show, expected: ['open 70', '30'] };
  },
  async subscription(account, there) {
    const id = await account.newSubscription();
    return { show: () => there.listDeals!(id), expected: ['closedwon 100'] };
  },
};

describeProviders('failures', ({ exchanges, there, given }) => {
  for (const [failure, pause_s, kinds] of [
    ['rate_limit', ASKED_PAUSE_S, ['invoice']],
    ['fault', PAUSE_S, ['invoice']],
    ['lost_answer', PAUSE_S, PUSHED_ENTITY_TYPES],
  ] as const) {
    for (const kind of kinds.filter((one) => canReceive({ exchanges }, one)))
      it(`${failure} of a ${kind} that is sent pauses the connection, and it is there once`, async () => {
        const { account } = given;
        there.fake.retry_after_seconds = ASKED_PAUSE_S;
        const { show, expected } = await WAITING[kind](account, there);
        there.disturb(kind, failure);
        expect((await account.push()).ended).to.equal('paused');
        const requests = there.fake.requests.length;
        account.passSeconds(pause_s - 1);
        expect((await account.push()).ended).to.equal('paused');
        expect(there.fake.requests.length, 'nothing is called during the pause').to.equal(requests);
        account.passSeconds(1);
        expect((await account.push()).ended).to.equal('done');
        expect(show()).to.deep.equal(expected);
        expect((await account.findConnection()).paused_until).to.equal(null);
      });

    it(`${failure} while reading delays the payment`, async () => {
      const { account } = given;
      there.fake.retry_after_seconds = ASKED_PAUSE_S;
      const { invoice_id, copy_id } = await account.newPushed();
      const payment_id = there.payCopy(copy_id);
      await account.deliverAll();
      there.disturb('read', failure);
      expect((await account.read()).ended).to.equal('paused');
      account.passSeconds(pause_s - 1);
      expect((await account.read()).ended).to.equal('paused');
      account.passSeconds(1);
      expect((await account.read()).ended).to.equal('done');
      expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${payment_id}`]);
    });
  }

  it('an invoice that changes before its push is repeated is sent with the first amounts, and the difference is told', async () => {
    const { account } = given;
    const invoice_id = await account.newInvoice();
    there.disturb('invoice', 'lost_answer');
    expect((await account.push()).ended).to.equal('paused');
    await account.request('PUT', `/invoices/${invoice_id}/payment`, { payment_status: 'PENDING', amount: '30' });
    account.passSeconds(2 * PAUSE_S);
    expect((await account.push()).ended).to.equal('done');
    expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
    expect((await account.findMapping(invoice_id)).push_error).to.match(
      /^70 .* remains to be paid here, but 100 at the provider/,
    );
  });

  it('an invoice that the provider changes is refused for a person, leaves nothing open there, and is sent again on request', async () => {
    const { account } = given;
    there.alterInvoices(true);
    const invoice_id = await account.newInvoice();
    await account.push();
    there.alterInvoices(false);
    expect(there.listCopies(invoice_id).filter(({ status }) => status !== 'void')).to.deep.equal([]);
    const { id, push_error, pending_since } = await account.findMapping(invoice_id);
    expect(push_error).to.match(/ is 100 .* but /);
    expect(pending_since).to.equal(null);
    expect(await account.listSystemEvents('integration_mapping.failed', id)).to.have.length(1);
    const next = await account.newPushed();
    expect(account.showCopies(next.invoice_id)).to.deep.equal(['open 100']);
    await account.request('POST', '/integrations/sync', { entity_type: 'invoice', entity_id: invoice_id });
    expect(account.showCopies(invoice_id).filter((copy) => copy !== 'void')).to.deep.equal(['open 100']);
    expect((await account.findMapping(invoice_id)).push_error).to.equal(null);
  });

  it('an outage of a day delays what is sent and read, and asks nobody', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    const payment_id = there.payCopy(copy_id);
    await account.deliverAll();
    there.fake.is_away = true;
    const waiting = await account.newInvoice();
    for (let hour = 0; hour < HOURS_A_DAY; hour++) {
      expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['paused', 'paused']);
      account.passSeconds(HOUR_S);
    }
    expect(await account.findConnection()).to.include({ connection_state: 'active', attention_reason: null });
    await account.passDay();
    there.fake.is_away = false;
    expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['done', 'done']);
    expect(account.showCopies(waiting)).to.deep.equal(['open 100']);
    expect((await account.findMapping(waiting)).push_error).to.equal(null);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${payment_id}`]);
  });

  it('refused credentials need attention, and all follows after they pass the test', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    there.payCopy(copy_id);
    await account.deliverAll();
    const waiting = await account.newInvoice();
    there.fake.is_revoked = true;
    expect((await account.push()).ended).to.equal('stopped');
    expect(await account.findConnection()).to.include({ connection_state: 'needs_attention' });
    const requests = there.fake.requests.length;
    expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['stopped', 'stopped']);
    expect(there.fake.requests.length, 'nothing is called').to.equal(requests);
    expect(await account.listSystemEvents('connection.needs_attention', account.connection_id)).to.have.length(1);
    there.fake.is_revoked = false;
    await account.request('POST', `/connections/${account.connection_id}/test`);
    expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['done', 'done']);
    expect(account.showCopies(waiting)).to.deep.equal(['open 100']);
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
  });

  it('an archived connection neither sends nor reads nor receives, and a new one begins afresh', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    const waiting = await account.newInvoice();
    await account.dispatch();
    there.payCopy(copy_id);
    const webhooks = there.takeWebhooks();
    await account.request('DELETE', `/connections/${account.connection_id}`);
    for (const webhook of webhooks) expect(await account.deliver(webhook)).to.equal(401);
    const requests = there.fake.requests.length;
    account.passSeconds(2 * HOUR_S);
    expect([(await account.push()).ended, (await account.read()).ended]).to.deep.equal(['stopped', 'stopped']);
    expect(there.fake.requests.length).to.equal(requests);
    expect([account.showCopies(waiting), await account.showPaid(invoice_id)]).to.deep.equal([[], 'PENDING 0']);
    await account.connect();
    account.now = new Date();
    const next = await account.newPushed();
    expect(account.showCopies(next.invoice_id)).to.deep.equal(['open 100']);
    expect(account.showCopies(waiting), 'it is older than the connection').to.deep.equal([]);
  });
});
