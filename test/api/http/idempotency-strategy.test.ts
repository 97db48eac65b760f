/**
 * How each POST is done once though its process is killed before it could answer (api/http/idempotency-strategy.ts). A new operation stands here with its
 * way, or this fails: one that makes a record or moves money has `again` or a key of its own.
 */
import { expect } from 'chai';
import { idempotencyStrategy } from '../../../api/http/idempotency-strategy.ts';
import { routes } from '../../../api/resources.ts';

/** Those that are done again and do nothing twice. */
const SAME: Readonly<Record<string, string>> = {
  disableMeter: 'of a meter that is archived nothing changes',
  ingestEvent: 'an id has one effect, and one that is made follows from the key',
  ingestEventsBulk: 'an id has one effect, and one that is made follows from the key',
  ingestRawEventsBulk: 'an id has one effect, and one that is made follows from the key',
  ingestOtlpMetrics: 'the ids follow from what was measured',
  createTask: 'the id of the task follows from the key',
  uploadTask: 'the id of the task follows from the key',
  voidEvent: 'an event that is void is void',
  replaceEvent: 'what it is replaced by is the same',
  replayDeadLetters: 'an id has one effect',
  commitReservation: 'what was committed is answered, and sent under the same ids',
  releaseReservation: 'what is released is answered as it is',
  scheduleUpdateBillingPeriod: 'nothing is done',
  testConnection: 'it is asked whose account it is',
  startCardSetup: 'the provider recognizes the key, and a setup alone charges nothing',
  retryInboundWebhook: 'an event that was processed is refused',
  syncIntegration: 'a record that has a counterpart is not sent again',
};
/** The key that they have in their body follows from the header where it states none. */
const INNER_KEY = ['createPayment', 'refundPayment', 'topUpWallet', 'debitWallet', 'checkEntitlement'];
/** Nobody can read the answer again: it is told which record was made. */
const SHOWN_ONCE = ['createUser', 'createApiKey', 'createWebhookEndpoint', 'rotateWebhookSecret', 'initiateOAuth'];
/** They write nothing, and ask for another permission than one to read. */
const READS = ['parsePricing', 'previewEventVoid', 'previewEventReplacement'];

describe('the ways in which a POST is done once', () => {
  const posts = routes.filter(({ method, access }) => method === 'post' && access !== 'public');
  const called = (way: string) =>
    posts
      .filter((route) => idempotencyStrategy(route) === way && !route.access.endsWith(':read'))
      .map((route) => route.operation_id);

  it('each operation has one', () => {
    const without = posts
      .filter((route) => idempotencyStrategy(route) === undefined)
      .map(({ operation_id }) => operation_id);
    expect(without).to.deep.equal([]);
  });

  it('those that note nothing are the ones that are listed here', () => {
    expect(called('same')).to.have.members(Object.keys(SAME));
    expect(called('inner_key')).to.have.members(INNER_KEY);
    expect(called('shown_once')).to.have.members(SHOWN_ONCE);
    expect(called('reads')).to.have.members(READS);
  });

  it('an answer that is shown once, or has a client secret, is stored encrypted', () => {
    const secret = posts.filter(({ shows_secret }) => shows_secret).map(({ operation_id }) => operation_id);
    expect(secret).to.have.members([...SHOWN_ONCE, 'startCardSetup']);
  });

  it('only who may write makes what is noted', () => {
    const noted = posts.filter((route) => typeof idempotencyStrategy(route) === 'object');
    expect(noted.length).to.be.greaterThan(40);
    expect(noted.filter(({ access }) => access.endsWith(':read'))).to.deep.equal([]);
  });
});
