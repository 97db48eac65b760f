/** How a run works off what is due, and is seen to go on. */
import { expect } from 'chai';
import { runBatches } from '../../../actions/foundation/batch-loop.ts';
import type { DueRecord } from '../../../storage/queue/due-billing.ts';

const ROUND = 100;
const due = (count: number): DueRecord[] =>
  Array.from({ length: count }, (_, index) => ({ id: `${index}`, tenant_id: 't', environment_id: 'e' }));

/** Everything is done in transactions of so many; answers how far the run was each time that it told. */
async function run(all: readonly DueRecord[]): Promise<{ done: number; told: number[] }> {
  const rest = [...all];
  const told: number[] = [];
  const done: string[] = [];
  await runBatches({
    next: async () => rest.splice(0, ROUND),
    act: async ({ id }) => done.push(id) > 0,
    actBatch: async (group) => {
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

  /** What happened in which order, where `failing` is the first of a group that is undone behind its turn. */
  async function overlapping(count: number, failing?: string): Promise<{ log: string[]; done: string[] }> {
    const rest = [...due(count)];
    const [log, done]: [string[], string[]] = [[], []];
    await runBatches({
      next: async () => rest.splice(0, 1000),
      act: async ({ id }) => done.push(id) > 0,
      actBatch: async (group, turn) => {
        const { id } = group[0]!;
        log.push(`${id} begins`);
        await turn.waitForPrevious();
        turn.allowNext();
        log.push(`${id} goes on`);
        // What has been begun meanwhile waits.
        for (let nth = 0; nth < 10; nth++) await new Promise((resolve) => setImmediate(resolve));
        if (id === failing && group.length > 1) throw new Error('undone');
        done.push(...group.map((one) => one.id));
        log.push(`${id} is done`);
        return { left: [], alone: [] };
      },
      workers: 1,
    });
    return { log, done };
  }

  it('a group that passes on its turn: the next is begun, and goes on behind it', async () => {
    const { log, done } = await overlapping(300);
    expect(log).to.deep.equal([
      '0 begins',
      '0 goes on',
      '100 begins',
      '0 is done',
      '100 goes on',
      '200 begins',
      '100 is done',
      '200 goes on',
      '200 is done',
    ]);
    expect(done).to.deep.equal(due(300).map(({ id }) => id));
  });

  it('a group that is undone behind its turn: the next makes way, and everything is done once and in order', async () => {
    const { log, done } = await overlapping(300, '100');
    expect(log.slice(0, 7)).to.deep.equal([
      '0 begins',
      '0 goes on',
      '100 begins',
      '0 is done',
      '100 goes on',
      '200 begins',
      '100 begins',
    ]);
    expect(log.filter((line) => line === '200 is done')).to.have.length(1);
    expect(done).to.deep.equal(due(300).map(({ id }) => id));
  });
});
