/** Ids with bounded memory: what was seen is never taken for new, through files, merges, restarts and damage. */

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { hasKey, makeFuseFilter } from '../../../pipeline/identity/fuse-filter.ts';
import { writeIdentityFile } from '../../../pipeline/identity/identity-file.ts';
import { readIdentityFiles } from '../../../pipeline/identity/identity-files.ts';
import { IdentityFilter } from '../../../pipeline/identity/identity-filter.ts';
import { IdentityMemory } from '../../../pipeline/identity/identity-memory.ts';

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
        for (const pair of pairs) expect(hasKey(filter, pair, (place) => filter.fingerprints[place]!)).to.equal(true);
      }),
    );
  });

  it('takes at most 10 bits per key, and says yes to one stranger in about 256', () => {
    const pairs = pairsFrom(7, 200_000);
    const filter = makeFuseFilter(Uint32Array.from(pairs.flat()));
    expect((filter.fingerprints.length * 8) / pairs.length).to.be.below(10);
    const strangers = pairsFrom(99, 200_000).filter((pair) =>
      hasKey(filter, pair, (place) => filter.fingerprints[place]!),
    );
    expect(strangers.length / 200_000).to.be.below(1 / 200);
  });
});

describe('identity memory', () => {
  let dir: string;
  let remade: string[];
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'farthing-ids-'));
    remade = [];
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
      { dir, hot_ids, filter_bytes: 1_000, onRemade: (_, why) => remade.push(why) },
      { partition: 0, partition_count: 1, installation: 'a', ...place },
      {
        next,
        read: async ({ from, before }, visit) => {
          for (const { pair, offset } of stored) {
            if (offset < from || offset >= before) continue;
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
            await memory.sealIfFull(next);
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
    const seal = await writeIdentityFile(path, {
      parts: 4,
      readPairs: (part) => Uint32Array.from(pairs.filter(([high]) => (high & 3) === part).flat()),
    });
    const filter = await IdentityFilter.open(path, seal, () => false);
    const asked = [...pairs, ...pairsFrom(12, 3_000)];
    const fromDisk = asked.map((pair) => filter.has(...pair));
    await filter.reside(true);
    expect(asked.map((pair) => filter.has(...pair))).to.deep.equal(fromDisk);
    expect(fromDisk.slice(0, pairs.length)).to.not.include(false);
    filter.close();
  });

  describe('never trusts a byte that is not as it was written', () => {
    const IDS = 2_000;
    const HOT = 800;
    const stored: Stored = pairsFrom(3, IDS).map((pair, index) => ({ pair, offset: BigInt(index) }));
    const next = BigInt(IDS);
    const partition = () => join(dir, 'partition-0');
    const whole = () => join(dir, 'whole');
    const names = () => readdirSync(partition()).sort();

    /** Three files, as they are before anything happens to them. */
    beforeEach(async () => {
      (await open(stored, next, HOT)).close();
      expect(names().filter((name) => name.endsWith('.ids'))).to.have.length.above(2);
      cpSync(partition(), whole(), { recursive: true });
    });
    const restore = () => {
      rmSync(partition(), { recursive: true, force: true });
      cpSync(whole(), partition(), { recursive: true });
      remade = [];
    };
    /** Every known id is known, and nearly every stranger is new: as if nothing had happened. */
    const opensRight = async (until = next) => {
      const memory = await open(stored, until, HOT);
      const forgotten = stored.filter(({ offset }) => offset < until).filter(({ pair }) => memory.add(...pair));
      expect(forgotten).to.deep.equal([]);
      expect(pairsFrom(5, 500).filter((pair) => memory.add(...pair)).length).to.be.above(450);
      memory.close();
    };
    const bytesOf = (name: string) => readFileSync(join(partition(), name));

    it('neither one of them nor a stretch of zeros, wherever it is', async () => {
      const harm = fc.record({
        name: fc.constantFrom(...names()),
        at: fc.double({ min: 0, max: 0.999_999, noNaN: true }),
        flip: fc.integer({ min: 1, max: 255 }),
        zeros: fc.option(fc.integer({ min: 1, max: 9_000 })),
      });
      const spoil = fc.asyncProperty(harm, async ({ name, at, flip, zeros }) => {
        restore();
        const bytes = bytesOf(name);
        const before = Buffer.from(bytes);
        const place = Math.floor(at * bytes.length);
        if (zeros === null) bytes[place]! ^= flip;
        else bytes.fill(0, place, Math.min(bytes.length, place + zeros));
        writeFileSync(join(partition(), name), bytes);
        await opensRight();
        expect(remade).to.have.length(bytes.equals(before) ? 0 : 1);
      });
      await fc.assert(spoil, { numRuns: 60 });
    });

    it('nor a file that is cut short, longer, another, older or away', async () => {
      const [first, second] = names().filter((name) => name.endsWith('.ids')) as [string, string];
      const path = (name: string) => join(partition(), name);
      const harms: [what: string, harm: () => void][] = [
        ['cut in the middle', () => truncateSync(path(first), Math.floor(bytesOf(first).length / 2))],
        ['cut by its last byte', () => truncateSync(path(first), bytesOf(first).length - 1)],
        ['empty', () => truncateSync(path(first), 0)],
        ['longer', () => writeFileSync(path(first), Buffer.concat([bytesOf(first), Buffer.alloc(1)]))],
        ['in the place of another', () => writeFileSync(path(first), bytesOf(second))],
        ['away', () => rmSync(path(first))],
        ['without a manifest', () => rmSync(path('manifest.json'))],
        ['with a manifest of nothing', () => writeFileSync(path('manifest.json'), '')],
      ];
      for (const [what, harm] of harms) {
        restore();
        harm();
        await opensRight();
        expect(remade, what).to.have.length(1);
      }
    });

    it('nor what an older manifest says of files that are there, or not any more', async () => {
      const more: Stored = pairsFrom(9, 2_000).map((pair, index) => ({ pair, offset: next + BigInt(index) }));
      (await open([...stored, ...more], next + 2_000n, HOT)).close();
      writeFileSync(join(partition(), 'manifest.json'), readFileSync(join(whole(), 'manifest.json')));
      const memory = await open([...stored, ...more], next + 2_000n, HOT);
      expect([...stored, ...more].filter(({ pair }) => memory.add(...pair))).to.deep.equal([]);
      memory.close();
    });

    it('nor hashes that are damaged when they are merged, long after the start', async () => {
      const memory = await open(stored, next, HOT);
      for (const name of names().filter((each) => each.endsWith('.ids'))) {
        const bytes = bytesOf(name);
        // The hashes are by far the longest part of a small file's end, before its directory.
        for (let at = 0; at < bytes.length; at += 97) bytes[at]! ^= 0x10;
        writeFileSync(join(partition(), name), bytes);
      }
      const later: Stored = pairsFrom(9, 3_000).map((pair, index) => ({ pair, offset: next + BigInt(index) }));
      for (const [index, { pair, offset }] of later.entries()) {
        memory.add(...pair);
        stored.push({ pair, offset });
        if (index % 500 === 499) await memory.sealIfFull(offset + 1n);
      }
      expect(remade).to.have.length(1);
      expect(stored.filter(({ pair }) => memory.add(...pair))).to.deep.equal([]);
      memory.close();
      stored.length = IDS;
    });

    it('and tells an audit what is in them', async () => {
      const [answer] = await readIdentityFiles(dir);
      if (!answer?.ok) return expect.fail(answer?.why);
      const sum = stored.reduce((all, { pair: [high, low] }) => all + ((BigInt(high) << 32n) | BigInt(low)), 0n);
      const { partition: number, count, until } = answer.files;
      expect([number, count, until]).to.deep.equal([0, IDS, next]);
      expect(answer.files.sum).to.equal(BigInt.asUintN(64, sum));
      const name = names().find((each) => each.endsWith('.ids'))!;
      const bytes = bytesOf(name);
      bytes[1_000]! ^= 1;
      writeFileSync(join(partition(), name), bytes);
      const [damaged] = await readIdentityFiles(dir);
      expect(damaged).to.deep.include({ partition: 0, ok: false });
    });
  });
});
