/** The command as a person runs it. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Metering, startMetering } from '../support/metering.ts';
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
    await metering.settled();
  });
  after(() => metering.stop());

  const audit = async (...args: string[]) => {
    const settings = { DATABASE_URL: metering.postgres_url, CLICKHOUSE_URL: metering.clickhouse_url };
    const command = runScript('audit', args, settings);
    const { code } = await command.ended;
    return { code, said: command.stdout(), faults: command.stderr() };
  };

  it('ends with 0 where the rows equal the events, with 1 where they do not, and mends them when asked to', async () => {
    expect(await audit()).to.deep.include({ code: 0, said: 'audited 1 meters, 1 days, 1 rows: 0 differences\n' });
    await metering.stores.clickhouse.command({
      query: `alter table usage_buckets delete where size = 'HOUR'`,
      clickhouse_settings: { mutations_sync: '2' },
    });
    const { code, said } = await audit('--meter', 'm_sum', '--from', '2026-03-10', '--to', '2026-03-11');
    expect(code).to.equal(1);
    expect(said).to.include(
      'm_sum v1 HOUR 2026-03-10T10:00:00Z customer "acme": row is missing, should be 10 events, sum 15',
    );
    expect((await audit('--from', '2026-03-11')).code).to.equal(0);
    const repaired = await audit('--repair');
    expect(repaired.code).to.equal(0);
    expect(repaired.said).to.include('rebuilt; audited again: 0 differences');
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
      expect(command.stdout()).to.equal('audited 0 meters, 0 days, 0 rows: 0 differences\n');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
