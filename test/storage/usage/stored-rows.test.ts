/** The rows that an audit of a long day reads, some customers at a time. */
import { expect } from 'chai';
import { US_PER_DAY } from '../../../core/foundation/time/instant.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import { findCountedMeter } from '../../../storage/usage/recount.ts';
import { toSnapshot } from '../../../storage/usage/snapshot.ts';
import { listStoredRows } from '../../../storage/usage/stored-rows.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';

describe('bucket rows of a range of customers', () => {
  let metering: Metering;
  before(async () => {
    metering = await startMetering();
    await metering.announce('m_sum', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    await metering.waitForPipeline();
    const timestamp = '2026-03-10T10:00:00Z';
    const event = { event_name: 'call', timestamp, properties: { n: 1 } };
    await metering.send(['a', 'b', 'c', 'd'].map((id) => ({ ...event, event_id: id, external_customer_id: id })));
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  it('are those behind the one customer, up to the other', async () => {
    const { postgres, clickhouse } = metering.stores;
    const { before } = toSnapshot(await readProgress(postgres));
    const counted = await findCountedMeter(metering.stores, SCOPE, { meter_id: 'm_sum', before });
    const day = Math.floor((Date.parse('2026-03-10T00:00:00Z') * 1000) / US_PER_DAY);
    const of = async (range: { after?: string; until?: string }) => {
      const rows = await listStoredRows(clickhouse, counted!, { days: [day, day + 1], range });
      return rows.filter(({ size }) => size !== 'DAY').map(({ external_customer_id }) => external_customer_id);
    };
    expect((await of({ after: 'a', until: 'c' })).sort()).to.deep.equal(['b', 'c']);
    expect((await of({ until: 'b' })).sort()).to.deep.equal(['a', 'b']);
    expect(await of({ after: 'c' })).to.deep.equal(['d']);
  });
}).timeout(120_000);
