/** The command as a person runs it. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Metering, startMetering } from '../support/metering.ts';
import { runScript } from '../support/service.ts';

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

  it('says what it does not understand, and ends with 2', async () => {
    const { code, faults } = await audit('--from', 'yesterday');
    expect(code).to.equal(2);
    expect(faults).to.include('--from');
  });

  it('starts the stores of a data directory that nobody runs', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'farthing-audit-'));
    try {
      const command = runScript('audit', [], { DATA_DIR: dir });
      expect((await command.ended).code, command.stderr()).to.equal(0);
      expect(command.stdout()).to.equal('audited 0 meters, 0 days, 0 rows: 0 differences\n');
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
