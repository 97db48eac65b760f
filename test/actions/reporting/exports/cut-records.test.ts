/** Records cut into stretches: however they come, all are there in their order, and no stretch is longer than it may be. */
import { expect } from 'chai';
import fc from 'fast-check';
import { CutRecords } from '../../../../actions/reporting/exports/cut-records.ts';

async function* given(batches: readonly string[][][]) {
  yield* batches;
}

async function stretchesOf(batches: readonly string[][][], bytes_max: number): Promise<string[][]> {
  const cut = new CutRecords(given(batches), { bytes_max, head: 3, of: ([text]) => (text as string).length });
  const stretches: string[][] = [];
  do {
    const taken: string[] = [];
    for await (const some of cut.next()) taken.push(...some.map(([text]) => text as string));
    stretches.push(taken);
  } while (!cut.isOver);
  return stretches;
}

describe('records that are cut', () => {
  it('are all there, each stretch as long as it may be and no longer, but for one record alone', async () => {
    const batch = fc.array(fc.tuple(fc.string({ maxLength: 12 })), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { maxLength: 6 }),
        fc.integer({ min: 4, max: 40 }),
        async (batches, bytes_max) => {
          const stretches = await stretchesOf(batches, bytes_max);
          const lengthOf = (texts: readonly string[]) => 3 + texts.join('').length;
          expect(stretches.flat()).to.deep.equal(batches.flat().map(([text]) => text));
          for (const [nth, stretch] of stretches.entries()) {
            if (stretch.length !== 1) expect(lengthOf(stretch)).to.be.at.most(bytes_max);
            const next = stretches[nth + 1];
            if (next) expect(lengthOf([...stretch, next[0]!])).to.be.above(bytes_max);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it('none: one stretch without any', async () => {
    expect(await stretchesOf([], 10)).to.deep.equal([[]]);
    expect(await stretchesOf([[], []], 10)).to.deep.equal([[]]);
  });
});
