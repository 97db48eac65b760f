/** docs/integrations/whop.md: a provider without customers saves payment methods of ours, and invoices are addressed by name and email. */
import { expect } from 'chai';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { WhopDouble } from '../../../support/providers/whop-double.ts';

describe('a provider without customers', () => {
  const there = new WhopDouble();
  let account: ConnectedAccount;

  before(async () => {
    account = await ConnectedAccount.open(there);
  });
  after(() => account.stop());

  const listMethods = async (customer_id: string) => {
    const { body } = await account.api.request('GET', `/payments/customers/${customer_id}/methods`);
    return JSON.stringify(body);
  };

  it('an invoice has the name and email of its customer', async () => {
    const { copy_id } = await account.newPushed();
    const { email_address } = there.fake.book.invoices.get(copy_id)!;
    expect(email_address).to.match(/^books\d+@example\.com$/);
    expect(there.fake.last_body).to.match(/"customer_name":"Acme \d+"/);
  });

  it('a payment method that is entered on its page belongs to the customer that asked', async () => {
    const [customer_id, other_id] = [await account.newCustomer(), await account.newCustomer()];
    const body = { provider: 'whop', success_url: 'https://seller.example/saved', set_default: true };
    await account.request('POST', `/payments/customers/${customer_id}/setup/intent`, body);
    const [page] = there.fake.book.checkouts.values();
    const { member, payment_method } = there.fake.book.completeSetup(page!.id);
    await account.deliverAll();
    await account.read();
    const method = `${(member as { id: string }).id}:${(payment_method as { id: string }).id}`;
    expect(await listMethods(customer_id)).to.include(method);
    expect(await listMethods(other_id)).not.to.include(method);
  });

  it('a setup that names no customer here saves nothing', async () => {
    const metadata = { farthing_customer_id: 'cust_unknown' };
    const page = there.fake.book.createCheckout({ account_id: 'biz_fake', mode: 'setup', metadata });
    there.fake.book.completeSetup(page.id);
    await account.deliverAll();
    await account.read();
    const [event] = await account.api.services.postgres('provider_events').orderBy('id', 'desc').limit(1);
    expect(event.event_state).to.equal('ignored');
  });
});
