/** The command as a person runs it. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { requestCorrection } from '../../actions/metering/events/request-correction.ts';
import { type Metering, SCOPE, startMetering } from '../support/metering.ts';
import { runScript, startServiceProcess } from '../support/service.ts';

describe('npm run audit', function () {
  this.timeout(120_000);
  let metering: Metering;
  before(async () => {
    metering = await startMetering();
    await metering.announce('m_sum', { event_name: 'call', filters: [], aggregation: { type: 'SUM', field: 'n' } });
    const event = { event_name: 'call', external_customer_id: 'acme', timestamp: '2026-03-10T10:20:00Z' };
    await metering.send(
      Array.from({ length: 10 }, (_, i) => ({ ...event, event_id: `e${i}`, properties: { n: '1.5' } })),
    );
    await metering.waitForPipeline();
  });
  after(() => metering.stop());

  const HEALTHY = `ledger: 3 ranges, 10 events: 0 differences
log: 3 partitions, 0 waiting: 0 differences
raw_rows: 3 ranges, 10 rows: 0 differences
outcomes: 3 ranges, 0 rows: 0 differences
identities: 10 identities, 10 hashes: 0 differences
corrections: 0 corrections: 0 differences
second_count: 1 customer days, 1 rows: 0 differences
identity_files: 0 partitions, 0 ids: 0 differences
credits: 0 wallets, 0 lots, 0 postings: 0 differences
invoices: 0 invoices, 0 invoice lines, 0 payments, 0 credit notes, 0 usage lines: 0 differences
uninvoiced: 0 subscriptions, 0 lines: 0 differences
integrations: 0 mappings, 0 refused: 0 differences
running: 0 audits, 0 answers, 0 lines, 0 histories: 0 differences
revenue: 0 customers, 0 rows: 0 differences
reservations: 0 reservations, 0 pools, 0 held, 0 events: 0 differences
tasks: 0 exports, 0 imports, 0 scheduled tasks, 0 files, 0 files gone, 0 files unread: 0 differences
usage: 1 meters, 1 days, 1 rows: 0 differences
`;

  const change = (query: string) =>
    metering.stores.clickhouse.command({
      query,
      clickhouse_settings: { mutations_sync: '2', insert_deduplicate: 0 },
    });

  const audit = async (...args: string[]) => {
    const settings = { DATABASE_URL: metering.postgres_url, CLICKHOUSE_URL: metering.clickhouse_url };
    const command = runScript('audit', args, settings);
    const { code } = await command.ended;
    return { code, said: command.stdout(), faults: command.stderr() };
  };

  it('ends with 0 where the rows equal the events, with 1 where they do not, and mends them when asked to', async () => {
    const { code: green, said: all } = await audit();
    expect({ green, all }).to.deep.equal({ green: 0, all: HEALTHY });
    await change(`alter table usage_buckets delete where size = 'HOUR'`);
    const { code, said } = await audit('--meter', 'm_sum', '--from', '2026-03-10', '--to', '2026-03-11');
    expect(code).to.equal(1);
    expect(said).to.include(
      'm_sum v1 HOUR 2026-03-10T10:00:00Z customer "acme": row is missing, should be 10 events, sum 15',
    );
    expect((await audit('--from', '2026-03-11')).code).to.equal(0);
    const repaired = await audit('--repair');
    expect(repaired.code).to.equal(0);
    expect(repaired.said).to.include('rebuilt; audited again\nusage: 1 meters, 1 days, 1 rows: 0 differences\n');
  });

  it('repairs no bucket rows from raw rows that are wrong, and does when these are mended', async () => {
    await change(`insert into events select * from events where event_id = 'e4'`);
    const { code, said } = await audit('--repair');
    expect(code).to.equal(1);
    expect(said).to.match(/^raw_rows_doubled partition \d offsets 0 to \d+: 1 rows of events too many/);
    expect(said).to.include(`tenant_a env_a "e4"\n`);
    expect(said).to.include('m_sum v1 HOUR 2026-03-10T10:00:00Z customer "acme": count is 10, should be 11');
    expect(said).to.include('nothing is repaired');
    expect(said).to.include('(raw_rows_doubled)');
    expect(await metering.usage('m_sum', 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z'])).to.equal('15');
    await change(`create table once as events engine = Memory`);
    await change(`insert into once select distinct * from events where event_id = 'e4'`);
    await change(`alter table events delete where event_id = 'e4'`);
    await change(`insert into events select * from once`);
    expect(await audit('--repair')).to.deep.include({ code: 0, said: HEALTHY });
  });

  it('applies corrections again that a hand has changed or taken away', async () => {
    const { stores } = metering;
    const replacement = { event_name: 'call', external_customer_id: 'acme', properties: { n: '100' } };
    for (const event_id of ['e1', 'e2', 'e3'])
      await requestCorrection(stores, SCOPE, {
        event_id,
        action: event_id === 'e3' ? 'void' : 'replace',
        replacement: event_id === 'e3' ? null : JSON.stringify(replacement),
        reason: 'a test',
        user_id: 'user_1',
        now: new Date(),
      });
    await metering.waitForPipeline();
    const usage = () => metering.usage('m_sum', 'acme', ['2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z']);
    expect(await usage()).to.equal('210.5');
    await change(`alter table event_corrections update properties = '{"n":"1000"}' where event_id = 'e1'`);
    await change(`alter table event_corrections delete where event_id = 'e3'`);
    const { code, said } = await audit();
    expect(code).to.equal(1);
    expect(said).to.match(
      /correction_differs: 1 its properties are not those that were accepted: replace \d+ of .* "e1"/,
    );
    expect(said).to.match(/correction_missing: 1 .* void \d+ of .* "e3"/);
    expect(said).to.match(/counts_disagree: \d+ .* m_sum 2026-03-10 customer "acme": count is 10, should be 9/);
    const repaired = await audit('--repair');
    expect(repaired.said).to.include('applying 2 corrections again\napplied; audited again');
    expect(repaired.code).to.equal(0);
    expect(await usage()).to.equal('210.5');
    expect((await audit()).code).to.equal(0);
  });

  it('tells the same as objects, one a line, of the checks that are asked for', async () => {
    await change(`create table taken as event_identities engine = Memory`);
    await change(`insert into taken select * from event_identities where event_id = 'e3'`);
    await change(`alter table event_identities delete where event_id = 'e3'`);
    const { code, said } = await audit('--json', '--check', 'identities', '--check', 'log');
    await change(`insert into event_identities select * from taken`);
    expect(code).to.equal(1);
    const [finding, ...reports] = said
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(finding).to.deep.include({ check: 'identities', kind: 'raw_rows_without_identity', count: 1 });
    expect(finding.first[0]).to.deep.include({ tenant_id: 'tenant_a', environment_id: 'env_a', event_id: 'e3' });
    expect(reports.map(({ report, differences }) => [report, differences])).to.deep.equal([
      ['log', 0],
      ['identities', 1],
    ]);
    expect((await audit('--check', 'everything')).faults).to.match(
      /^audit: --check: everything is none of ledger, log/,
    );
  });

  for (const filter of ['--meter', '--tenant', '--environment']) {
    it(`ends with 2 where ${filter} fits no meter`, async () => {
      const { code, said, faults } = await audit(filter, 'none');
      expect({ code, said, faults }).to.deep.equal({
        code: 2,
        said: '',
        faults: 'audit: no meter matches --tenant, --environment and --meter\n',
      });
    });
  }

  const refused = async (settings: Record<string, string>) => {
    const dir = mkdtempSync(join(tmpdir(), 'farthing-audit-'));
    const DATA_DIR = join(dir, 'data');
    try {
      const command = runScript('audit', [], { DATA_DIR, ...settings });
      expect((await command.ended).code).to.equal(2);
      expect(command.stderr().trimEnd().split('\n')).to.have.length(1);
      expect(existsSync(DATA_DIR)).to.equal(false);
      return command.stderr();
    } finally {
      rmSync(dir, { recursive: true });
    }
  };

  it('ends with 2 where there is no installation, and makes none', async () => {
    expect(await refused({})).to.match(/^audit: there is no installation in DATA_DIR=/);
  });

  it('ends with 2 where it is told of one store and not of the other', async () => {
    const both = /^audit: set both DATABASE_URL and CLICKHOUSE_URL/;
    expect(await refused({ DATABASE_URL: metering.postgres_url })).to.match(both);
    expect(await refused({ CLICKHOUSE_URL: metering.clickhouse_url })).to.match(both);
  });

  it('starts the stores of a data directory that nobody runs', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'farthing-audit-'));
    try {
      const service = await startServiceProcess({ DATA_DIR: dir });
      await service.stop();
      const command = runScript('audit', [], { DATA_DIR: dir });
      expect((await command.ended).code, command.stderr()).to.equal(0);
      // A range without events: every five minutes a job may ask for daily rollups.
      expect(command.stdout()).to.match(/^ledger: [01] ranges, 0 events: 0 differences$/m);
      expect(command.stdout()).to.include('usage: 0 meters, 0 days, 0 rows: 0 differences\n');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
