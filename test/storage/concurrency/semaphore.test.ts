/** So many at once, the others in the order in which they asked, and a place that is given back whatever happens. */
import { expect } from 'chai';
import { Semaphore } from '../../../storage/concurrency/semaphore.ts';

describe('places', () => {
  it('are so many; who waits comes in turn, and a failure gives its place back', async () => {
    const places = new Semaphore(2);
    const begun: number[] = [];
    const ends: ((error?: Error) => void)[] = [];
    const all = [0, 1, 2, 3].map((one) =>
      places.within(
        () =>
          new Promise<number>((resolve, reject) => {
            begun.push(one);
            ends.push((error) => (error ? reject(error) : resolve(one)));
          }),
      ),
    );
    const settled = Promise.allSettled(all);
    expect(begun).to.deep.equal([0, 1]);
    ends[1]!(new Error('broken'));
    await all[1]!.catch(() => undefined);
    ends[0]!();
    await all[0];
    await Promise.resolve();
    expect(begun).to.deep.equal([0, 1, 2, 3]);
    for (const end of ends.slice(2)) end();
    expect((await settled).map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(await places.within(async () => 'free again')).to.equal('free again');
  });
});
