/** The audit that runs all the time: what is wrong in what it takes is counted by check, and told in the log. */
import { expect } from 'chai';
import { register } from 'prom-client';
import { CHECKS, type FindingKind, toCheckName } from '../../actions/operations/audit/findings.ts';
import { auditSampleJob } from '../../scheduler/jobs/audit-sample.ts';
import { measureLedger } from '../../storage/monitoring/ledger-metrics.ts';
import { type Recorded, startRecorded } from '../support/recorded.ts';

describe('the audit that runs all the time', () => {
  let recorded: Recorded;
  before(async () => {
    recorded = await startRecorded();
    measureLedger(recorded.metering.stores);
  });
  after(() => recorded.metering.stop());

  const now = new Date('2026-05-01T00:00:00Z');
  const run = () => auditSampleJob(recorded.metering.stores, 300).run(now);
  const metric = async (name: string) => {
    const { values } = await register.getSingleMetric(name)!.get();
    return values.map(({ labels, value }) => [...Object.values(labels), value]);
  };
  const differences = async () =>
    new Map((await metric('farthing_audit_differences_total')).map(([check, count]) => [check, Number(count)]));
  /** By how much the counters of the checks grow, and what the log is told. */
  const foundIn = async (work: typeof run) => {
    const before = await differences();
    const { failed } = await work();
    const grown = [...(await differences())].map(([check, count]) => [check, count - before.get(check)!] as const);
    return { grown: grown.filter(([, by]) => by > 0), told: failed.map(({ error }) => (error as Error).message) };
  };

  it('looks at some of everything, finds nothing where nothing is wrong, and every check has its number', async () => {
    const { done, failed } = await run();
    expect(failed).to.deep.equal([]);
    expect(done).to.deep.include({ differences: 0 });
    expect(done.ranges).to.be.greaterThan(0);
    expect(done.records).to.be.greaterThan(0);
    expect([...(await differences()).keys()]).to.have.members([...CHECKS]);
  });

  it('finds nothing while events arrive', async () => {
    await recorded.flooded('flood', async () => expect((await run()).failed).to.deep.equal([]));
  });

  /** Each is of other rows. `test/actions/operations/audit/records.test.ts` has the findings of each fault alone. */
  const FAULTS: readonly (readonly [check: string, kind: FindingKind, statement: string])[] = [
    ['raw_rows', 'raw_rows_missing', `alter table events delete where position % 7 = 0`],
    ['outcomes', 'outcomes_missing', `alter table event_outcomes delete where outcome in ('duplicate', 'dead_letter')`],
    ['identities', 'raw_rows_without_identity', `alter table event_identities delete where position % 7 = 1`],
    ['corrections', 'correction_missing', `alter table event_corrections delete where event_id = 'e1'`],
  ];
  it('counts each fault by its check, and the log says what to do', async () => {
    const damage = async () => {
      for (const [, , statement] of FAULTS) await recorded.clickhouse(statement);
    };
    const { grown, told } = await recorded.damaged(damage, () => foundIn(run));
    const checks = grown.map(([check]) => check);
    for (const [check, kind] of FAULTS) {
      expect(checks).to.include(check);
      expect(toCheckName(kind)).to.equal(check);
      const line = told.find((text) => text.startsWith(kind));
      expect(line, kind).to.include('run npm run audit, and see docs/operations.md');
    }
  });

  it('farthing_events_unaccounted is what was accepted and is neither settled nor waiting, by partition', async () => {
    const { metering, postgres } = recorded;
    const healthy = [
      [0, 0],
      [1, 0],
      [2, 0],
    ];
    expect(await metric('farthing_events_unaccounted')).to.deep.equal(healthy);
    await metering.pause();
    await metering.send(
      Array.from({ length: 50 }, (_, n) => ({
        event_id: `waiting${n}`,
        event_name: 'call',
        external_customer_id: 'c',
      })),
    );
    expect(await metric('farthing_events_unaccounted'), 'what waits is accounted for').to.deep.equal(healthy);
    await postgres(
      `create table taken as select r.* from log_records r join slices s using (partition) where r."offset" = s.next_offset and partition = 2`,
    );
    await postgres(
      `delete from log_records r using taken t where t.partition = r.partition and t."offset" = r."offset"`,
    );
    const lost = (await metric('farthing_events_unaccounted')).map(([, count]) => Number(count));
    expect(lost.slice(0, 2)).to.deep.equal([0, 0]);
    expect(lost[2]).to.be.greaterThan(0);
    const { grown } = await foundIn(run);
    expect(grown).to.deep.equal([['log', 2]]);
    await postgres(`insert into log_records select * from taken`);
    await metering.resume();
    await metering.waitForPipeline();
    expect(await metric('farthing_events_unaccounted')).to.deep.equal(healthy);
  });

  it('farthing_ledger_unsettled_records is what was passed without a word', async () => {
    const { metering, postgres } = recorded;
    expect((await metric('farthing_ledger_unsettled_records')).map(([, count]) => count)).to.deep.equal([0, 0, 0]);
    await metering.pause();
    await postgres(`update slices set next_offset = next_offset + 4 where partition = 1`);
    expect(await metric('farthing_ledger_unsettled_records')).to.deep.include([1, 4]);
    expect((await foundIn(run)).grown.map(([check]) => check)).to.include('ledger');
    await postgres(`update slices set next_offset = next_offset - 4 where partition = 1`);
    await metering.resume();
  });
});
