/** docs/integrations/README.md, "Reading an invoice", for every provider: a person credits or changes a copy there. */
import { expect } from 'chai';
import { describeProviders } from '../../../support/providers/describe-providers.ts';

describeProviders('copies that a person changes', ({ name, there, given }) => {
  const readAttention = async (invoice_id: string): Promise<string | null> => {
    const { account } = given;
    const body = { entity_type: 'invoice', entity_id: invoice_id, method: 'pull' };
    await account.request('POST', '/integrations/sync', body);
    account.passSeconds(1);
    expect((await account.read()).ended).to.equal('done');
    return (await account.findMapping(invoice_id)).attention_reason;
  };

  if (there.creditCopy)
    it('a credit there that a person made needs attention, until it is linked to a credit note', async () => {
      const { account } = given;
      const { invoice_id, copy_id } = await account.newPushed();
      await account.credit(invoice_id, '5');
      await account.push();
      expect(await readAttention(invoice_id), 'a credit note that was sent is known').to.equal(null);
      const credit_id = there.creditCopy!(copy_id, '30');
      const { id } = await account.findMapping(invoice_id);
      for (let times = 0; times < 2; times++)
        expect(await readAttention(invoice_id)).to.equal(
          `35 ${there.currency} of the invoice is credited at ${name}, but 5 from here: ${credit_id} of 30 is not known here`,
        );
      expect(await account.listSystemEvents('integration_mapping.needs_attention', id)).to.have.length(1);
      expect(await account.showPaid(invoice_id)).to.equal('PENDING 0');
      const note_id = await account.credit(invoice_id, '30', { process_credit_note: false });
      const link = {
        provider_type: name,
        entity_type: 'credit_note',
        entity_id: note_id,
        provider_entity_id: credit_id,
      };
      await account.request('POST', '/integrations/link', link);
      await account.request('POST', `/creditnotes/${note_id}/finalize`);
      await account.push();
      expect(await readAttention(invoice_id)).to.equal(null);
      expect(account.showCopies(invoice_id)).to.deep.equal(['open 65']);
    });

  if (there.creditCopy)
    it('a credit there is noticed by its webhook', async () => {
      const { account } = given;
      const { invoice_id, copy_id } = await account.newPushed();
      there.creditCopy!(copy_id, '30');
      await account.deliverAll();
      expect((await account.read()).ended).to.equal('done');
      expect((await account.findMapping(invoice_id)).attention_reason).to.match(
        new RegExp(`^30 ${there.currency} of the invoice is credited`),
      );
    });

  if (there.editCopy)
    it('another total there needs attention', async () => {
      const { account } = given;
      const { invoice_id, copy_id } = await account.newPushed();
      there.editCopy!(copy_id, '80');
      await account.deliverAll();
      expect((await account.read()).ended).to.equal('done');
      expect((await account.findMapping(invoice_id)).attention_reason).to.equal(
        `the total of the invoice is 80 ${there.currency} at ${name}, but 100 ${there.currency} was sent`,
      );
      there.editCopy!(copy_id, '100');
      expect(await readAttention(invoice_id)).to.equal(null);
    });

  if (there.editPayment)
    it('a payment that was sent and has another amount there needs attention', async () => {
      const { account } = given;
      const { invoice_id } = await account.newPushed();
      const payment_id = await account.pay(invoice_id, '60');
      await account.push();
      const { provider_entity_id } = await account.findMapping(payment_id);
      for (const amount of ['45', '75']) {
        there.editPayment!(provider_entity_id, amount);
        await account.deliverAll();
        expect((await account.read()).ended).to.equal('done');
        expect((await account.findMapping(invoice_id)).attention_reason).to.equal(
          `payment ${payment_id} of 60 ${there.currency} is ${amount} at ${name} (${provider_entity_id})`,
        );
      }
    });
});
