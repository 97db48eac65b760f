import { expect } from 'chai';
import type { MeterDefinition } from '../../../core/metering/meter-definition.ts';
import { readUsageReport } from '../../../storage/usage/usage.ts';
import { type Metering, SCOPE, startMetering } from '../../support/metering.ts';
import { until } from '../../support/until.ts';

const EVENTS = 2_000;

describe('a question that is given up', () => {
  let metering: Metering;
  const definition: MeterDefinition = {
    id: 'a question',
    event_name: 'call',
    filters: [],
    aggregation: { type: 'SUM', field: 'n' },
    reset_usage: 'BILLING_PERIOD',
  };

  before(async () => {
    metering = await startMetering({ partitions: 1 });
    await metering.send(
      Array.from({ length: EVENTS }, (_, index) => ({
        event_id: `e${index}`,
        event_name: 'call',
        external_customer_id: `c${index % 10}`,
        timestamp: '2026-03-01T10:00:00Z',
        properties: { n: 1 },
      })),
    );
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  const ask = (signal: AbortSignal, look: () => void) =>
    readUsageReport(metering.stores, SCOPE, {
      meter: { id: definition.id },
      definition,
      external_customer_ids: null,
      start_us: Date.parse('2026-03-01T00:00:00Z') * 1000,
      end_us: Date.parse('2026-03-02T00:00:00Z') * 1000,
      key_of: ({ external_customer_id }) => {
        look();
        return external_customer_id;
      },
      bounds: { asker: SCOPE.tenant_id, signal, spent: { work: 0 } },
    });

  it('ends at its next turn, and its statement with it', async () => {
    const caller = new AbortController();
    let looked = 0;
    const answer = ask(caller.signal, () => {
      looked++;
      if (looked === 40) caller.abort(new Error('the caller has gone'));
      // Slow enough that its turn is soon over.
      for (const began = performance.now(); performance.now() - began < 0.5; );
    });
    expect(await answer.catch((error: Error) => error)).to.be.instanceOf(Error);
    expect(looked).to.be.within(40, EVENTS / 4);
    await until('no statement is left', async () => {
      const rows = await metering.rows<{ n: string }>(
        `select toString(count()) as n from system.processes where query like '%external_customer_id, event_id%' and query not like '%system.processes%'`,
      );
      return rows[0]!.n === '0';
    });
  });

  it('leaves its place to the next', async () => {
    let looked = 0;
    const report = await ask(new AbortController().signal, () => looked++);
    expect(report.usage.length).to.equal(10);
    expect(looked).to.equal(EVENTS);
  });
});
