/**
 * A process of Postgres is killed with -9: all connections end, and what is not logged, as the slices that are told to interfaces beside the pipeline, is gone. What
 * they answer is right all the same, and goes on from there (docs/decisions/0007-cached-answers.md).
 */
import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { register } from 'prom-client';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const KILLS = 2;

describe('chaos: a backend of Postgres and kill -9', function () {
  this.timeout(180_000);
  let world: World;
  let wallet: { id: string };
  let used = 0;

  before(async () => {
    const usage_cache = new UsageCache({ isFed: true });
    world = await startWorld({ now: '2026-01-10T00:00:00Z', usage_cache, beside: true });
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '2')]);
    await world.subscribe('acme', 'Calls');
    wallet = await world.post('/wallets', { external_customer_id: 'acme', currency: 'usd' });
  });
  after(() => world?.stop());

  const postgres = () => world.api.services.postgres;
  const use = async (n: number) => {
    await world.use('acme', 'calls', n);
    used += n;
  };
  const right = async (when: string) => {
    const { real_time_balance } = await world.get(`/wallets/${wallet.id}/balance/real-time`);
    expect(Number(real_time_balance), when).to.equal(-2 * used);
  };
  const told = async () => (await postgres().raw('select count(*)::int as count from told_slices')).rows[0].count;
  const arrived = async () => {
    const { values } = await register.getSingleMetric('farthing_running_answers_total')!.get();
    return values.find(({ labels }) => labels.from === 'arrived')?.value ?? 0;
  };
  /** What came is taken in, and not gathered. */
  const broughtForward = () =>
    until('slices are told', async () => {
      const before = await arrived();
      await use(1);
      await world.waitForPipeline();
      await right('while it is brought forward');
      return (await arrived()) > before;
    });

  it('leaves the answers beside the pipeline right', async () => {
    for (let kill = 1; kill <= KILLS; kill++) {
      await broughtForward();
      expect(await told(), 'slices are told').to.be.above(0);
      // Some of it is told and not looked at, and some is not in the rows yet.
      await use(3);
      await world.waitForPipeline();
      await use(5);
      const { rows } = await postgres().raw('select pg_backend_pid() as pid');
      // On this machine, and not a number that means something else here.
      expect(execFileSync('ps', ['-o', 'command=', '-p', String(rows[0].pid)], { encoding: 'utf8' })).to.match(
        /postgres/,
      );
      process.kill(rows[0].pid, 'SIGKILL');
      await until('Postgres is back', async () => {
        const back = await postgres()
          .raw('select 1')
          .catch(() => null);
        return back !== null;
      });
      await until('it answers', async () => {
        const path = `/wallets/${wallet.id}/balance/real-time` as const;
        return (await world.api.request('GET', path)).status === 200;
      });
      await until('usage has come through', () =>
        world.waitForPipeline().then(
          () => true,
          () => false,
        ),
      );
      await right(`after kill ${kill}`);
      await use(7);
      await world.waitForPipeline();
      await right('after what came next');
    }
    await broughtForward();
  });
});
