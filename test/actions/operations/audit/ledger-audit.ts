/**
 * Tests of the audit of the ledger, of the log behind it, and of the identity files of a worker. `records.test.ts` runs them on its
 * installation, because to make one takes more CPU than they do.
 */
import { mkdtempSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CheckName, Finding } from '../../../../actions/operations/audit/findings.ts';
import { auditLogBounds } from '../../../../actions/operations/audit/ledger.ts';
import { compareAllIdentityFiles } from '../../../../commands/audit-identity-files.ts';
import { toShardRange } from '../../../../core/metering/event/identity.ts';
import { IdentityMemory, type ReadIdentities } from '../../../../pipeline/identity/identity-memory.ts';
import { toHashRange, visitIdentityHashes } from '../../../../storage/events/identities.ts';
import { loadInstallationId } from '../../../../storage/models/operations/installation.ts';
import { type Recorded, recordedEvent } from '../../../support/recorded.ts';

export function testLedgerAudit(findRecorded: () => Recorded): void {
  let recorded: Recorded;
  before(async () => {
    recorded = findRecorded();
    await split(recorded);
  });

  /** The range of partition 1 as three, cut in the middle of what it holds: the sums of the tables say what is in each. */
  const split = async ({ metering, postgres }: Recorded) => {
    const { rows: ranges } = await metering.stores.postgres.raw(`select * from slice_ledger where partition = 1`);
    const end = Number(ranges[0].to_offset);
    expect(end).to.be.greaterThan(3);
    await postgres(`delete from slice_ledger where partition = 1`);
    for (const [from, to] of [
      [0, 2],
      [2, end - 1],
      [end - 1, end],
    ]) {
      const where = `partition = 1 and offset >= ${from} and offset < ${to}`;
      const [{ stored }] = (await metering.rows(`select toUInt32(count()) as stored from events where ${where}`)) as [
        { stored: number },
      ];
      const outcomes = await metering.rows<{ outcome: string; n: number }>(
        `select outcome, toUInt32(count()) as n from event_outcomes where ${where} group by outcome`,
      );
      const [duplicates, conflicts, letters] = ['duplicate', 'conflict', 'dead_letter'].map(
        (name) => outcomes.find(({ outcome }) => outcome === name)?.n ?? 0,
      ) as [number, number, number];
      await postgres(
        `insert into slice_ledger values (1, ${from}, ${to}, ${to! - from!}, ${stored + duplicates + conflicts + letters},
                                          ${stored}, ${duplicates}, ${conflicts}, ${letters}, 0)`,
      );
    }
  };
  const kinds = (findings: readonly Finding[]) => findings.map(({ kind }) => kind).sort();
  const found = (damage: () => Promise<void>, checks?: readonly CheckName[]) =>
    recorded.damaged(damage, async () => kinds(await recorded.audit(checks)));

  it('finds nothing in several ranges of one partition', async () => {
    expect(await recorded.audit()).to.deep.equal([]);
  });

  it('a range is missing: the ledger has a gap, and accepted events are not accounted for', async () => {
    const damage = () => recorded.postgres(`delete from slice_ledger where partition = 1 and from_offset = 2`);
    expect(await found(damage)).to.deep.equal(['events_unaccounted', 'ledger_gap']);
  });

  it('the newest range is missing', async () => {
    const damage = () => recorded.postgres(`delete from slice_ledger where partition = 1 and from_offset > 2`);
    expect(await found(damage, ['ledger'])).to.deep.equal(['ledger_end']);
  });

  it('two ranges overlap', async () => {
    const damage = () => recorded.postgres(`insert into slice_ledger values (1, 1, 3, 2, 0, 0, 0, 0, 0, 0)`);
    expect(await found(damage, ['ledger'])).to.deep.equal(['ledger_overlap', 'ledger_overlap']);
  });

  it('a range says that more was stored than there is, and less', async () => {
    const change = (by: string) => () =>
      recorded.postgres(
        `update slice_ledger set stored = stored ${by}, events = events ${by} where partition = 1 and from_offset = 0`,
      );
    expect(await found(change('+ 2'), ['raw_rows'])).to.deep.equal(['raw_rows_missing']);
    expect(await found(change('- 2'), ['raw_rows'])).to.deep.equal(['raw_rows_extra']);
  });

  it('rows before the ledger, of a version that counted nothing, are compared with each other', async () => {
    await recorded.damaged(
      () => recorded.postgres(`delete from slice_ledger where partition = 1 and from_offset < 3`),
      async () => {
        const checks = ['ledger', 'raw_rows', 'outcomes', 'identities'] as const;
        expect(await recorded.audit(checks)).to.deep.equal([]);
        await recorded.clickhouse(
          `alter table event_identities delete where partition = 1 and offset = 1 and position = 3`,
        );
        await recorded.clickhouse(
          `insert into events select * from events where partition = 1 and offset = 1 and position = 5`,
        );
        expect(kinds(await recorded.audit(checks))).to.deep.equal(['raw_rows_doubled', 'raw_rows_without_identity']);
      },
    );
  });

  it('Postgres is older than ClickHouse', async () => {
    const { postgres } = recorded;
    await recorded.metering.pause();
    try {
      await postgres(`create table reached as table slices`);
      await postgres(`update slices set next_offset = 1`);
      const findings = kinds(await recorded.audit(['ledger', 'raw_rows']));
      expect(findings).to.include('ledger_end').and.to.include('rows_ahead');
    } finally {
      await postgres(`update slices s set next_offset = r.next_offset from reached r where r.partition = s.partition`);
      await recorded.metering.resume();
    }
    expect(await recorded.audit(['ledger', 'raw_rows'])).to.deep.equal([]);
  });

  it('accepted events are neither stored nor waiting', async () => {
    const { postgres } = recorded;
    await postgres(`update log_partitions set accepted_events = accepted_events + 5 where partition = 2`);
    const [finding] = await recorded.audit();
    expect(finding).to.deep.include({ kind: 'events_unaccounted', count: 5, partition: 2 });
    await postgres(`update log_partitions set accepted_events = accepted_events - 5 where partition = 2`);
  });

  it('records are gone from the log before they were stored', async () => {
    const { metering, postgres } = recorded;
    await metering.pause();
    for (let batch = 0; batch < 3; batch++)
      await metering.send(Array.from({ length: 30 }, (_, n) => recordedEvent(`w${batch}-${n}`, n)));
    expect(await recorded.audit()).to.deep.equal([]);
    const waiting = `from log_records r using slices s where s.partition = r.partition and r.partition = 0 and r."offset" = s.next_offset + 1`;
    await postgres(`create table taken as select r.* from log_records r join slices s using (partition)
                     where r.partition = 0 and r."offset" = s.next_offset + 1`);
    await postgres(`delete ${waiting}`);
    const findings = await recorded.audit();
    expect(kinds(findings)).to.deep.equal(['events_unaccounted', 'log_records_missing']);
    const { rows } = await metering.stores.postgres.raw(`select "offset" from taken`);
    expect(findings.find(({ kind }) => kind === 'log_records_missing')!.what).to.include(
      `the first at offset ${rows[0].offset}`,
    );
    await postgres(`insert into log_records select * from taken`);
    await metering.resume();
    await metering.waitForPipeline();
    expect(await recorded.audit()).to.deep.equal([]);
  });

  it('a log of another kind begins behind what the stores hold, or ends before it', async () => {
    const { postgres } = recorded.metering.stores;
    const { rows } = await postgres.raw(`select partition, next_offset from slices order by partition`);
    const [first, second, third] = rows.map((row: { next_offset: string }) => BigInt(row.next_offset)) as [
      bigint,
      bigint,
      bigint,
    ];
    const findings: Finding[] = [];
    const bounds = async () => [
      { partition: 0, low: 0n, end: first },
      { partition: 1, low: second + 7n, end: second + 9n },
      { partition: 2, low: 0n, end: third - 2n },
    ];
    await auditLogBounds({ postgres }, bounds, (finding) => findings.push(finding));
    expect(findings.map(({ kind, partition, count }) => [kind, partition, count])).to.deep.equal([
      ['log_records_missing', 1, 7],
      ['log_behind_the_stores', 2, 2],
    ]);
  });

  describe('and what a worker keeps of the ids', () => {
    let dir: string;
    beforeEach(async () => {
      dir = mkdtempSync(join(tmpdir(), 'farthing-audit-ids-'));
      for (const partition of [0, 1, 2]) await keep(partition);
    });
    afterEach(() => rmSync(dir, { recursive: true, force: true }));

    const keep = async (partition: number, without = -1) => {
      const { postgres, clickhouse } = recorded.metering.stores;
      const installation = await loadInstallationId(postgres);
      const { rows } = await postgres.raw(`select next_offset from slices where partition = ?`, [partition]);
      const next = BigInt(rows[0].next_offset);
      const shards = toShardRange(partition, 3);
      let taken = 0;
      const read: ReadIdentities = (ends, visit) =>
        visitIdentityHashes(clickhouse, { ...toHashRange(shards), partition, ...ends }, (high, low) =>
          taken++ === without ? undefined : visit(high, low),
        );
      const place = { partition, partition_count: 3, installation };
      const memory = await IdentityMemory.open({ dir, hot_ids: 60, filter_bytes: 1_000_000 }, place, { next, read });
      await memory.seal(next);
      memory.close();
    };
    const held = async () => {
      const { postgres, clickhouse } = recorded.metering.stores;
      return compareAllIdentityFiles(clickhouse, dir, await loadInstallationId(postgres));
    };
    const audited = async () => {
      const files = await held();
      return (await recorded.audit(['identity_files'], files)).map(({ kind, partition }) => `${kind} ${partition}`);
    };

    it('finds nothing where they are whole, and where there are none', async () => {
      expect(await audited()).to.deep.equal([]);
      const files = await held();
      expect(files.map(({ count }) => count).every((count) => count > 60)).to.equal(true);
      rmSync(dir, { recursive: true });
      expect(await audited()).to.deep.equal([]);
    });

    it('an id is missing', async () => {
      rmSync(join(dir, 'partition-1'), { recursive: true });
      await keep(1, 17);
      expect(await audited()).to.deep.equal(['identity_file_differs 1']);
    });

    it('bytes behind the header are zeroed', async () => {
      const [name] = readdirSync(join(dir, 'partition-2')).filter((each) => each.endsWith('.ids'));
      const path = join(dir, 'partition-2', name!);
      const { size } = statSync(path);
      writeSync(openSync(path, 'r+'), Buffer.alloc(64), 0, 64, size - 64);
      expect(await audited()).to.deep.equal(['identity_file_damaged 2']);
    });

    it('a file is gone', async () => {
      const [name] = readdirSync(join(dir, 'partition-0')).filter((each) => each.endsWith('.ids'));
      rmSync(join(dir, 'partition-0', name!));
      expect(await audited()).to.deep.equal(['identity_file_damaged 0']);
    });
  });
}
