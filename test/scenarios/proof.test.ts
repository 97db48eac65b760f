/** Invoices that are checked by whoever gets them: the proof, the events and the program that is given to customers (docs/proof.md). */
import { expect } from 'chai';
import { check, provenBy, verifier } from '../support/verifier.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

describe('scenario: the proof of an invoice', () => {
  let world: World;
  let count = 0;
  const newName = () => `customer ${++count}`;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('peak', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
    await world.plan('Pro', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      tiers(
        'calls',
        [
          [1000, '0.02'],
          [5000, '0.005', '1'],
          [null, '0.01'],
        ],
        { display_name: 'calls' },
      ),
      usage('seats', '2', { display_name: 'seats' }),
      usage('peak', '1.5', { display_name: 'peak' }),
    ]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  it('agrees in every line, and says what it took as stated', async () => {
    const name = newName();
    await world.on('2026-01-10', () => world.subscribe(name, 'Pro', { billing_cycle: 'calendar' }));
    await world.on('2026-01-12', () => world.use(name, 'calls', 1200));
    await world.on(
      '2026-01-13',
      () => world.use(name, 'seats', 3),
      () => world.use(name, 'peak', 7),
    );
    await world.on('2026-02-01');
    await world.finalize();
    for (const { id } of await world.invoices(name)) {
      const proven = await provenBy(world.api, id);
      const { differences, stated } = await check(proven);
      console.log(
        JSON.stringify(proven.proof.lines.map((l: any) => [l.line.display_name, l.seal, l.not_sealed])),
        stated,
        proven.events,
      );
      expect(differences).to.deep.equal([]);
    }
    void verifier;
  });
});
