/**
 * Every log to which partitions are added keeps this contract: an event keeps the place at which it was stored. So corrections of older
 * events, which stand on a partition of their own, lose nothing. `test/storage/log/grow.test.ts` and `test/kafka/growth.test.ts` run it.
 */
import { expect } from 'chai';
import { requestCorrection } from '../../../actions/metering/events/request-correction.ts';
import { CHECKS, type Finding } from '../../../actions/operations/audit/findings.ts';
import { auditRecords } from '../../../actions/operations/audit/records.ts';
import { auditUsage, type UsageDifference } from '../../../actions/operations/audit/usage.ts';
import { countOpenCorrections, requestCorrectionsAgain } from '../../../storage/progress/corrections.ts';
import { type Metering, SCOPE } from '../../support/metering.ts';

const RANGE = ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'] as const;

export function growthContract(start: (partitions: number) => Promise<Metering>): void {
  let metering: Metering;
  beforeEach(async () => {
    metering = await start(1);
  });
  afterEach(() => metering.stop());

  const event = (id: string, n: number) => ({
    event_id: id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-10T10:20:00Z',
    properties: { n: String(n) },
  });
  const asked = { reason: 'test', user_id: 'user_1', now: new Date() };
  const replaced = (id: string, n: number) => {
    const replacement = JSON.stringify(event(id, n));
    return requestCorrection(metering.stores, SCOPE, { ...asked, event_id: id, action: 'replace', replacement });
  };
  const voided = (id: string) =>
    requestCorrection(metering.stores, SCOPE, { ...asked, event_id: id, action: 'void', replacement: null });
  const announce = async (name: string) => {
    const meter = { event_name: 'call', filters: [] };
    await metering.announce(`${name}_sum`, { ...meter, aggregation: { type: 'SUM', field: 'n' } });
    await metering.announce(`${name}_count`, { ...meter, aggregation: { type: 'COUNT' } });
  };
  const counted = async (name: string) => [
    await metering.usage(`${name}_sum`, 'acme', RANGE),
    await metering.usage(`${name}_count`, 'acme', RANGE),
  ];
  const findings = async () => {
    const { stores } = metering;
    const found: (Finding | UsageDifference)[] = [];
    const checks = new Set(CHECKS.filter((check) => check !== 'log'));
    const wanted = { checks, log: null, identityFiles: async () => [], chance: Math.random };
    await auditRecords(stores, wanted, (finding) => found.push(finding));
    await auditUsage(stores, {}, (difference) => found.push(difference));
    return found;
  };
  const misplaced = async () =>
    metering.rows(`
      select event_id from current_events
       where (event_id, partition, offset, position) not in (select event_id, partition, offset, position from events)`);

  it('an event from before that is replaced counts as what replaced it, and one that is voided not at all', async () => {
    await announce('before');
    await metering.waitForPipeline();
    for (let n = 0; n < 60; n++) await metering.send([event(`e${n}`, 1)]);
    await metering.waitForPipeline();
    await metering.grow(4);
    for (let n = 0; n < 10; n++) await replaced(`e${n}`, 100);
    for (let n = 10; n < 15; n++) await voided(`e${n}`);
    await metering.waitForPipeline();
    // 45 of 1 and 10 of 100.
    expect(await counted('before')).to.deep.equal(['1045', '55']);
    await announce('after');
    await metering.waitForPipeline();
    expect(await counted('after')).to.deep.equal(['1045', '55']);
    expect(await misplaced()).to.deep.equal([]);

    await metering.grow(7);
    for (let n = 5; n < 10; n++) await replaced(`e${n}`, 10);
    for (let n = 0; n < 3; n++) await voided(`e${n}`);
    for (let n = 15; n < 20; n++) await replaced(`e${n}`, 1000);
    await metering.send(Array.from({ length: 80 }, (_, n) => event(`e${n}`, 1)));
    await metering.waitForPipeline();
    await replaced('e79', 500);
    await metering.waitForPipeline();
    // The first 60 have 40 of 1, 2 of 100, 5 of 10, 5 of 1000; the 20 new ones have 19 of 1 and one of 500.
    for (const name of ['before', 'after']) expect(await counted(name)).to.deep.equal(['5809', '72']);
    await announce('last');
    await metering.waitForPipeline();
    expect(await counted('last')).to.deep.equal(['5809', '72']);
    expect(await misplaced()).to.deep.equal([]);
    expect(await findings()).to.deep.equal([]);
  });

  it('corrections that a version before stored at another place are found by both ways to count, and applied again', async () => {
    await announce('before');
    await metering.waitForPipeline();
    for (let n = 0; n < 30; n++) await metering.send([event(`e${n}`, 1)]);
    await metering.waitForPipeline();
    await metering.grow(4);
    for (let n = 20; n < 30; n++) await replaced(`e${n}`, 100);
    await metering.waitForPipeline();
    expect(await counted('before')).to.deep.equal(['1020', '30']);
    // As the column of a row is filled that was written before there was one.
    await metering.stores.clickhouse.command({
      query: 'alter table event_corrections update event_partition = partition where event_partition != partition',
      clickhouse_settings: { mutations_sync: '2' },
    });
    const found = (await findings()).filter((finding): finding is Finding => 'kind' in finding);
    const kinds = found.map(({ kind }) => kind);
    expect(new Set(kinds)).to.deep.equal(new Set(['correction_differs', 'counts_disagree']));
    const ids = found.flatMap(({ correction_id }) => correction_id ?? []);
    await requestCorrectionsAgain(metering.stores.postgres, ids);
    await metering.waitForPipeline();
    expect(await countOpenCorrections(metering.stores.postgres, ids)).to.equal(0);
    expect(await counted('before')).to.deep.equal(['1020', '30']);
    expect(await misplaced()).to.deep.equal([]);
    expect(await findings()).to.deep.equal([]);
  });

  it('a meter that was stopped before, or whose past is still being counted, goes on', async () => {
    await announce('stopped');
    await metering.waitForPipeline();
    for (let n = 0; n < 20; n++) await metering.send([event(`e${n}`, 1)]);
    await metering.waitForPipeline();
    await metering.announce('stopped_sum', null);
    await metering.waitForPipeline();
    await metering.grow(4);
    await replaced('e3', 100);
    await metering.send([event('e20', 1)]);
    await metering.waitForPipeline();
    expect(await counted('stopped')).to.deep.equal(['119', '21']);
    expect(await findings()).to.deep.equal([]);
  });
}
