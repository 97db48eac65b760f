/** What is kept of running periods is compared with the stores all the time, and what differs is told and forgotten. */
import { expect } from 'chai';
import { auditRecords } from '../../../../actions/operations/audit/records.ts';
import { reportOtherProcesses, sampleRunning } from '../../../../actions/operations/audit/running.ts';
import { startCacheAudit } from '../../../../api/operations/audit-cache.ts';
import { getCache } from '../../../../storage/cache/cached-answers.ts';
import { sampleHistories } from '../../../../storage/cache/cached-histories.ts';
import { UsageCache } from '../../../../storage/usage/usage-cache.ts';
import { until } from '../../../support/until.ts';
import { startWorld, usage, type World } from '../../../support/world.ts';

describe('the audit of running periods', () => {
  const usage_cache = new UsageCache();
  let world: World;
  let wallet: { id: string };

  before(async () => {
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_cache });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
    await world.subscribe('acme', 'Calls');
    wallet = await world.post('/wallets', { external_customer_id: 'acme', currency: 'usd' });
    await world.use('acme', 'calls', 3);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const balance = async (): Promise<string> =>
    (await world.get(`/wallets/${wallet.id}/balance/real-time`)).real_time_balance!;
  const sampled = async (): Promise<string[]> => {
    const found: string[] = [];
    await sampleRunning(world.api.services, { chance: () => 0, now: world.now }, ({ kind, what }) =>
      found.push(`${kind}: ${what}`),
    );
    return found;
  };
  /** What `npm run audit -- --check running` does. */
  const told = async () => {
    const found: string[] = [];
    const asked = { checks: new Set(['running'] as const), log: null, identityFiles: async () => [], chance: () => 0 };
    const [report] = await auditRecords(world.api.services, asked, ({ what }) => found.push(what));
    return { ...report!, found };
  };

  it('finds nothing where nothing differs', async () => {
    expect(await balance()).to.equal('-6');
    await world.use('acme', 'calls', 4);
    await world.waitForPipeline();
    expect(await balance()).to.equal('-14');
    expect(await sampled()).to.deep.equal([]);
    const { counts, differences } = await told();
    expect(counts).to.deep.equal({ audits: 1, answers: 2, lines: 1, histories: 0 });
    expect(differences).to.equal(0);
  });

  it('finds an event that was taken in twice, tells it, and forgets what it was in', async () => {
    const { period } = getCache(usage_cache)
      .some(10, () => 0)
      .flatMap(({ periods }) => periods)[0]!;
    const at = world.now.getTime() * 1000;
    const of = { tenant_id: '', environment_id: '', meter_id: '', external_customer_id: '', group_key: '' };
    const nothing = { weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };
    const place = { size: 'HOUR', bucket_start_us: at, first_us: at, last_us: at } as const;
    period.take({ ...of, ...place, ...nothing, count: 1, sum: 10n ** 24n }, period.meter_version);
    expect(await balance()).to.equal('-16');
    const found = await sampled();
    expect(found).to.have.length(2);
    expect(found[0]).to.match(/^running_differs: .*"acme": 8 of 3 events in memory, 7 of 2 events in the stores$/);
    expect(found[1]).to.match(/"current_usage":"16".* a preview says .*"current_usage":"14"/);
    expect(await balance()).to.equal('-14');
    expect(await sampled()).to.deep.equal([]);
    const { found: afterwards, differences } = await told();
    expect(differences).to.equal(2);
    expect(afterwards[0]).to.match(/8 of 3 events in memory/);
  });
}).timeout(120_000);

describe('the audit of histories of grants that are kept', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { id: meter_id } = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '0.5')]);
    const of = { plan_id: world.id('plan Pro'), feature_type: 'metered' };
    for (const [grant_measure, grant_quota] of [
      ['quantity', '1000'],
      ['amount', '300'],
    ]) {
      const { id: feature_id } = await world.post('/features', { name: grant_measure, type: 'metered', meter_id });
      const terms = { grant_measure, grant_quota, grant_duration_value: 5, grant_duration_unit: 'hour' };
      await world.post('/entitlements', { ...of, feature_id, ...terms });
    }
    await world.subscribe('acme', 'Pro');
    world.at('2026-01-10T04:30:00Z');
    await sent(
      'first',
      Array.from({ length: 500 }, (_, n) => Date.UTC(2026, 0, 10, 1) + n * 20_000),
    );
  });
  after(() => world.stop());

  const sent = async (name: string, instants: readonly number[]) => {
    await world.send(
      instants.map((at, n) =>
        world.event('acme', 'tokens', { n: 1, at: new Date(at).toISOString(), event_id: `${name} ${n}` }),
      ),
    );
    await world.waitForPipeline();
  };
  const used = async (): Promise<string[]> => {
    const { features } = await world.get('/customers/usage?customer_lookup_key=acme');
    return features.map(({ current_usage }: { current_usage: string }) => current_usage);
  };
  const all = () => sampleHistories(world.api.services, { count: 100, events: 1_000_000, chance: () => 0 });
  const sampled = async (): Promise<string[]> => {
    const found: string[] = [];
    const sampling = { chance: () => 0, now: world.now };
    await sampleRunning(world.api.services, sampling, ({ kind, what }) => found.push(`${kind}: ${what}`));
    return found;
  };
  /** Of the grant that lasts ten units more were used than were. */
  const breakOne = () => {
    const [{ history: kept }] = all() as [ReturnType<typeof all>[number]];
    const [{ last }] = kept.made as [{ last: [{ used: { plus(n: string): object } }] }];
    last[0].used = last[0].used.plus('10') as (typeof last)[0]['used'];
  };

  it('finds nothing where nothing differs, and nothing in what nobody would believe', async () => {
    expect(await used()).to.deep.equal(['500', '250']);
    expect(all(), 'both go by the same usage').to.have.length(1);
    expect(await sampled()).to.deep.equal([]);
    await sent('late', [Date.UTC(2026, 0, 10, 2) + 1]);
    expect(await sampled(), 'what came late has made it another').to.deep.equal([]);
    expect(await used()).to.deep.equal(['501', '250.5']);
    expect(await sampled()).to.deep.equal([]);
  });

  it('finds one that has gone wrong, tells it, and forgets it', async () => {
    breakOne();
    expect((await used())[0]).to.equal('511');
    const found = await sampled();
    expect(found).to.have.length(1);
    expect(found[0]).to.match(
      /^running_differs: grants of .*"acme".* events before 2026-01-10T04:00:00.*in memory, .* of raw events$/,
    );
    expect(await used()).to.deep.equal(['501', '250.5']);
    expect(await sampled()).to.deep.equal([]);
  });

  it('a process that serves the interface alone compares its own, and another tells it, once', async () => {
    breakOne();
    const { services } = world.api;
    const audit = startCacheAudit({ ...services, clock: () => world.now }, 10);
    const told: string[] = [];
    await until('it has found it', async () => {
      await reportOtherProcesses(services, ({ kind, what }) => told.push(`${kind}: ${what}`));
      return told.length > 0;
    });
    await audit.close();
    await reportOtherProcesses(services, ({ what }) => told.push(what));
    expect(told).to.have.length(1);
    expect(told[0]).to.match(/^running_differs: grants of .*"acme"/);
    expect((await used())[0]).to.equal('501');
  });
}).timeout(120_000);
