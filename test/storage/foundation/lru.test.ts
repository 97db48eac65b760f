import { expect } from 'chai';
import { createLru } from '../../../storage/foundation/lru.ts';
import { until } from '../../support/until.ts';

describe('a cache of limited size', () => {
  it('returns no expired value, but retains it for readers that allow it', async () => {
    const cache = createLru<string>(10, 1);
    cache.set('key', 'value');
    await until('it has expired', async () => cache.get('key') === undefined);
    expect(cache.has('key')).to.equal(false);
    expect(cache.peek('key', { allowStale: true })).to.equal('value');
  });
});
