/**
 * docs/integrations/README.md for every provider with an account: records go out by the job that sends, and money comes in by webhooks and by
 * the job that reads. The capabilities are those that the provider declares.
 */
import { expect } from 'chai';
import { listCapable } from '../../../../integrations/find-capability.ts';
import { describeProviders } from '../../../support/providers/describe-providers.ts';
import { PROVIDER_DOUBLES } from '../../../support/providers/doubles.ts';
import type { SignedWebhook } from '../../../support/providers/provider-double.ts';

const HOUR_S = 3_600;

it('every provider with an account has a fake', () => {
  expect(Object.keys(PROVIDER_DOUBLES)).to.have.members(Object.keys(listCapable('account')));
});

/** A changed body, and a body without a signature, of a provider that signs bodies in headers. */
function forge(webhook: SignedWebhook): SignedWebhook[] {
  const { body } = webhook;
  return [
    { ...webhook, body: `${body} ` },
    { headers: {}, body },
  ];
}

describeProviders('records and money', ({ name, exchanges, there, given }) => {
  const pushPayment = async (invoice_id: string): Promise<string> => {
    const { account } = given;
    const payment_id = await account.pay(invoice_id, '100');
    await account.push();
    return (await account.findMapping(payment_id)).provider_entity_id;
  };

  it('a customer and an invoice are sent once', async () => {
    const { account } = given;
    const customer_id = await account.newCustomer();
    const invoice_id = await account.newInvoice(customer_id);
    const customers = exchanges.includes('customer') ? 1 : 0;
    expect(await account.push()).to.deep.equal({ ended: 'done', sent: customers + 1 });
    expect(await account.push()).to.deep.equal({ ended: 'done', sent: 0 });
    expect(there.listCustomers(customer_id)).to.have.length(customers);
    expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
    const mapping = await account.findMapping(invoice_id);
    expect(mapping).to.include({ mapping_state: 'made', push_error: null, pending_since: null });
    expect(mapping.provider_entity_id).to.equal(there.listCopies(invoice_id)[0]!.id);
  });

  if (!exchanges.includes('customer'))
    it('a customer is neither sent nor linked, because the provider has none', async () => {
      const { account } = given;
      const customer = { entity_type: 'customer', entity_id: await account.newCustomer() };
      const link = { ...customer, provider_type: name, provider_entity_id: 'cust_there' };
      for (const [path, body] of [
        ['/integrations/link', link],
        ['/integrations/sync', customer],
      ] as const) {
        const { status, text } = await account.api.request('POST', path, { body });
        expect([status, text.includes('invalid_operation')], text).to.deep.equal([400, true]);
      }
    });

  it('a payment there comes in by its webhook, once, and is not sent back', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    const payment_id = there.payCopy(copy_id);
    const webhooks = there.takeWebhooks();
    for (const webhook of [...webhooks, ...webhooks]) expect(await account.deliver(webhook)).to.equal(200);
    expect((await account.read()).ended).to.equal('done');
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    for (const webhook of webhooks.toReversed()) await account.deliver(webhook);
    await account.read();
    await account.push();
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${payment_id}`]);
    expect(account.showCopies(invoice_id)).to.deep.equal(['paid 0']);
  });

  if (name === 'whop')
    it('a customer that the provider made is linked when it pays, once, and not again after it was unlinked', async () => {
      const { account } = given;
      const customer_id = await account.newCustomer();
      const pay = async () => {
        const invoice_id = await account.newInvoice(customer_id);
        await account.push();
        there.payCopy((await account.findMapping(invoice_id)).provider_entity_id);
        await account.deliverAll();
        await account.read();
        expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      };
      const list = async () => {
        const rows = await account.api.services.postgres('integration_mappings').where({ entity_id: customer_id });
        return rows.map(({ mapping_state, provider_entity_id }) => `${mapping_state} ${provider_entity_id}`);
      };
      await pay();
      const [linked] = await list();
      expect(linked).to.match(/^made mber_/);
      await pay();
      expect(await list()).to.deep.equal([linked]);
      const link = { entity_type: 'customer', entity_id: customer_id, provider_type: name };
      await account.request('DELETE', '/integrations/link', link);
      await pay();
      expect(await list()).to.deep.equal([linked!.replace('made', 'gone')]);
    });

  it('a payment there comes in by the job that reads, if its webhook is lost', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    const payment_id = there.payCopy(copy_id);
    expect((await account.read()).ended).to.equal('done');
    expect(await account.showPaid(invoice_id)).to.equal('PENDING 0');
    account.passSeconds(HOUR_S);
    expect((await account.read()).ended).to.equal('done');
    expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
    expect(await account.listPayments(invoice_id)).to.deep.equal([`100 ${payment_id}`]);
    expect((await account.findMapping(invoice_id)).next_pull_at).to.equal(null);
  });

  it('a webhook with a wrong signature is refused and stored nowhere', async () => {
    const { account } = given;
    const { copy_id } = await account.newPushed();
    there.payCopy(copy_id);
    const count = async () => (await account.api.services.postgres('provider_events').count().first())!['count'];
    const before = await count();
    for (const webhook of there.takeWebhooks())
      for (const forged of there.forge?.(webhook) ?? forge(webhook))
        expect(await account.deliver(forged)).to.equal(401);
    expect(await count()).to.equal(before);
  });

  it('an event of another account has no effect, if the provider names the account', async () => {
    const { account } = given;
    const { postgres } = account.api.services;
    const { invoice_id, copy_id } = await account.newPushed();
    const { id, provider_account_id } = await account.findConnection();
    there.payCopy(copy_id);
    const webhooks = there.takeWebhooks();
    await postgres('connections').where({ id }).update({ provider_account_id: 'another' });
    for (const webhook of webhooks) expect(await account.deliver(webhook)).to.equal(200);
    const parse = listCapable('account')[name]!.parseWebhook!;
    const events = webhooks.flatMap(({ headers, body }) => parse({ headers, body: Buffer.from(body) }));
    const isNamed = events.length > 0 && events.every((event) => event.provider_account_id !== null);
    expect((await account.read()).ended).to.equal('done');
    expect(await account.showPaid(invoice_id)).to.equal(isNamed ? 'PENDING 0' : 'SUCCEEDED 100');
    await postgres('connections').where({ id }).update({ provider_account_id });
  });

  if (there.sumRefunds)
    it('two refunds of one amount are both made there, each once', async () => {
      const { account } = given;
      const { invoice_id, copy_id } = await account.newPushed();
      const id_there = there.payCopy(copy_id);
      await account.deliverAll();
      await account.read();
      const [payment] = (await account.api.request('GET', `/payments?destination_id=${invoice_id}`)).body.items;
      const path = `/payments/${payment!['id']}` as const;
      for (const idempotency_key of ['first', 'second', 'second']) {
        const body = { amount: '30', idempotency_key: `${invoice_id} ${idempotency_key}` };
        await account.request('POST', `${path}/refund`, body);
      }
      expect(there.sumRefunds!(id_there)).to.equal('60');
      await account.deliverAll();
      await account.read();
      expect((await account.request('GET', path))['refunded_amount']).to.equal('60');
    });

  if (exchanges.includes('payment'))
    it('a payment here goes out, in parts, each once', async () => {
      const { account } = given;
      const { invoice_id } = await account.newPushed();
      const first = await account.pay(invoice_id, '40');
      await account.push();
      await account.push();
      expect([account.showCopies(invoice_id), there.listSentPayments(first)]).to.deep.equal([['open 60'], ['40']]);
      await account.pay(invoice_id, '60');
      await account.push();
      account.passSeconds(HOUR_S);
      await account.read();
      expect(account.showCopies(invoice_id)).to.deep.equal(['paid 0']);
      expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      expect(await account.listPayments(invoice_id)).to.have.length(2);
    });
  else
    it('an invoice that is paid here can no longer be paid there; a part needs a person', async () => {
      const { account } = given;
      const [paid, partly] = [await account.newPushed(), await account.newPushed()];
      await account.pay(paid.invoice_id, '100');
      await account.pay(partly.invoice_id, '40');
      await account.push();
      expect(account.showCopies(paid.invoice_id)).to.deep.equal(['void']);
      expect(account.showCopies(partly.invoice_id)).to.deep.equal(['open 100']);
      expect((await account.findMapping(partly.invoice_id)).push_error).to.match(
        new RegExp(`^60 ${there.currency} .* but 100 at the provider`),
      );
    });

  if (exchanges.includes('credit_note'))
    it('a credit note goes out once, and is undone when it is void', async () => {
      const { account } = given;
      const { invoice_id } = await account.newPushed();
      const note_id = await account.credit(invoice_id, '30');
      await account.push();
      await account.push();
      expect([account.showCopies(invoice_id), there.listSentNotes(note_id)]).to.deep.equal([['open 70'], ['30']]);
      await account.request('POST', `/creditnotes/${note_id}/void`);
      await account.push();
      const after = [account.showCopies(invoice_id), there.listSentNotes(note_id)];
      if (!there.has_permanent_notes) return void expect(after).to.deep.equal([['open 100'], []]);
      expect(after).to.deep.equal([['open 70'], ['30']]);
      expect((await account.findMapping(note_id)).push_error).to.match(/ was voided here: void \w+ there$/);
    });
  else
    it('a credit note of a part needs a person, one of all voids the invoice there', async () => {
      const { account } = given;
      const { invoice_id } = await account.newPushed();
      await account.credit(invoice_id, '30');
      await account.push();
      expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
      expect((await account.findMapping(invoice_id)).push_error).to.match(
        new RegExp(`^70 ${there.currency} .* but 100 at the provider`),
      );
      const credited = await account.newPushed();
      await account.credit(credited.invoice_id, '100');
      await account.push();
      expect(account.showCopies(credited.invoice_id)).to.deep.equal(['void']);
      expect((await account.findMapping(credited.invoice_id)).push_error).to.equal(null);
    });

  if (exchanges.includes('deal'))
    it('a subscription goes out as a deal, once, and the deal follows its status', async () => {
      const { account } = given;
      const id = await account.newSubscription();
      await account.push();
      await account.push();
      expect(there.listDeals!(id)).to.deep.equal(['closedwon 100']);
      await account.request('POST', `/subscriptions/${id}/cancel`, { cancellation_type: 'immediate' });
      await account.push();
      expect(there.listDeals!(id)).to.deep.equal(['closedlost 100']);
      expect((await account.findMapping(id)).push_error).to.equal(null);
    });
  else
    it('a subscription is not sent', async () => {
      const { account } = given;
      const entity_id = await account.newSubscription();
      await account.push();
      expect(await account.findMapping(entity_id)).to.equal(undefined);
      const body = { entity_type: 'subscription', entity_id };
      const answer = await account.api.request('POST', '/integrations/sync', { body });
      expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect(answer.body.message).to.equal('no connected provider receives subscriptions');
      const sync_config = { deal: { inbound: false, outbound: true } };
      const path = `/connections/${account.connection_id}` as const;
      const refused = await account.api.request('PUT', path, { body: { sync_config } });
      expect([refused.status, refused.body.message]).to.deep.equal([
        400,
        `sync_config.deal.outbound: ${name} does not support it`,
      ]);
    });

  it('an invoice that is voided here is void there', async () => {
    const { account } = given;
    const { invoice_id } = await account.newPushed();
    await account.request('POST', `/invoices/${invoice_id}/void`);
    await account.push();
    await account.push();
    expect(account.showCopies(invoice_id)).to.deep.equal(['void']);
    expect((await account.findMapping(invoice_id)).push_error).to.equal(null);
  });

  if (there.deletePayment)
    for (const [whose, pay] of [
      ['was made there', async (_invoice_id: string, copy_id: string) => there.payCopy(copy_id)],
      ['was sent there', (invoice_id: string) => pushPayment(invoice_id)],
    ] as const)
      it(`a payment that ${whose} and is deleted there needs attention`, async () => {
        const { account } = given;
        const { invoice_id, copy_id } = await account.newPushed();
        const id_there = await pay(invoice_id, copy_id);
        await account.deliverAll();
        await account.read();
        expect((await account.findMapping(invoice_id)).attention_reason).to.equal(null);
        there.deletePayment!(id_there);
        await account.deliverAll();
        expect((await account.read()).ended).to.equal('done');
        const { attention_reason, next_pull_at } = await account.findMapping(invoice_id);
        expect(attention_reason).to.match(
          new RegExp(`^payment pay_\\w+ of 100 ${there.currency} is 0 at ${name} \\(${id_there}\\)$`),
        );
        expect(next_pull_at, 'it is open there again').to.not.equal(null);
        expect(await account.showPaid(invoice_id)).to.equal('SUCCEEDED 100');
      });

  it('an invoice that is void there and open here needs attention, once', async () => {
    const { account } = given;
    const { invoice_id, copy_id } = await account.newPushed();
    there.voidCopy(copy_id);
    await account.deliverAll();
    for (let times = 0; times < 2; times++) {
      const body = { entity_type: 'invoice', entity_id: invoice_id, method: 'pull' };
      await account.request('POST', '/integrations/sync', body);
      account.passSeconds(1);
      expect((await account.read()).ended).to.equal('done');
    }
    const { id, attention_reason } = await account.findMapping(invoice_id);
    expect(attention_reason).to.equal(`the invoice is void at ${name}, but 100 is open`);
    expect(await account.listSystemEvents('integration_mapping.needs_attention', id)).to.have.length(1);
    expect(await account.showPaid(invoice_id)).to.equal('PENDING 0');
  });
});
