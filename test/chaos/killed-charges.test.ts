/**
 * kill -9 of a process that charges a card, at each instant of it: before the provider hears of it, while it charges, and when it has charged
 * and the answer is not stored yet. Whoever comes after it charges nothing twice, and loses nothing (docs/rules/payments.md, "Never twice").
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { processDuePayments } from '../../actions/lifecycle/payments/due-payments.ts';
import { startSchedulerProcess } from '../support/scheduler-process.ts';
import { until } from '../support/until.ts';
import { fixed, startWorld, type World } from '../support/world.ts';

/** Where the process waits when it is killed: what it writes then is not there yet. */
const PLACES = [
  { where: 'it has taken the try and not committed it', table: 'payment_attempts', when: 'true', charged: false },
  { where: 'the provider hears of it', table: 'sandbox_charges', when: 'true', charged: false },
  {
    where: 'it is charged, and the answer is being stored',
    table: 'payments',
    when: "new.payment_status = 'SUCCEEDED'",
    charged: true,
  },
  {
    where: 'it is charged, and the invoice is being paid',
    table: 'invoices',
    when: "new.payment_status = 'SUCCEEDED'",
    charged: true,
  },
] as const;

describe('a process that is killed inside of a charge', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { scope, services } = world.api;
    await services.postgres('environments').where({ id: scope.environment_id }).update({ type: 'development' });
    await world.plan('Pro', [fixed('10', { invoice_cadence: 'ADVANCE' })]);
    const value = { default_gateway: 'sandbox' };
    const { status } = await world.api.request('PUT', '/settings/payment_config', { body: { value } });
    expect(status).to.equal(200);
  });
  after(() => world.stop());

  const postgres = () => world.api.services.postgres;
  const waiting = () => postgres()('pg_locks').where({ locktype: 'advisory', granted: false, objid: 77 });
  const charges = (customer: string) =>
    postgres()('sandbox_charges as charge')
      .join('payments as payment', (join) =>
        join.on(postgres().raw("split_part(charge.idempotency_key, '/', 1) = payment.id")),
      )
      .join('invoices as invoice', 'invoice.id', 'payment.destination_id')
      .where('invoice.customer_id', world.id(`customer ${customer}`))
      .select('charge.idempotency_key', 'charge.amount', 'charge.charge_status', 'invoice.id');

  async function stopAt({ table, when }: (typeof PLACES)[number]): Promise<void> {
    await postgres().raw(`
      create or replace function wait_here() returns trigger language plpgsql as $$
        begin perform pg_advisory_xact_lock(77); return new; end $$;
      create trigger wait_here before insert or update on ${table}
        for each row when (${when}) execute function wait_here()`);
  }

  /** Whatever becomes of it, nobody waits for the lock any more and the process is gone: the world could not be stopped. */
  async function whatIsChargedWhenItIsKilled(customer: string, invoice_id: string) {
    const holding = await postgres().transaction();
    await holding.raw('select pg_advisory_xact_lock(77)');
    const child = await startSchedulerProcess(world.api.services, world.now);
    const ended = once(child, 'exit');
    try {
      await until('it is in the middle', async () => (await waiting()).length > 0, 60_000);
      return (await charges(customer)).filter(({ id }) => id === invoice_id);
    } finally {
      child.kill('SIGKILL');
      await ended;
      await holding.rollback();
    }
  }

  for (const [month, place] of PLACES.entries())
    it(`when ${place.where}: it is charged once, and paid`, async () => {
      const [customer, start] = [`killed ${month}`, `2026-0${2 * month + 1}-15`];
      await world.customer(customer);
      const method = { gateway_payment_method_id: 'pm_sandbox_card' };
      await world.post(`/payments/customers/${world.id(`customer ${customer}`)}/methods`, method);
      await world.on(start, () => world.subscribe(customer, 'Pro'));
      expect(await charges(customer)).to.have.length(1);
      await world.on(`2026-0${2 * month + 2}-15`);
      await world.finalize();
      const [, invoice] = await world.invoices(customer);
      expect([invoice!.invoice_status, invoice!.payment_status]).to.deep.equal(['FINALIZED', 'PENDING']);

      await stopAt(place);
      const before = await whatIsChargedWhenItIsKilled(customer, invoice!.id);
      await until('nothing of it is left', async () => (await waiting()).length === 0);
      await postgres().raw(`drop trigger wait_here on ${place.table}`);
      expect(before.map(({ charge_status }) => charge_status)).to.deep.equal(place.charged ? ['succeeded'] : []);
      const [, left] = await world.invoices(customer);
      expect(left!.payment_status).to.not.equal('SUCCEEDED');

      // Two at once come after it, when it is asked after.
      world.at(new Date(world.now.getTime() + 120_000).toISOString());
      const now = world.now;
      const pursued = await Promise.all([1, 2].map(() => processDuePayments(world.api.services, { now })));
      expect(pursued.flatMap(({ failed }) => failed)).to.deep.equal([]);
      const [, paid] = await world.invoices(customer);
      expect([paid!.payment_status, paid!.amount_paid, paid!.amount_remaining]).to.deep.equal(['SUCCEEDED', '10', '0']);
      const all = (await charges(customer)).filter(({ id }) => id === invoice!.id);
      expect(all.map(({ amount, charge_status }) => [amount, charge_status])).to.deep.equal([['10', 'succeeded']]);
      const { items } = await world.get(`/payments?destination_id=${invoice!.id}&expand=attempts`);
      expect(items.map(({ payment_status }) => payment_status)).to.deep.equal(['SUCCEEDED']);
      // Nothing of it is due beside the next one.
      await world.cancel(customer);
    }).timeout(120_000);
});
