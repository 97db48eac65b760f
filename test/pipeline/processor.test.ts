import { expect } from 'chai';
import { cut } from '../../pipeline/processor.ts';
import type { LogRecord } from '../../storage/log/log.ts';

describe('cutting records into slices', () => {
  const MB = 1024 * 1024;
  const cases: [
    name: string,
    records: LogRecord[],
    unfinished: { from: bigint; to: bigint } | null,
    slices: number[][],
  ][] = [
    [
      'as many events as a slice may have',
      [events(0), events(1), events(2, 90), events(3, 20)],
      null,
      [[0, 1], [2], [3]],
    ],
    [
      'as many bytes as are held in memory',
      [events(0, 1, 40 * MB), events(1, 1, 30 * MB), events(2)],
      null,
      [[0], [1, 2]],
    ],
    ['a record that is larger than a slice, alone', [events(0), events(1, 500), events(2)], null, [[0], [1], [2]]],
    ['a control message, alone', [events(0), control(1), control(2), events(3)], null, [[0], [1], [2], [3]]],
    [
      'what a crash left first, within its bounds',
      [events(4), events(5), events(6)],
      { from: 4n, to: 5n },
      [[4], [5, 6]],
    ],
    ['nothing', [], null, []],
  ];
  for (const [name, records, unfinished, slices] of cases) {
    it(name, () => {
      const found = cut(records, unfinished, 100).map((slice) => slice.map(({ offset }) => Number(offset)));
      expect(found).to.deep.equal(slices);
    });
  }
});

function events(offset: number, event_count = 10, bytes = 100): LogRecord {
  const scope = { tenant_id: 'acme', environment_id: 'live' };
  const body = Buffer.alloc(bytes);
  return {
    ...scope,
    partition: 0,
    offset: BigInt(offset),
    kind: 'events',
    received_at_us: 0,
    made_ids: null,
    event_count,
    body,
  };
}

function control(offset: number): LogRecord {
  return { ...events(offset, 0), kind: 'control' };
}
