/** Ids with bounded memory: what was seen is never taken for new, through files, merges, restarts and damage. */

import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { fuseHas, makeFuseFilter } from '../../pipeline/fuse-filter.ts';
import { IdentityFilter, writeIdentityFile } from '../../pipeline/identity-filter.ts';
import { IdentityMemory } from '../../pipeline/identity-memory.ts';

/** Distinct pairs from a seed. */
function pairsFrom(seed: number, count: number): [number, number][] {
  const pairs: [number, number][] = [];
  for (let index = 0; index < count; index++) {
    const mixed = Math.imul(index ^ (index >>> 16) ^ seed, 0x85ebca6b);
    pairs.push([(Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35) ^ seed) >>> 0, (index * 2654435761 + seed) >>> 0]);
  }
  return pairs;
}

describe('fuse filter', () => {
  it('says yes to each of its keys, however many there are', () => {
    const key = fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff));
    const keys = fc.uniqueArray(key, { maxLength: 300, selector: ([high, low]) => `${high}.${low}` });
    fc.assert(
      fc.property(keys, (pairs) => {
        const filter = makeFuseFilter(Uint32Array.from(pairs.flat()));
        for (const pair of pairs) expect(fuseHas(filter, pair, (place) => filter.fingerprints[place]!)).to.equal(true);
      }),
    );
  });

  it('takes at most 10 bits per key, and says yes to one stranger in about 256', () => {
    const pairs = pairsFrom(7, 200_000);
    const filter = makeFuseFilter(Uint32Array.from(pairs.flat()));
    expect((filter.fingerprints.length * 8) / pairs.length).to.be.below(10);
    const strangers = pairsFrom(99, 200_000).filter((pair) =>
      fuseHas(filter, pair, (place) => filter.fingerprints[place]!),
    );
    expect(strangers.length / 200_000).to.be.below(1 / 200);
  });
});

describe('identity memory', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-ids-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  /** What ClickHouse would hold: hashes with their offset. */
  type Stored = { pair: [number, number]; offset: bigint }[];
  const open = (
    stored: Stored,
    next: bigint,
    hot_ids: number,
    place: { partition_count?: number; installation?: string } = {},
  ) =>
    IdentityMemory.open(
      { dir, hot_ids, filter_bytes: 1_000 },
      { partition: 0, partition_count: 1, installation: 'a', ...place },
      {
        next,
        read: async (from, visit) => {
          for (const { pair, offset } of stored) {
            if (offset < from) continue;
            const pause = visit(...pair);
            if (pause) await pause;
          }
        },
      },
    );

  it('knows every id again after any number of seals, merges and restarts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ count: fc.integer({ min: 1, max: 60 }), restart: fc.boolean() }), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.integer({ min: 5, max: 80 }),
        async (slices, hot_ids) => {
          rmSync(dir, { recursive: true, force: true });
          const stored: Stored = [];
          let next = 0n;
          let memory = await open(stored, next, hot_ids);
          const all = pairsFrom(slices.length, 12 * 60);
          for (const { count, restart } of slices) {
            for (let index = 0; index < count; index++) {
              const pair = all[stored.length]!;
              memory.add(...pair);
              stored.push({ pair, offset: next });
            }
            next++;
            await memory.settle(next);
            expect(memory.size).to.be.at.most(hot_ids + 60);
            if (!restart) continue;
            memory.close();
            memory = await open(stored, next, hot_ids);
          }
          for (const { pair } of stored) expect(memory.add(...pair)).to.equal(false);
          memory.close();
        },
      ),
      { numRuns: 30 },
    );
  });

  it('reads only what stands behind the files at start, and nearly every stranger is new', async () => {
    const stored: Stored = pairsFrom(3, 50_000).map((pair, index) => ({ pair, offset: BigInt(index) }));
    (await open(stored, 50_000n, 10_000)).close();
    const more: Stored = pairsFrom(4, 100).map((pair, index) => ({ pair, offset: BigInt(50_000 + index) }));
    const memory = await open([...stored, ...more], 50_100n, 10_000);
    expect(memory.size).to.equal(100);
    expect(memory.old.ids).to.equal(50_000);
    const taken = pairsFrom(5, 20_000).filter((pair) => !memory.add(...pair));
    expect(taken.length / 20_000).to.be.below(memory.old.files / 200);
    memory.close();
  });

  it('makes the files again when one is damaged or missing, or the log has other partitions', async () => {
    const stored: Stored = pairsFrom(3, 5_000).map((pair, index) => ({ pair, offset: BigInt(index) }));
    const files = () => readdirSync(join(dir, 'partition-0')).filter((name) => name.endsWith('.ids'));
    const path = () => join(dir, 'partition-0', files()[0]!);
    const spoil: (() => void)[] = [
      () => truncateSync(path(), 10),
      () => rmSync(path()),
      () => writeFileSync(join(dir, 'partition-0', 'manifest.json'), '{'),
    ];
    for (const harm of spoil) {
      (await open(stored, 5_000n, 1_000)).close();
      harm();
      const memory = await open(stored, 5_000n, 1_000);
      for (const { pair } of stored) expect(memory.add(...pair)).to.equal(false);
      memory.close();
    }
    for (const place of [{ partition_count: 2 }, { installation: 'b' }]) {
      const memory = await open(stored.slice(0, 3_000), 5_000n, 1_000, place);
      expect(memory.old.ids).to.equal(3_000);
      memory.close();
    }
    // Files that know more of the log than the stores do belong to other stores.
    const younger = await open([], 10n, 1_000, { installation: 'b' });
    expect(younger.old.ids).to.equal(0);
    younger.close();
  });

  it('a file answers the same from memory and from the disk', async () => {
    const pairs = pairsFrom(11, 3_000);
    const path = join(dir, 'a.ids');
    await writeIdentityFile(path, {
      parts: 4,
      pairsOf: (part) => Uint32Array.from(pairs.filter(([high]) => (high & 3) === part).flat()),
    });
    const filter = IdentityFilter.open(path);
    const asked = [...pairs, ...pairsFrom(12, 3_000)];
    const fromDisk = asked.map((pair) => filter.has(...pair));
    filter.reside(true);
    expect(asked.map((pair) => filter.has(...pair))).to.deep.equal(fromDisk);
    expect(fromDisk.slice(0, pairs.length)).to.not.include(false);
    filter.close();
  });
});
