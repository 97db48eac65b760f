/** How a run works off what is due, and is seen to go on. */
import { expect } from 'chai';
import { inRounds } from '../../../actions/billing/rounds.ts';
import type { Due } from '../../../storage/due-billing.ts';

const ROUND = 100;
const due = (count: number): Due[] =>
  Array.from({ length: count }, (_, index) => ({ id: `${index}`, tenant_id: 't', environment_id: 'e' }));

/** Everything is done in transactions of so many; answers how far the run was each time that it told. */
async function run(all: readonly Due[]): Promise<{ done: number; told: number[] }> {
  const rest = [...all];
  const told: number[] = [];
  const done: string[] = [];
  await inRounds({
    next: async () => rest.splice(0, ROUND),
    act: async ({ id }) => done.push(id) > 0,
    actTogether: async (group) => {
      done.push(...group.map(({ id }) => id));
      return { left: [], alone: [] };
    },
    workers: 1,
    onProgress: () => void told.push(done.length),
  });
  return { done: new Set(done).size, told };
}

describe('rounds of what is due', () => {
  for (const [count, told] of [
    [0, []],
    [1, []],
    [100, []],
    [101, [100]],
    [350, [100, 200, 300]],
  ] as const)
    it(`${count}: tells how far it is before it goes on`, async () => {
      expect(await run(due(count))).to.deep.equal({ done: count, told });
    });
});
