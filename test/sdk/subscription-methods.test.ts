/** Every method that the published client has for subscriptions is driven by a test, or says here why it is answered with an error. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

// Errors of the client have classes of their own.
type Thrown = { statusCode?: number };

const OWN = 'subscription-methods.test.ts';

describe('the published client: all methods of subscriptions', () => {
  let api: TestApi;
  let sdk: Flexprice;
  before(async () => {
    api = await startTestApi();
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
  });
  after(() => api.stop());

  /** Subscriptions are not paused: the client hears that there is no such thing. */
  const absent: Record<string, () => Promise<unknown>> = {
    pauseSubscription: () => sdk.subscriptions.pauseSubscription('subs_1', { pauseMode: 'immediate' }),
    resumeSubscription: () => sdk.subscriptions.resumeSubscription('subs_1', { resumeMode: 'immediate' }),
    listSubscriptionPauses: () => sdk.subscriptions.listSubscriptionPauses('subs_1'),
  };
  for (const [name, call] of Object.entries(absent))
    it(`${name} is answered with 404`, async () => {
      const thrown = (await call().then(
        () => expect.fail('it was answered'),
        (error: unknown) => error,
      )) as Thrown;
      expect(thrown.statusCode, String(thrown)).to.equal(404);
    });

  it('every other one is driven', () => {
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(sdk.subscriptions)).filter(
      (name) => name !== 'constructor' && !(name in absent),
    );
    const tests = readdirSync(import.meta.dirname).filter((file) => file !== OWN);
    const text = tests.map((file) => readFileSync(join(import.meta.dirname, file), 'utf8')).join('\n');
    expect(methods.length).to.be.above(20);
    expect(methods.filter((name) => !text.includes(`subscriptions.${name}(`))).to.deep.equal([]);
  });
});
