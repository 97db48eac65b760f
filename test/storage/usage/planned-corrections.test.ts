/**
 * Usage as if a correction had taken effect. Fields that add up come from the rows alone; any other field reads the raw events of the hours
 * of the event. To prove it, the raw events of all other hours are deleted.
 */
import { expect } from 'chai';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { properties } from '../../../core/metering/event-text.ts';
import type { CorrectedEvent } from '../../../core/metering/planned-correction.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

const METERS = {
  SUM: { type: 'SUM', field: 'n' },
  COUNT: { type: 'COUNT' },
  AVG: { type: 'AVG', field: 'n' },
  WEIGHTED_SUM: { type: 'WEIGHTED_SUM', field: 'n' },
  SUM_WITH_MULTIPLIER: { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '2' },
  MAX: { type: 'MAX', field: 'n' },
  COUNT_UNIQUE: { type: 'COUNT_UNIQUE', field: 'n' },
  LATEST: { type: 'LATEST', field: 'n' },
} as const;
type MeterName = keyof typeof METERS;
const ADDITIVE: readonly MeterName[] = ['SUM', 'COUNT', 'AVG', 'WEIGHTED_SUM', 'SUM_WITH_MULTIPLIER'];
const RANGE = ['2026-03-10T08:00:00Z', '2026-03-10T16:00:00Z'] as const;

describe('usage with a planned correction', () => {
  let metering: Metering;

  before(async () => {
    metering = await startMetering();
    for (const [id, aggregation] of Object.entries(METERS))
      await metering.announce(id, { event_name: 'call', filters: [], aggregation });
    await metering.send([
      at('e1', '09:30:00', 5),
      at('e2', '11:10:00', 9),
      at('e3', '11:40:00', 2),
      at('e4', '14:20:00', 5),
      at('e5', '12:00:00', 100, 'other'),
    ]);
    await metering.waitForPipeline();
    await deleteEvents(`toHour(timestamp) not in (11, 14)`);
  });
  after(() => metering.stop());

  const at = (event_id: string, time: string, n: number, customer = 'acme') => ({
    event_id,
    event_name: 'call',
    external_customer_id: customer,
    timestamp: `2026-03-10T${time}Z`,
    properties: { n },
  });
  const toContent = (time: string, n: number, external_customer_id = 'acme'): CorrectedEvent => {
    const text = JSON.stringify({ n });
    const timestamp_us = Date.parse(`2026-03-10T${time}Z`) * 1000;
    const { length } = text;
    return {
      ...at('e2', time, n),
      external_customer_id,
      timestamp_us,
      source: '',
      properties: properties(text),
      length,
    };
  };
  const deleteEvents = (condition: string) =>
    metering.stores.clickhouse.command({
      query: `alter table events delete where ${condition}`,
      clickhouse_settings: { mutations_sync: '2' },
    });

  async function read(meter: MeterName, after: CorrectedEvent | null, customer = 'acme'): Promise<string> {
    const [{ partition, offset }] = (await metering.rows<{ partition: number; offset: string }>(
      `select partition, offset from events where event_id = 'e2'`,
    )) as [{ partition: number; offset: string }];
    const planned_correction = {
      ...SCOPE,
      event_id: 'e2',
      before: toContent('11:10:00', 9),
      after,
      log_position: { partition, offset: Number(offset) },
    };
    const [start_us, end_us] = RANGE.map((time) => Date.parse(time) * 1000) as [number, number];
    const query = { meter: { id: meter }, external_customer_ids: [customer], start_us, end_us };
    const { usage, source } = await readUsageReport({ ...metering.stores, planned_correction }, SCOPE, query);
    expect(source).to.equal('buckets');
    return usage[0]!.total.value.toFixed();
  }

  const VOIDED: Record<MeterName, string> = {
    SUM: '12',
    COUNT: '3',
    AVG: '4',
    // 5 × 6.5 h + 2 × 4 h 20 min + 5 × 1 h 40 min, of 8 h.
    WEIGHTED_SUM: '6.1875',
    SUM_WITH_MULTIPLIER: '24',
    MAX: '5',
    COUNT_UNIQUE: '2',
    LATEST: '5',
  };
  for (const meter of Object.keys(METERS) as MeterName[])
    it(`counts ${meter} without a voided event`, async () => {
      expect(await read(meter, null)).to.equal(VOIDED[meter]);
    });

  // The event moves from 11:10 to 14:50, to the end of the range.
  const MOVED: Record<MeterName, string> = {
    SUM: '19',
    COUNT: '4',
    AVG: '4.75',
    // 6.1875, and 7 × 1 h 10 min of 8 h.
    WEIGHTED_SUM: '7.2083',
    SUM_WITH_MULTIPLIER: '38',
    MAX: '7',
    COUNT_UNIQUE: '3',
    LATEST: '7',
  };
  for (const meter of Object.keys(METERS) as MeterName[])
    it(`counts ${meter} with a replaced event in another hour`, async () => {
      const value = new Decimal(await read(meter, toContent('14:50:00', 7)));
      expect(value.toDecimalPlaces(4).toFixed()).to.equal(MOVED[meter]);
    });

  it('counts the event for the customer to whom it moves', async () => {
    const moved = toContent('11:10:00', 9, 'other');
    expect([await read('SUM', moved), await read('SUM', moved, 'other')]).to.deep.equal(['12', '109']);
    expect([await read('COUNT', moved), await read('COUNT', moved, 'other')]).to.deep.equal(['3', '2']);
    expect(await read('MAX', moved)).to.equal('5');
  });

  it('does not count a replacement outside of the range', async () => {
    expect(await read('SUM', toContent('17:00:00', 7))).to.equal('12');
    expect(await read('MAX', toContent('17:00:00', 7))).to.equal('5');
  });

  it('needs no raw event for fields that add up', async () => {
    const content = toContent('14:50:00', 7);
    const before = await Promise.all(ADDITIVE.map((meter) => read(meter, content)));
    await deleteEvents(`event_id <> 'e2'`);
    expect(await Promise.all(ADDITIVE.map((meter) => read(meter, content)))).to.deep.equal(before);
  });
});
