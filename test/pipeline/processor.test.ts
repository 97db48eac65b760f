import { expect } from 'chai';
import { MeterCatalogue } from '../../pipeline/control/meter-catalogue.ts';
import { cut } from '../../pipeline/processor.ts';
import { computeRecordWork, SLICE_WORK_MAX } from '../../pipeline/slices/slice-work.ts';
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
      'corrections with the events around them, and not over another control message',
      [events(0), correction(1), events(2), correction(3), correction(4), control(5), correction(6), events(7)],
      null,
      [[0, 1, 2, 3, 4], [5], [6, 7]],
    ],
    [
      'a thousand corrections at most',
      Array.from({ length: 1_002 }, (_, offset) => correction(offset)),
      null,
      [Array.from({ length: 1_000 }, (_, offset) => offset), [1_000, 1_001]],
    ],
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
      const found = [...cut(records, unfinished, { events_max: 100, computeWork: () => 0 })];
      expect(found.map((slice) => slice.map(({ offset }) => Number(offset)))).to.deep.equal(slices);
    });
  }

  it('as much work as the meters of its tenants make of it, by the meters of its time', () => {
    let per_event = SLICE_WORK_MAX / 100;
    const found: number[][] = [];
    const records = [0, 1, 2, 3, 4, 5].map((offset) => (offset === 3 ? control(offset) : events(offset, 50)));
    const workOf = (record: LogRecord) => record.event_count * per_event;
    for (const slice of cut(records, null, { events_max: 1_000_000, computeWork: workOf })) {
      found.push(slice.map(({ offset }) => Number(offset)));
      // The control message takes the meters away.
      if (slice[0]!.kind === 'control') per_event = 0;
    }
    expect(found).to.deep.equal([[0, 1], [2], [3], [4, 5]]);
  });

  it('twenty heavy meters of a tenant make its records heavy, and those of another tenant stay light', () => {
    const aggregation = { type: 'SUM' as const, expression: 'pow(a, b)' };
    const meter = { event_name: 'call', filters: [], aggregation, reset_usage: 'BILLING_PERIOD' as const };
    const versions = Array.from({ length: 20 }, (_, index) => ({
      tenant_id: 'acme',
      environment_id: 'live',
      meter_id: `m${index}`,
      version: 1,
      state: 'live' as const,
      definition: { ...meter, id: `m${index}` },
    }));
    const catalogue = new MeterCatalogue(versions);
    const heavy = events(0, 1_000);
    expect(computeRecordWork(catalogue, heavy)).to.be.greaterThan(SLICE_WORK_MAX / 2);
    expect(computeRecordWork(catalogue, { ...heavy, tenant_id: 'other' })).to.be.lessThan(SLICE_WORK_MAX / 100);
    expect(computeRecordWork(catalogue, control(1))).to.equal(0);
  });
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
    generated_ids: null,
    event_count,
    body,
  };
}

function control(offset: number): LogRecord {
  return { ...events(offset, 0), kind: 'control' };
}

function correction(offset: number): LogRecord {
  return { ...control(offset), body: Buffer.from('{"type":"correction","correction_id":"1"}') };
}
