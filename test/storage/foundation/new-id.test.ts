/** Ids that are made for one instant sort in the order in which they were made. */
import { expect } from 'chai';
import { newId } from '../../../storage/foundation/new-id.ts';

describe('new ids', () => {
  it('of clocks that stand at instants of their own are in order, whatever is made for others meanwhile', () => {
    const standing = [Date.UTC(2031, 0, 1), Date.UTC(2024, 5, 1)];
    const made = standing.map((): string[] => []);
    for (let n = 0; n < 200; n++) {
      made[n % 2]!.push(newId('wallet_transaction', standing[n % 2]!));
      newId('wallet_transaction');
    }
    for (const ids of made) expect(ids).to.deep.equal([...new Set(ids)].sort());
  });

  it('of the machine’s clock are in order within a millisecond', () => {
    const now = Date.now();
    const ids = Array.from({ length: 200 }, () => newId('event', now));
    expect(ids).to.deep.equal([...new Set(ids)].sort());
  });
});
