/** Which keys of a raw event are ours misspelt, and which its own. */
import { expect } from 'chai';
import { canHold, findMisspeltKey } from '../../../../core/metering/event/raw-keys.ts';

describe('a key of a raw event', () => {
  const cases: [key: string, meant: string | null][] = [
    ['timestmp', 'timestamp'],
    ['timestmap', 'timestamp'],
    ['Timestamp', 'timestamp'],
    ['time-stamp', 'timestamp'],
    ['propertes', 'properties'],
    ['eventName', 'event_name'],
    ['evnt_id', 'event_id'],
    ['event_di', 'event_id'],
    ['external_custmer_id', 'external_customer_id'],
    ['externalCustomerId', 'external_customer_id'],
    ['customerId', 'customer_id'],
    ['sorce', 'source'],
    // What sources call things of their own.
    ['customer_ip', null],
    ['event_type', null],
    ['event_ts', null],
    ['resource', null],
    ['time', null],
    ['name', null],
    ['constructor', null],
    ['t'.repeat(100_000), null],
    ['', null],
  ];
  for (const [key, meant] of cases) {
    it(`${key.slice(0, 30)} ${meant ? `is ${meant}` : 'is its own'}`, () => {
      expect(findMisspeltKey({ [key]: 1 })?.meant ?? null).to.equal(meant);
      expect(canHold(key)).to.equal(meant === null);
    });
  }

  it('is its own beside the one that it is like', () => {
    expect(findMisspeltKey({ timestamp: 'x', timestmp: 'y', event_name: 'x', event_names: [] })).to.equal(undefined);
    expect(findMisspeltKey({ timestmp: 'y', sorce: 'x' })).to.deep.equal({ key: 'timestmp', meant: 'timestamp' });
  });
});
