import { expect } from 'chai';
import { RequestPace } from '../../../storage/concurrency/request-pace.ts';

describe('storage/concurrency/request-pace', () => {
  it('lets a fifth of a second pass at once and spaces the rest, for each receiver alone', async () => {
    const pace = new RequestPace();
    const begun = performance.now();
    const spent = () => performance.now() - begun;
    for (let sent = 0; sent < 20; sent++) await pace.waitForTurn('a', 100, 10_000);
    expect(spent(), 'the burst').to.be.below(100);
    await pace.waitForTurn('b', 100, 10_000);
    await Promise.all(Array.from({ length: 30 }, () => pace.waitForTurn('a', 100, 10_000)));
    expect(spent()).to.be.within(290, 2_000);
  });

  it('sends one at a time to a receiver that takes less than five in a second', async () => {
    const pace = new RequestPace();
    const begun = performance.now();
    await pace.waitForTurn('a', 4, 10_000);
    expect(performance.now() - begun).to.be.below(100);
    await pace.waitForTurn('a', 4, 10_000);
    expect(performance.now() - begun).to.be.within(240, 2_000);
  });

  it('reserves nothing for a request that would wait too long, and names the wait', async () => {
    const pace = new RequestPace();
    // The turns are a second apart. A turn after a wait of one second is within the bound also if a timer ends a little early.
    const max_wait_ms = 1_100;
    await pace.waitForTurn('a', 1, max_wait_ms);
    const waiting = pace.waitForTurn('a', 1, max_wait_ms);
    for (let refused = 0; refused < 20; refused++) expect(await pace.waitForTurn('a', 1, max_wait_ms)).to.equal(2);
    expect(await waiting).to.equal(null);
    expect(await pace.waitForTurn('a', 1, max_wait_ms)).to.equal(null);
  });
});
