/** test/long/new-aggregation.test.ts runs this file in a process of its own. */
import './sum-and-count.ts';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { AGGREGATIONS } from '../../../core/metering/aggregations/index.ts';
import { provenBy, VERIFIER, type verifier } from '../verifier.ts';
import { withAggregations } from '../verifier-aggregations.ts';
import { startWorld, usage, type World } from '../world.ts';

describe('an aggregation that is one file and one line', () => {
  let world: World;
  const directory = mkdtempSync(join(tmpdir(), 'farthing-test-'));

  before(async () => {
    world = await startWorld();
    await world.meter('calls', { type: 'SUM_AND_COUNT', field: 'n' }, { filters: [{ key: 'region', values: ['eu'] }] });
    await world.meter('peaks', { type: 'SUM_AND_COUNT', field: 'n', bucket_size: 'DAY' });
    await world.plan('Plan', [usage('calls', '2'), usage('peaks', '1')]);
    await world.on('2026-01-01', () => world.subscribe('acme', 'Plan'));
    const at = (timestamp: string, n: number, event_name = 'calls', region = 'eu') => ({
      event_id: `${event_name} ${timestamp} ${region}`,
      event_name,
      external_customer_id: 'acme',
      timestamp,
      properties: { n, region },
    });
    world.at('2026-01-20');
    await world.send([
      at('2026-01-02T10:30:00Z', 1.5),
      at('2026-01-02T10:40:00Z', 2),
      at('2026-01-19T00:00:00Z', 3),
      at('2026-01-19T00:00:00Z', 100, 'calls', 'us'),
      at('2026-01-02T00:00:00Z', 4, 'peaks'),
      at('2026-01-03T00:00:00Z', 5, 'peaks'),
    ]);
    await world.waitForPipeline();
  });
  after(async () => {
    rmSync(directory, { recursive: true });
    await world.stop();
  });

  const total = async (meter: string, range: object) => {
    const body = { meter_id: world.id(`meter ${meter}`), external_customer_id: 'acme', ...range };
    return (await world.post('/events/usage/meter', body)).value;
  };

  it('is counted from whole rows, and from raw events at edges within a row', async () => {
    expect(await total('calls', { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' })).to.equal(
      '9.5',
    );
    expect(await total('calls', { start_time: '2026-01-02T10:35:00Z', end_time: '2026-01-19T00:00:01Z' })).to.equal(
      '7',
    );
    expect(await total('peaks', { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' })).to.equal(
      '11',
    );
  });

  it('is billed, and the invoice is verified by the program with its formula', async () => {
    await world.on('2026-02-01');
    await world.finalize();
    const [invoice] = (await world.invoices('acme')).filter(({ invoice_status }) => invoice_status === 'FINALIZED');
    expect(invoice!.total).to.equal('30'); // 9.5 × 2 + 11
    const { proof, events } = await provenBy(world.api, invoice!.id);
    const check = async (program: string) => {
      const file = join(directory, `verify-${program.length}.mjs`);
      writeFileSync(file, program);
      const { verify } = (await import(pathToFileURL(file).href)) as Pick<typeof verifier, 'verify'>;
      return (await verify(proof, () => events)).differences;
    };
    const published = readFileSync(VERIFIER, 'utf8');
    expect(await check(withAggregations(published, AGGREGATIONS))).to.deep.equal([]);
    expect(await check(published)).to.not.deep.equal([]);
  });
});
