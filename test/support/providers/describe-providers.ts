/** Defines the same tests for every provider with an account, each with its fake and an environment that is connected to it. */
import { expect } from 'chai';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { Exchange } from '../../../integrations/provider.ts';
import { findInvoiceFaults } from '../../../storage/audit/invoices.ts';
import { ConnectedAccount } from './connected-account.ts';
import { PROVIDER_DOUBLES } from './doubles.ts';
import type { ProviderDouble } from './provider-double.ts';
import { skipPace } from './skip-pace.ts';

type TestedProvider = {
  readonly name: string;
  readonly exchanges: readonly Exchange[];
  readonly there: ProviderDouble;
  /** The account is set before the first test runs. */
  readonly given: { account: ConnectedAccount };
};

export function describeProviders(title: string, define: (provider: TestedProvider) => void): void {
  for (const [name, { exchanges, requests_per_second }] of Object.entries(listCapable('account')))
    describe(`${name}: ${title}`, () => {
      const there = PROVIDER_DOUBLES[name]!();
      const given = {} as TestedProvider['given'];
      let stopSkipping = () => {};
      before(async () => {
        stopSkipping = skipPace(there.fake, requests_per_second);
        given.account = await ConnectedAccount.open(there);
      });
      beforeEach(() => {
        there.fake.clearDisturbances();
        there.takeWebhooks();
      });
      afterEach(async () => {
        const { postgres } = given.account.api.services;
        expect(await findInvoiceFaults(postgres, { invoices: null, limit: 5 })).to.deep.equal([]);
      });
      after(async () => {
        stopSkipping();
        await given.account.stop();
      });
      define({ name, exchanges, there, given });
    });
}
