/** Whatever goes wrong with a record, the audit is red and says so; and it is green while all is well and events arrive. */
import { expect } from 'chai';
import { CHECKS, type CheckName, type Finding } from '../../../../actions/operations/audit/findings.ts';
import { type Recorded, startRecorded } from '../../../support/recorded.ts';
import { testLedgerAudit } from './ledger-audit.ts';
import { testMending } from './mending.ts';

/** The checks that compare corrections with events. Rows of the log that are wrong are nothing to them. */
const OF_CORRECTIONS: readonly CheckName[] = ['corrections', 'second_count'];
const OF_ROWS = CHECKS.filter((check) => !OF_CORRECTIONS.includes(check));

describe('audit of the records', () => {
  let recorded: Recorded;
  before(async () => {
    recorded = await startRecorded();
  });
  after(() => recorded.metering.stop());

  const said = (findings: readonly Finding[]) => findings.map(({ kind, count }) => `${kind} ${count}`).sort();
  /** What is found when this is done to it. */
  const found = (damage: (recorded: Recorded) => Promise<void>, checks?: readonly CheckName[]) =>
    recorded.damaged(
      () => damage(recorded),
      async () => said(await recorded.audit(checks)),
    );
  const insert =
    (table: string, columns: string, condition: string) =>
    async ({ clickhouse }: Recorded) =>
      clickhouse(
        `insert into ${table} select * replace (${columns}) from (select * from ${table} where ${condition} limit 1)`,
      );
  const remove =
    (table: string, condition: string) =>
    ({ clickhouse }: Recorded) =>
      clickhouse(`alter table ${table} delete where ${condition}`);

  it('finds nothing where nothing is wrong, and has looked at everything', async () => {
    expect(await recorded.audit()).to.deep.equal([]);
    const { rows } = recorded.metering;
    const outcomes = await rows<{ outcome: string }>('select distinct outcome from event_outcomes');
    expect(outcomes.map(({ outcome }) => outcome)).to.include.members(['duplicate', 'conflict', 'dead_letter']);
    const ledger = await recorded.metering.stores.postgres.raw(
      `select sum(stored)::int as n, count(*)::int as ranges from slice_ledger`,
    );
    expect(ledger.rows[0]).to.deep.equal({ n: 340, ranges: 3 });
  });

  type Row = readonly [fault: string, damage: (recorded: Recorded) => Promise<void>, found: readonly string[]];
  /** Faults of the rows of an event; the others have an event of their own. */
  const placedFaults = (placed: string): readonly Row[] => [
    ['a raw row is gone', remove('events', placed), ['identities_without_raw_row 1', 'raw_rows_missing 1']],
    ['a raw row is there twice', insert('events', 'source as source', placed), ['raw_rows_doubled 1']],
    [
      'two events stand at one place',
      insert('events', `'stranger' as event_id`, placed),
      ['raw_rows_doubled 1', 'raw_rows_without_identity 1'],
    ],
    [
      'a raw row stands at another place',
      async (all) => {
        await insert('events', 'position + 1000 as position', placed)(all);
        await remove('events', `${placed} and position < 1000`)(all);
      },
      ['identities_without_raw_row 1', 'raw_rows_without_identity 1'],
    ],
    [
      'a raw row says another instant than its identity',
      insert('event_identities', 'timestamp + 1 as timestamp', placed),
      ['identities_without_raw_row 1', 'ids_doubled 1'],
    ],
    [
      'one raw row is gone and another there twice, so that their number is right',
      async (all) => {
        await remove('events', `${placed}`)(all);
        await insert(
          'events',
          'source as source',
          `partition = (select partition from event_identities where ${placed})`,
        )(all);
      },
      ['identities_without_raw_row 1', 'raw_rows_doubled 1', 'raw_rows_missing 1'],
    ],
    ['an identity is gone', remove('event_identities', placed), ['raw_rows_without_identity 1']],
    ['an identity is there twice', insert('event_identities', 'content_crc as content_crc', placed), ['ids_doubled 1']],
    [
      'an event is gone with its identity',
      async (all) => {
        await remove('events', placed)(all);
        await remove('event_identities', placed)(all);
      },
      ['raw_rows_missing 1'],
    ],
    [
      'an identity stands under another hash',
      async (all) => {
        await insert('event_identities', 'id_hash + 1 as id_hash', placed)(all);
        await remove(
          'event_identities',
          `${placed} and id_hash = (select min(id_hash) from event_identities where ${placed})`,
        )(all);
      },
      ['id_hash_wrong 1'],
    ],
  ];
  const ROW_FAULTS: readonly Row[] = [
    ...placedFaults('').map((_, index) => placedFaults(`event_id = 'e${100 + index}'`)[index]!),
    [
      'an event was counted twice under one id',
      async (all) => {
        const place = `(select (partition, offset, position) from event_outcomes where event_id = 'e9' and outcome = 'duplicate')`;
        const at = `(${place} as p).1 as partition, p.2 as offset, p.3 as position`;
        await insert('events', at, `event_id = 'e9'`)(all);
        await insert('event_identities', at, `event_id = 'e9'`)(all);
        const [row] = await all.metering.rows<{ partition: number }>(
          `select partition from event_identities where event_id = 'e9'`,
        );
        await remove('event_outcomes', `event_id = 'e9' and outcome = 'duplicate'`)(all);
        await all.postgres(
          `update slice_ledger set stored = stored + 1, duplicates = duplicates - 1 where partition = ${row!.partition}`,
        );
      },
      ['ids_doubled 1'],
    ],
    [
      'the row of a duplicate is gone',
      remove('event_outcomes', `event_id = 'e9' and outcome = 'duplicate'`),
      ['outcomes_missing 1'],
    ],
    [
      'the row of a conflict is gone',
      remove('event_outcomes', `event_id = 'e9' and outcome = 'conflict'`),
      ['outcomes_missing 1'],
    ],
    ['a dead letter is gone', remove('event_outcomes', `event_id = 'dead3'`), ['outcomes_missing 1']],
    [
      'the dead letter of a refused event is gone',
      remove('event_outcomes', `event_id = 'poison'`),
      ['outcomes_missing 1'],
    ],
    [
      'a dead letter is there twice',
      insert('event_outcomes', 'body as body', `event_id = 'dead3'`),
      ['outcomes_doubled 1'],
    ],
    [
      'a dead letter is nobody’s',
      insert('event_outcomes', '900 as position', `event_id = 'dead3'`),
      ['outcomes_extra 1'],
    ],
  ];
  const CORRECTION_FAULTS: readonly Row[] = [
    [
      'a correction is gone',
      remove('event_corrections', `event_id = 'e1'`),
      ['correction_missing 1', 'counts_disagree 1', 'counts_disagree 2'],
    ],
    [
      'a correction was never asked for',
      insert('event_corrections', `sequence + 1000 as sequence, 'e8' as event_id`, `event_id = 'e1'`),
      ['correction_differs 1', 'correction_extra 1'],
    ],
    [
      'a correction is not called applied',
      ({ postgres }) =>
        postgres(`update event_corrections set state = 'requested', applied_at = null, applied_number = default
          where event_id = 'e1'`),
      ['correction_extra 1'],
    ],
    [
      'a correction is another than was asked for',
      ({ postgres }) =>
        postgres(`update event_corrections set action = 'void', replacement = null where event_id = 'e2'`),
      ['correction_differs 1', 'counts_disagree 1', 'counts_disagree 2'],
    ],
    [
      'a replacement was changed by hand',
      async (all) => {
        await insert('event_corrections', `'{"n":"51"}' as properties`, `event_id = 'e2'`)(all);
        await remove('event_corrections', `event_id = 'e2' and properties != '{"n":"51"}'`)(all);
      },
      ['correction_differs 1', 'counts_disagree 1'],
    ],
    [
      'a correction says that its event stands on another partition',
      async (all) => {
        await insert('event_corrections', 'event_partition + 1 as event_partition', `event_id = 'e2'`)(all);
        const first = `(select min(event_partition) from event_corrections where event_id = 'e2')`;
        await remove('event_corrections', `event_id = 'e2' and event_partition = ${first}`)(all);
      },
      ['correction_differs 1'],
    ],
    [
      'a correction stands beside its event',
      async (all) => {
        await insert('event_corrections', 'event_position + 1 as event_position', `event_id = 'e2'`)(all);
        await remove(
          'event_corrections',
          `event_id = 'e2' and event_position = (select min(event_position) from event_corrections where event_id = 'e2')`,
        )(all);
      },
      ['correction_differs 1'],
    ],
  ];
  for (const [fault, damage, expected] of ROW_FAULTS) {
    it(`is red where ${fault}`, async () => {
      expect(await found(damage, OF_ROWS)).to.deep.equal(expected);
    });
  }
  for (const [fault, damage, expected] of CORRECTION_FAULTS) {
    it(`is red where ${fault}`, async () => {
      expect(await found(damage)).to.deep.equal(expected);
    });
  }

  it('finds corrections and their usage right where rows of the log are wrong', async () => {
    const all = async (recorded: Recorded) => {
      for (const [, damage] of ROW_FAULTS) await damage(recorded);
    };
    expect(await found(all, OF_CORRECTIONS)).to.deep.equal([]);
  });

  it('finds nothing when every damage was taken back', async () => {
    expect(said(await recorded.audit())).to.deep.equal([]);
  });

  it('finds nothing while events arrive, are sent again and corrected', async () => {
    await recorded.flooded('flood', async () => expect(said(await recorded.audit())).to.deep.equal([]));
  });

  describe('audit of the ledger and of the log', () => testLedgerAudit(() => recorded));
  describe('what the audit finds is mended', () => testMending(() => recorded));
});
