import { expect } from 'chai';
import { FairQueue } from '../../../storage/concurrency/fair-queue.ts';

function fill(...items: readonly [asker: string, item: string][]): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const [asker, item] of items) queue.add(asker, item);
  return queue;
}

function takeAll(queue: FairQueue<string>): string[] {
  return Array.from({ length: queue.size }, () => queue.take()!);
}

describe('a fair queue', () => {
  it('serves the tenants one after the other, each with its oldest item', () => {
    const queue = fill(
      ['acme', 'a1'],
      ['acme', 'a2'],
      ['acme', 'a3'],
      ['other', 'o1'],
      ['third', 't1'],
      ['other', 'o2'],
    );
    expect(takeAll(queue)).to.deep.equal(['a1', 'o1', 't1', 'a2', 'o2', 'a3']);
    expect(queue.take()).to.equal(undefined);
  });

  it('passes over tenants that are not eligible, and they retain their turn', () => {
    const queue = fill(['acme', 'a1'], ['other', 'o1'], ['other', 'o2'], ['third', 't1']);
    expect(queue.take((asker) => asker === 'other')).to.equal('o1');
    expect(queue.take((asker) => asker === 'nobody')).to.equal(undefined);
    expect(takeAll(queue)).to.deep.equal(['a1', 't1', 'o2']);
  });

  it('counts its items, its tenants and the items of a tenant', () => {
    const queue = fill(['acme', 'a1'], ['acme', 'a2'], ['other', 'o1']);
    expect([queue.size, queue.askers, queue.count('acme'), queue.count('nobody')]).to.deep.equal([3, 2, 2, 0]);
    takeAll(queue);
    expect([queue.size, queue.askers, queue.count('acme')]).to.deep.equal([0, 0, 0]);
  });

  it('removes items, and a tenant with items left retains its turn', () => {
    const queue = fill(['acme', 'a1'], ['other', 'o1'], ['third', 't1'], ['acme', 'a2'], ['third', 't2']);
    expect(queue.remove((item) => /1$/.test(item), ['acme', 'other', 'nobody'])).to.deep.equal(['a1', 'o1']);
    expect(queue.remove((item) => item === 't2')).to.deep.equal(['t2']);
    expect([queue.size, queue.askers]).to.deep.equal([2, 2]);
    expect(takeAll(queue)).to.deep.equal(['a2', 't1']);
  });
});
