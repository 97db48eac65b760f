/** A piece of a file with a hundred thousand rows: what else the process does goes on beside it (docs/decisions/0021-fairness.md). */
import { expect } from 'chai';
import { readRows } from '../../../../actions/operations/imports/rows.ts';

const ROWS = 100_000;

describe('a piece of a file that holds many rows', () => {
  /** How many rows there are, how often others came to their own meanwhile, and the milliseconds of processor time. */
  async function read(header: string, row: string) {
    async function* pieces() {
      yield Buffer.from(`${header}\n${`${row}\n`.repeat(ROWS)}`);
    }
    let [rows, others, isOver] = [0, 0, false];
    const look = () => {
      others++;
      if (!isOver) setImmediate(look);
    };
    setImmediate(look);
    const before = process.cpuUsage();
    for await (const _ of readRows({
      file_type: 'CSV',
      encoding: 'UTF-8',
      mapping: null,
      known: ['external_id', 'name'],
      pieces: pieces(),
    }))
      rows++;
    const { user, system } = process.cpuUsage(before);
    isOver = true;
    return { rows, others, cpu_ms: (user + system) / 1_000 };
  }

  it('is taken apart in parts, with others in between', async () => {
    const { rows, others } = await read('external_id', 'x');
    expect(rows).to.equal(ROWS);
    expect(others).to.be.greaterThan(10);
  });

  it('takes no longer where its rows have too few cells', async () => {
    await read('external_id', 'x');
    const right = await read('external_id', 'x');
    const wrong = await read('external_id,name', 'x');
    expect(wrong.rows).to.equal(ROWS);
    expect(wrong.cpu_ms / right.cpu_ms).to.be.lessThan(3);
  });
});
