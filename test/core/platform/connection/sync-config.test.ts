/** docs/integrations/README.md, "What is exchanged". */
import { expect } from 'chai';
import { checkSyncConfig, isSynced, syncConfigShape } from '../../../../core/platform/connection/sync-config.ts';

const config = (given: object) => syncConfigShape.parse(given);

describe('the exchanged records of a connection', () => {
  const supported = config({
    invoice: { inbound: true, outbound: true },
    customer: { inbound: false, outbound: true },
  });

  it('a direction that the provider lacks is refused by its name', () => {
    const wanted = config({ customer: { inbound: true, outbound: true } });
    expect(() => checkSyncConfig(wanted, supported, 'stripe')).to.throw(
      /^sync_config.customer.inbound: stripe does not/,
    );
    expect(() => checkSyncConfig(config({ plan: { inbound: false, outbound: true } }), supported, 'stripe')).to.throw(
      /^sync_config.plan.outbound/,
    );
    checkSyncConfig(
      config({ plan: { inbound: false, outbound: false }, invoice: supported.invoice }),
      supported,
      'stripe',
    );
  });

  it('without a configuration everything is exchanged; a kind that it does not name is not', () => {
    const outbound = { entity: 'invoice', direction: 'outbound' } as const;
    expect(isSynced(null, outbound)).to.equal(true);
    expect(isSynced(config({}), outbound)).to.equal(false);
    expect(isSynced(config({ invoice: { inbound: true, outbound: false } }), outbound)).to.equal(false);
  });
});
