/** Who asks at one time is answered by one question, and nobody by one that was begun before he asked. */
import { expect } from 'chai';
import { type BatchLimits, BatchLoader, mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';

type Round = { asked: readonly number[]; answer(): void; fail(error: Error): void };

/** A store whose answers come when the test says so. */
function slowStore(limits: BatchLimits<number> = {}) {
  const rounds: Round[] = [];
  const begun: (() => void)[] = [];
  const together = new BatchLoader<number, string>((asked) => {
    return new Promise((resolve, reject) => {
      rounds.push({ asked, answer: () => resolve(asked.map((one) => `${one} in ${rounds.length}`)), fail: reject });
      begun.shift()?.();
    });
  }, limits);
  return {
    together,
    /** The next question that goes out. */
    next: async (): Promise<Round> => {
      await new Promise<void>((resolve) => begun.push(resolve));
      return rounds.at(-1)!;
    },
  };
}

describe('questions that go together', () => {
  it('goes out at once, and takes along who waits when it has come back', async () => {
    const { together, next } = slowStore();
    const begins = next();
    const first = together.load(1);
    const round = await begins;
    expect(round.asked).to.deep.equal([1]);
    const others = Promise.all([together.load(2), together.load(3)]);
    expect(together.isIdle).to.equal(false);
    const second = next();
    round.answer();
    expect(await first).to.equal('1 in 1');
    const { asked, answer } = await second;
    expect(asked).to.deep.equal([2, 3]);
    answer();
    expect(await others).to.deep.equal(['2 in 2', '3 in 2']);
    expect(together.isIdle).to.equal(true);
  });

  it('asks for so many at most, and for the others next', async () => {
    const { together, next } = slowStore({ batchMax: 2 });
    let begins = next();
    const all = Promise.all([1, 2, 3].map((one) => together.load(one)));
    const round = await begins;
    expect(round.asked).to.deep.equal([1, 2]);
    begins = next();
    round.answer();
    (await begins).answer();
    expect(await all).to.deep.equal(['1 in 1', '2 in 1', '3 in 2']);
  });

  it('asks for no more than may be sent together, and for one alone however long it is', async () => {
    const { together, next } = slowStore({ measureLength: (length) => length, lengthMax: 10 });
    const asked = [3, 7, 1, 50, 9, 2].map((length) => together.load(length));
    const rounds: (readonly number[])[] = [];
    for (let answered = 0; answered < asked.length; answered += rounds.at(-1)!.length) {
      const round = await next();
      rounds.push(round.asked);
      round.answer();
    }
    expect(rounds).to.deep.equal([[3, 7], [1], [50], [9], [2]]);
    expect(await Promise.all(asked)).to.have.length(6);
  });

  it('rests while some wait, as long as it took, so that more come along', async () => {
    const { together, next } = slowStore({ batchMax: 2 });
    let begins = next();
    const first = together.load(1);
    const round = await begins;
    const began = performance.now();
    const second = together.load(2);
    begins = next();
    await new Promise((resolve) => setTimeout(resolve, 10));
    round.answer();
    const took = performance.now() - began;
    const { answer } = await begins;
    // A timer may come a millisecond early.
    expect(performance.now() - began).to.be.greaterThan(2 * took - 2);
    answer();
    expect(await Promise.all([first, second])).to.deep.equal(['1 in 1', '2 in 2']);
  });

  it('fails for those who were in it, and for nobody afterwards', async () => {
    const { together, next } = slowStore();
    let begins = next();
    const failed = Promise.allSettled([together.load(1), together.load(2)]);
    (await begins).fail(new Error('away'));
    expect((await failed).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    begins = next();
    const later = together.load(3);
    (await begins).answer();
    expect(await later).to.equal('3 in 2');
  });
});

describe('work that is done so much at a time', () => {
  it('keeps the order, has no more in hand, and begins nothing after a failure', async () => {
    let inHand = 0;
    let most = 0;
    const begun: number[] = [];
    const work = async (item: number) => {
      begun.push(item);
      most = Math.max(most, ++inHand);
      await new Promise((resolve) => setImmediate(resolve));
      inHand--;
      if (item === 13) throw new Error('thirteen');
      return item * 2;
    };
    expect(await mapConcurrently(3, [1, 2, 3, 4, 5], work)).to.deep.equal([2, 4, 6, 8, 10]);
    expect(most).to.equal(3);
    const refused = await mapConcurrently(2, [13, 1, 2, 3, 4], work).catch((error: Error) => error.message);
    expect(refused).to.equal('thirteen');
    expect(begun.slice(5)).to.not.include(4);
  });
});
