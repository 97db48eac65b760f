/** The set of seen ids: never takes a seen one for new, at a bounded price in memory. */
import { expect } from 'chai';
import fc from 'fast-check';
import { IdentityHasher, toShardRange } from '../../../core/metering/event/identity.ts';
import { IdentitySet } from '../../../pipeline/identity/identity-set.ts';

describe('identity set', () => {
  it('remembers what a set of pairs remembers', () => {
    const half = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 0xffffffff }));
    fc.assert(
      fc.property(fc.array(fc.tuple(half, half), { maxLength: 400 }), fc.constantFrom(1, 2, 256), (pairs, tables) => {
        const ours = new IdentitySet(tables);
        const plain = new Set<string>();
        for (const [high, low] of pairs) {
          const key = `${high}.${high === 0 && low === 0 ? 1 : low}`;
          expect(ours.add(high, low)).to.equal(!plain.has(key));
          plain.add(key);
          expect(ours.size).to.equal(plain.size);
        }
      }),
    );
  });

  for (const partitions of [1, 64]) {
    it(`holds the ids of one of ${partitions} partitions in at most 16 bytes each, and knows them all again`, () => {
      const { first, last } = toShardRange(0, partitions);
      const hasher = new IdentityHasher({ tenant_id: 'a', environment_id: 'b' });
      const set = new IdentitySet();
      const each = (visit: (high: number, low: number) => void) => {
        for (let index = 0; index < 300_000; index++) {
          hasher.hash(`evt_${index}`);
          const shard = first + ((hasher.high >>> 20) % (last - first + 1));
          visit(((shard << 20) | (hasher.high & 0xfffff)) >>> 0, hasher.low);
        }
      };
      let added = 0;
      each((high, low) => {
        if (set.add(high, low)) added++;
        if (added % 1000 === 0 && added > 50_000) expect(set.bytes / set.size).to.be.at.most(16);
      });
      expect(added).to.be.greaterThan(299_990);
      each((high, low) => expect(set.add(high, low)).to.equal(false));
    });
  }
});
