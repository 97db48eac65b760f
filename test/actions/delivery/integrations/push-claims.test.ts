/**
 * docs/integrations/README.md, "Sending a record": one attempt at a time sends a record. Paddle has no idempotency keys, so two attempts at
 * once would create a record twice.
 */
import { expect } from 'chai';
import { callWithin, LateCall } from '../../../../actions/foundation/connections/call-deadline.ts';
import { withClaim } from '../../../../actions/foundation/connections/push-claims.ts';
import { IntegrationMappingModel } from '../../../../storage/models/foundation/integration-mapping.ts';
import { ConnectedAccount } from '../../../support/providers/connected-account.ts';
import { PaddleDouble } from '../../../support/providers/paddle-double.ts';
import { skipPace } from '../../../support/providers/skip-pace.ts';

const ATTEMPTS = 5;

describe('attempts at once to send one record', () => {
  const there = new PaddleDouble();
  let account: ConnectedAccount;
  let stopSkipping = () => {};
  before(async () => {
    stopSkipping = skipPace(there.fake);
    account = await ConnectedAccount.open(there);
  });
  after(async () => {
    stopSkipping();
    await account.stop();
  });

  const sync = (entity_type: string, entity_id: string) =>
    account.api.request('POST', '/integrations/sync', { body: { entity_type, entity_id } });
  const mappings = () => account.api.services.postgres('integration_mappings');
  const claim = (entity_id: string, until: string) =>
    mappings()
      .where({ entity_id })
      .update({ claimed_by: 'another attempt', claimed_until: account.api.services.postgres.raw(until) });

  /** The first attempt is in its call while the others begin; the job is one of them. */
  const sendAtOnce = async (entity_type: 'customer' | 'invoice' | 'credit_note', entity_id: string) => {
    await account.dispatch();
    const { arrived, release } = there.hold(entity_type);
    const first = sync(entity_type, entity_id);
    await arrived;
    const others = Array.from({ length: ATTEMPTS - 1 }, () => sync(entity_type, entity_id));
    const job = account.push();
    release();
    for (const { status, text } of await Promise.all([first, ...others])) expect(status, text).to.equal(200);
    expect((await job).ended).to.equal('done');
    const rows = await mappings().where({ entity_id });
    expect(rows).to.have.length(1);
    expect(rows[0]).to.include({ mapping_state: 'made', push_error: null, claimed_until: null });
  };

  it('create one customer', async () => {
    const customer_id = await account.newCustomer();
    await sendAtOnce('customer', customer_id);
    expect(there.listCustomers(customer_id)).to.have.length(1);
  });

  it('create one invoice', async () => {
    const invoice_id = await account.newInvoice();
    await sendAtOnce('invoice', invoice_id);
    expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
  });

  it('create one credit note', async () => {
    const { invoice_id } = await account.newPushed();
    const note_id = await account.credit(invoice_id, '30');
    await sendAtOnce('credit_note', note_id);
    expect([account.showCopies(invoice_id), there.listSentNotes(note_id)]).to.deep.equal([['open 70'], ['30']]);
  });

  it('search for the record after a lost answer, however soon', async () => {
    const { invoice_id } = await account.newPushed();
    const note_id = await account.credit(invoice_id, '30');
    await account.dispatch();
    there.disturb('credit_note', 'lost_answer');
    const answers = await Promise.all(Array.from({ length: ATTEMPTS }, () => sync('credit_note', note_id)));
    expect(answers.map(({ status }) => status).toSorted()).to.deep.equal([200, 200, 200, 200, 503]);
    expect([account.showCopies(invoice_id), there.listSentNotes(note_id)]).to.deep.equal([['open 70'], ['30']]);
  });

  it('wait after a late call, whose last request may still create the record', async () => {
    const invoice_id = await account.newInvoice();
    await account.dispatch();
    const { postgres } = account.api.services;
    const [{ id, tenant_id, environment_id }] = await mappings().where({ entity_id: invoice_id });
    const mapping = await IntegrationMappingModel.fetch({ tenant_id, environment_id }, id, { database: postgres });
    const unanswered = () => new Promise<never>(() => {});
    const failure = await withClaim({ postgres }, mapping, () => callWithin(1, unanswered)).catch((error) => error);
    expect(failure).to.be.instanceOf(LateCall);
    expect((await sync('invoice', invoice_id)).status).to.equal(409);
    expect(account.showCopies(invoice_id)).to.deep.equal([]);
    await claim(invoice_id, 'clock_timestamp()');
    expect((await account.push()).ended).to.equal('done');
    expect(account.showCopies(invoice_id)).to.deep.equal(['open 100']);
  });

  it('wait for the attempt that has the claim: a request is refused, the job sends others; an expired claim is taken over', async () => {
    const [claimed, other] = [await account.newInvoice(), await account.newInvoice()];
    await account.dispatch();
    const requests = there.fake.requests.length;
    await claim(claimed, `clock_timestamp() + interval '1 hour'`);
    const [answer, pushed] = await Promise.all([sync('invoice', claimed), account.push()]);
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([409, 'already_exists']);
    expect(answer.body.message).to.equal(`invoice ${claimed} is being sent to paddle by another request or job`);
    expect(pushed.ended).to.equal('paused');
    expect([account.showCopies(claimed), account.showCopies(other)]).to.deep.equal([[], ['open 100']]);
    expect(there.fake.requests.length).to.be.greaterThan(requests);
    expect((await account.findConnection()).paused_until).to.equal(null);
    await claim(claimed, 'clock_timestamp()');
    expect((await account.push()).ended).to.equal('done');
    expect(account.showCopies(claimed)).to.deep.equal(['open 100']);
  });
});
