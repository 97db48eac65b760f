/** What is kept of running periods is compared with the stores all the time, and what differs is told and forgotten. */
import { expect } from 'chai';
import { auditRecords } from '../../../actions/audit/records.ts';
import { sampleRunning } from '../../../actions/audit/running.ts';
import { keptIn } from '../../../storage/kept/kept-answers.ts';
import { UsageMemory } from '../../../storage/usage/usage-memory.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

describe('the audit of running periods', () => {
  const usage_memory = new UsageMemory();
  let world: World;
  let wallet: { id: string };

  before(async () => {
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_memory });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
    await world.subscribe('acme', 'Calls');
    wallet = await world.post('/wallets', { external_customer_id: 'acme', currency: 'usd' });
    await world.use('acme', 'calls', 3);
    await world.settle();
  });
  after(() => world.stop());

  const balance = async (): Promise<string> =>
    (await world.get(`/wallets/${wallet.id}/balance/real-time`)).real_time_balance;
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
    await world.settle();
    expect(await balance()).to.equal('-14');
    expect(await sampled()).to.deep.equal([]);
    const { looked_at, differences } = await told();
    expect(looked_at).to.deep.equal({ audits: 1, answers: 2, lines: 1 });
    expect(differences).to.equal(0);
  });

  it('finds an event that was taken in twice, tells it, and forgets what it was in', async () => {
    const { line } = keptIn(usage_memory)
      .some(10, () => 0)
      .flatMap(({ lines }) => lines)[0]!;
    const at = world.now.getTime() * 1000;
    const of = { tenant_id: '', environment_id: '', meter_id: '', external_customer_id: '', group_key: '' };
    const nothing = { weighted_sum: 0n, min: null, max: null, latest: null, uniques: [] };
    const place = { size: 'HOUR', bucket_start_us: at, first_us: at, last_us: at } as const;
    line.take({ ...of, ...place, ...nothing, count: 1, sum: 10n ** 24n }, line.meter_version);
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
