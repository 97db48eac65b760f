/** The tree over the events of a line, against what certificate transparency publishes of the same tree. */
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { formatLeaf } from '../../../../core/invoicing/proof/leaf.ts';
import { type Hash, MerkleTree } from '../../../../core/invoicing/proof/merkle.ts';
import { samples } from '../../../support/samples.ts';

const sha256: Hash = (...parts) => createHash('sha256').update(Buffer.concat(parts)).digest();
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

function treeOf(leaves: readonly Uint8Array[], watched = -1) {
  const tree = new MerkleTree(sha256);
  const hashes = leaves.map((leaf, index) => tree.add(leaf, { watched: index === watched }));
  return { ...tree.finish(), hashes };
}

/** As the standard defines it: split at the greatest power of two below the count. */
function rootOf(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Uint8Array.of(0), leaves[0]!);
  let left = 1;
  while (left * 2 < leaves.length) left *= 2;
  return sha256(Uint8Array.of(1), rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)));
}

describe('the Merkle tree of a usage line', () => {
  const published = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ];
  for (const [size, root] of [
    [0, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    [1, '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d'],
    [2, 'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125'],
    [3, 'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77'],
    [8, '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328'],
  ] as const)
    it(`of ${size} leaves has the published root`, () => {
      const leaves = published.slice(0, size).map((text) => Buffer.from(text, 'hex'));
      expect(hex(treeOf(leaves).root)).to.equal(root);
    });

  const leaves = fc.array(fc.uint8Array({ maxLength: 4 }), { maxLength: 70 });

  it('grows leaf by leaf to what the standard defines of all of them', () => {
    fc.assert(
      fc.property(leaves, (all) => {
        expect(hex(treeOf(all).root)).to.equal(hex(rootOf(all)));
      }),
      { numRuns: samples(200) },
    );
  });

  it('leads from every leaf to the root', () => {
    fc.assert(
      fc.property(leaves, fc.nat(), (all, chosen) => {
        if (all.length === 0) return;
        const index = chosen % all.length;
        const { root, path, hashes } = treeOf(all, index);
        const top = path.reduce(
          (hash, { side, hash: beside }) =>
            side === 'left' ? sha256(Uint8Array.of(1), beside, hash) : sha256(Uint8Array.of(1), hash, beside),
          hashes[index]!,
        );
        expect(hex(top)).to.equal(hex(root));
      }),
      { numRuns: samples(200) },
    );
  });

  it('has leaves of which no two have one text', () => {
    const leaf = {
      event_id: 'ä1',
      timestamp_us: 1_767_225_600_000_000,
      external_customer_id: 'acme',
      value: '1.5',
      group: '',
    };
    expect(formatLeaf(leaf)).to.equal('3:ä1,16:1767225600000000,4:acme,3:1.5,0:,');
    expect(formatLeaf({ ...leaf, external_customer_id: 'acme,3:1.5', value: '' })).to.not.equal(formatLeaf(leaf));
  });
});
