/**
 * Reservations under fire: callers of two processes hold, commit, release and let expire units of one hot feature and credits of one hot wallet, while their
 * connections are cut in the middle of what they do; and a process is killed between the commit of a reservation and its event. In the
 * end usage is what was committed, each once; nobody ever had more than there was; and nothing is held.
 */
import { once } from 'node:events';
import { expect } from 'chai';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { auditReservations } from '../../actions/operations/audit/reservations.ts';
import { checkReservation, type ReservationCheckResult } from '../../actions/reservations/check.ts';
import { endDueReservations } from '../../actions/reservations/end-due.ts';
import { commitReservation, releaseReservation } from '../../actions/reservations/end-reservation.ts';
import { checkShape } from '../../core/credits/reservations/request.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import type { Feature } from '../support/answers.ts';
import { startApiProcess } from '../support/scheduler-process.ts';
import { createChance } from '../support/seeds.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const OPERATIONS = 400;
const AT_ONCE = 24;
const LIMIT = 300;

describe('chaos: reservations', function () {
  this.timeout(1_800_000);
  let world: World;
  let feature: Feature;
  let processes: Stores[];
  const chance = createChance(23);

  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
    const meter = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1')]);
    feature = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
    const grant = { plan_id: world.id('plan Pro'), feature_id: feature.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...grant, usage_limit: LIMIT });
    const { services } = world.api;
    processes = [0, 1].map(() => ({ ...services, postgres: connectPostgres(readUrl(services.postgres)) }));
  });
  after(async () => {
    for (const { postgres } of processes) await postgres.destroy();
    await world.stop();
  });

  let cuts = 0;
  /** Until it is answered: what was cut is asked again. */
  async function surely<T>(work: (stores: Stores) => Promise<T>): Promise<T | FarthingError> {
    for (;;) {
      try {
        return await work(chance.pick(processes));
      } catch (error) {
        if (error instanceof FarthingError && error.http_status_code < 500) return error;
        cuts++;
      }
    }
  }
  const asked = (fields: Record<string, unknown>) => checkShape.parse({ external_customer_id: 'acme', ...fields });
  const findings = async () => {
    const found: unknown[] = [];
    await auditReservations(world.api.services, (finding) => found.push(finding));
    await auditCredits(world.api.services, (finding) => found.push(finding));
    return found;
  };

  it('nobody has more than there is, and what was committed is counted once', async () => {
    await world.subscribe('acme', 'Pro');
    const wallet = await world.post('/wallets', {
      external_customer_id: 'acme',
      currency: 'usd',
      initial_credits_to_load: '300',
      config: { allowed_price_types: ['FIXED'] },
    });
    const { scope } = world.api;
    const author = { user_id: 'user_1', now: world.now };
    const committed = { feature: [] as Decimal[], credits: [] as Decimal[] };
    const counts = { held: 0, refused: 0, left: 0 };

    const one = async (n: number) => {
      const kind = chance.pick(['feature', 'credits'] as const);
      const quantity = String(chance.whole(1, 9));
      const about = kind === 'feature' ? { feature_id: feature.id, quantity } : { credits: quantity };
      const terms = { ttl_seconds: chance.whole(1, 3), on_expiry: chance.pick(['release', 'charge']) };
      const request = asked({ ...about, hold: terms, idempotency_key: `key ${n}` });
      const answer = (await surely((stores) =>
        checkReservation(stores, scope, { request, author }),
      )) as ReservationCheckResult;
      expect(answer).not.to.be.instanceOf(Error);
      if (!answer.allowed) return void counts.refused++;
      counts.held++;
      const { id } = answer.reservation!;
      const how = chance.next();
      if (how < 0.6) {
        const less = String(chance.whole(0, Number(quantity)));
        const commit = { quantity: less, properties: null };
        // Twice at one time: it is done once.
        const both = await Promise.all(
          [0, 1].map(() => surely((stores) => commitReservation(stores, scope, { id, request: commit, author }))),
        );
        for (const done of both) expect(done).to.deep.include({ committed_quantity: less });
        committed[kind].push(new Decimal(less));
      } else if (how < 0.8) {
        const done = await surely((stores) => releaseReservation(stores, scope, { id, author }));
        expect(done).to.deep.include({ reservation_status: 'released' });
      } else {
        // Its caller is dead.
        counts.left++;
        if (terms.on_expiry === 'charge') committed[kind].push(new Decimal(quantity));
      }
    };
    let next = 0;
    const worker = async () => {
      while (next < OPERATIONS) await one(next++);
    };
    const cut = setInterval(() => {
      void world.api.services.postgres
        .raw(
          `select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid() and state = 'idle in transaction'
              and query ilike any(array['%reservation%', '%wallet%']) order by random() limit 1`,
        )
        .catch(() => undefined);
    }, 150);
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    clearInterval(cut);
    world.at('2026-03-15T12:00:10Z');
    const { failed } = await endDueReservations(world.api.services, { now: world.now });
    expect(failed).to.deep.equal([]);
    await world.waitForPipeline();

    const now = { user_id: 'user_1', now: world.now };
    const question = asked({ feature_id: feature.id, quantity: '0' });
    const left = await checkReservation(world.api.services, scope, { request: question, author: now });
    expect(left).to.deep.include({ used: sumDecimals(committed.feature).toFixed(), held: '0' });
    const { features } = await world.get('/customers/usage?customer_lookup_key=acme');
    expect(features[0]!.current_usage).to.equal(sumDecimals(committed.feature).toFixed());
    const { credit_balance, credits_owed } = await world.get(`/wallets/${wallet.id}`);
    expect([credit_balance, credits_owed]).to.deep.equal([
      new Decimal(300).minus(sumDecimals(committed.credits)).toFixed(),
      '0',
    ]);
    expect(sumDecimals(committed.feature).lte(LIMIT)).to.equal(true);
    expect(await findings()).to.deep.equal([]);
    console.log(`      ${OPERATIONS} callers: ${JSON.stringify(counts)}, ${cuts} tries were cut`);
    expect(counts.refused, 'some were refused').to.be.greaterThan(0);
    expect(cuts, 'some were cut').to.be.greaterThan(0);
  });

  /** Where the process waits when it is killed: nothing of it goes on. */
  for (const [place, table] of [
    ['before the log has its event', 'log_records'],
    ['when the log has its event, and before that is noted', 'reservation_events'],
  ] as const)
    it(`a process that is killed ${place} is followed by others`, async () => {
      const customer = `killed at ${table}`;
      await world.subscribe(customer, 'Pro');
      const question = { external_customer_id: customer, feature_id: feature.id };
      const { reservation } = await world.post('/entitlements/check', { ...question, quantity: '200', hold: {} });
      const { postgres } = world.api.services;
      const { child, url } = await startApiProcess(world.api.services, world.now);
      await postgres.raw(`
        create or replace function wait_to_die() returns trigger language plpgsql as $$
          begin perform pg_advisory_xact_lock(79); return new; end $$;
        create trigger wait_to_die before insert on ${table} for each row execute function wait_to_die()`);
      const holding = await postgres.transaction();
      await holding.raw('select pg_advisory_xact_lock(79)');
      const waiting = () => postgres('pg_locks').where({ locktype: 'advisory', granted: false, objid: 79 });
      const path = `${url}/v1/reservations/${reservation!.id}/commit`;
      const sent = world.api.request('POST', path, { body: { quantity: '150' } }).catch((error: Error) => error);
      await until('it is in the middle', async () => (await waiting()).length > 0, 60_000);
      // It counts at once, whatever becomes of whoever did it.
      const between = await world.post('/entitlements/check', { ...question, quantity: '151' });
      expect(between).to.deep.include({ allowed: false, reason: 'limit_reached', held: '0' });
      expect(Number(between.used)).to.be.at.least(150);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await waiting().select(postgres.raw('pg_terminate_backend(pid)'));
      await holding.rollback();
      expect(await sent).to.be.instanceOf(Error);
      await until('nothing of it is left', async () => (await waiting()).length === 0);
      await postgres.raw(`drop trigger wait_to_die on ${table}`);
      await world.waitForPipeline();

      const { failed } = await endDueReservations(world.api.services, { now: world.now });
      expect(failed).to.deep.equal([]);
      await world.waitForPipeline();
      const after = await world.post('/entitlements/check', { ...question, quantity: '150' });
      expect(after).to.deep.include({ allowed: true, used: '150', held: '0' });
      const { features } = await world.get(`/customers/usage?customer_lookup_key=${encodeURIComponent(customer)}`);
      expect(features[0]!.current_usage).to.equal('150');
      expect(await findings()).to.deep.equal([]);
    });
});
