import { expect } from 'chai';
import type { LRUCache } from 'lru-cache';
import { createLru } from '../../../storage/foundation/lru.ts';
import { until } from '../../support/until.ts';

describe('a cache of limited size', () => {
  it('returns no expired value, but retains it for readers that allow it', async () => {
    const cache: LRUCache<string, string> = createLru(10, 1);
    cache.set('key', 'value');
    await until('it has expired', async () => cache.get('key') === undefined);
    expect(cache.has('key')).to.equal(false);
    expect(cache.peek('key', { allowStale: true })).to.equal('value');
  });
});
