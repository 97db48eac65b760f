/** Who asks for looks at many customers asks in one order, whatever order their usage came in: two who ask at one time do not wait for each other. */
import { expect } from 'chai';
import { enqueueUsageChecks } from '../../../storage/progress/usage-checks.ts';
import { startWorld, usage, type World } from '../../support/world.ts';

const NAMES = Array.from({ length: 30 }, (_, n) => `customer ${n}`);

describe('looks that usage asks for', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Calls', [usage('calls', '1')]);
    for (const name of NAMES) {
      await world.subscribe(name, 'Calls', { auto_invoice_threshold: '50' });
      const alert_settings = { alert_enabled: true, critical: { threshold: '5', condition: 'below' } };
      await world.post('/wallets', { external_customer_id: name, currency: 'usd', alert_settings });
    }
    // Rows that were written again lie behind the others.
    for (const table of ['subscriptions', 'customers', 'wallets'])
      for (const order of ['asc', 'desc'])
        await world.api.services.postgres.raw(
          `update ${table} set updated_at = now() where id in (select id from ${table} order by id ${order} limit 2)`,
        );
    await world.api.services.postgres.raw('analyze');
  });
  after(() => world.stop());

  /** In the order in which their jobs were added. */
  async function asked(names: readonly string[]): Promise<string[]> {
    const { postgres } = world.api.services;
    await postgres.raw('delete from graphile_worker._private_jobs');
    await enqueueUsageChecks(
      postgres,
      names.map((external_customer_id) => ({ ...world.api.scope, external_customer_id })),
    );
    const { rows } = await postgres.raw('select key from graphile_worker.jobs order by id');
    return rows.map(({ key }: { key: string }) => key);
  }

  it('are asked for in the order of their ids', async () => {
    const keys = await asked(NAMES);
    const of = (kind: string) => keys.filter((key) => key.startsWith(`${kind}:`));
    expect(of('threshold')).to.have.lengthOf(NAMES.length);
    expect(of('alerts')).to.have.lengthOf(NAMES.length);
    expect(keys).to.deep.equal([...of('threshold').sort(), ...of('alerts').sort()]);
    expect(await asked([...NAMES].reverse())).to.deep.equal(keys);
    const mixed = NAMES.map((_, n) => NAMES[(n * 7) % NAMES.length]!);
    expect(await asked(mixed)).to.deep.equal(keys);
  });
}).timeout(60_000);
