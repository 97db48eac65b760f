/**
 * Tests of the repairs that docs/operations.md describes under "What the audit finds". `records.test.ts` runs them on its installation,
 * because to make one takes more CPU than they do.
 */
import { expect } from 'chai';
import { requestCorrection } from '../../../../actions/metering/events/request-correction.ts';
import {
  auditUsage,
  isRepaired,
  repairUsage,
  type UsageDifference,
} from '../../../../actions/operations/audit/usage.ts';
import { SCOPE } from '../../../support/metering.ts';
import { type Recorded, recordedEvent } from '../../../support/recorded.ts';
import { until } from '../../../support/until.ts';

const YEAR = ['2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z'] as const;

export function testMending(findRecorded: () => Recorded): void {
  let recorded: Recorded;
  let truth: string[];
  before(async () => {
    recorded = findRecorded();
    truth = await usage();
  });

  const usage = () =>
    Promise.all(['c0', 'c1', 'c2', 'c3', 'c4'].map((each) => recorded.metering.usage('m_sum', each, YEAR)));
  const kinds = async () => [...new Set((await recorded.audit()).map(({ kind }) => kind))];
  const differences = async () => {
    const found: UsageDifference[] = [];
    await auditUsage(recorded.metering.stores, {}, (difference) => found.push(difference));
    return found;
  };
  const repair = async () => {
    const { stores } = recorded.metering;
    const ids = await repairUsage(stores, await differences());
    await until('the rows are repaired', () => isRepaired(stores, ids), 60_000);
  };
  const isWhole = async () => {
    expect(await recorded.audit()).to.deep.equal([]);
    expect(await differences()).to.deep.equal([]);
    expect(await usage()).to.deep.equal(truth);
  };
  const placeOf = async (event_id: string) => {
    const [place] = await recorded.metering.rows<{ partition: number; offset: string; position: number }>(
      `select partition, offset, position from event_identities where event_id = '${event_id}' order by offset, position`,
    );
    return place!;
  };
  const giveUp = (partition: number, offset: number | string) =>
    recorded.postgres(
      `update slice_ledger set stored = stored - 1, unread = unread + 1
        where partition = ${partition} and from_offset <= ${offset} and to_offset > ${offset}`,
    );

  it('where a raw row is gone: its id is given back, and it is sent again', async () => {
    const { metering, clickhouse } = recorded;
    const { partition, offset, position } = await placeOf('e7');
    const there = `partition = ${partition} and offset = ${offset} and position = ${position}`;
    await clickhouse(`delete from events where ${there}`);
    expect(await kinds()).to.deep.equal(['raw_rows_missing', 'identities_without_raw_row']);
    await metering.pause();
    await clickhouse(`delete from event_identities where partition = ${partition} and offset = ${offset}
      and (offset, position) not in (select offset, position from events where partition = ${partition} and offset = ${offset})`);
    await giveUp(partition, offset);
    await metering.resume();
    await metering.send([recordedEvent('e7', 7)]);
    await metering.waitForPipeline();
    await repair();
    await isWhole();
  });

  it('where an id was counted twice: what came later is taken away', async () => {
    const { metering, clickhouse } = recorded;
    await metering.pause();
    // As if a worker had not known the id: it is taken for a new one.
    await clickhouse(`create table known as event_identities engine = Memory`);
    await clickhouse(`insert into known select * from event_identities where event_id = 'e8'`);
    await clickhouse(`delete from event_identities where event_id = 'e8'`);
    await metering.resume();
    await metering.send([recordedEvent('e8', 8)]);
    await metering.waitForPipeline();
    await clickhouse(`insert into event_identities select * from known`);
    expect(await usage()).to.not.deep.equal(truth);
    const [finding] = await recorded.audit();
    expect(finding).to.deep.include({ kind: 'ids_doubled', count: 1 });
    const places = /at (\d+)\/(\d+)\.(\d+) and (\d+)\/(\d+)\.(\d+)$/.exec(finding!.what)!.slice(1).map(Number);
    const [partition, , , , offset, position] = places;
    expect(offset).to.be.greaterThan(places[1]!);
    await metering.pause();
    for (const table of ['events', 'event_identities'])
      await clickhouse(
        `delete from ${table} where partition = ${partition} and offset = ${offset} and position = ${position}`,
      );
    await giveUp(partition!, offset!);
    await metering.resume();
    await repair();
    await isWhole();
  });

  it('where a correction is gone: it is asked for once more', async () => {
    const { metering, clickhouse, postgres } = recorded;
    await clickhouse(`alter table event_corrections delete where event_id = 'e1'`);
    expect(await kinds()).to.deep.equal(['correction_missing', 'counts_disagree']);
    await postgres(`update event_corrections set state = 'unknown_event' where event_id = 'e1'`);
    const asked = { event_id: 'e1', action: 'void' as const, replacement: null, reason: 'again', user_id: 'u' };
    await requestCorrection(metering.stores, SCOPE, { ...asked, now: new Date() });
    await metering.waitForPipeline();
    await isWhole();
  });
}
