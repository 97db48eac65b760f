/**
 * Any order of questions, holds, commits, releases, expiries, ordinary usage and of processes that end before the log has their event, told
 * to the interface and compared with a plain model: what is allowed, what was used and what is held are the same at every step, also of
 * callers that come at one time; and in the end usage is what was committed, once (docs/rules/reservations.md).
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { auditReservations } from '../../actions/operations/audit/reservations.ts';
import { endDueReservations } from '../../actions/reservations/end-due.ts';
import { commitReservation } from '../../actions/reservations/end-reservation.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { openEmbeddedLog } from '../../storage/log/embedded/embedded.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import type { Feature } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const LIMIT = 100;

type Held = { quantity: number; expires: number; charge: boolean; state: 'held' | 'expired' | 'released' | number };

/** What is to come of it, in plain numbers. */
class Model {
  used = 0;
  now = 0;
  readonly all: Held[] = [];

  /** What is released when its time is over is gone whoever looks; what is charged is held until somebody does it. */
  expire(): void {
    for (const one of this.all)
      if (one.state === 'held' && !one.charge && one.expires <= this.now) one.state = 'expired';
  }
  get held(): number {
    return this.all.reduce((sum, one) => (one.state === 'held' ? sum + one.quantity : sum), 0);
  }
  fits(more: number): boolean {
    return this.used + this.held + more <= LIMIT;
  }
  hold(quantity: number, terms: { ttl: number; charge: boolean }): boolean {
    if (!this.fits(quantity)) return false;
    this.all.push({ quantity, expires: this.now + terms.ttl, charge: terms.charge, state: 'held' });
    return true;
  }
  /** Whoever ends one that is charged when its time is over finds it charged. */
  charge(one: Held): void {
    if (one.state !== 'held' || !one.charge || one.expires > this.now) return;
    one.state = one.quantity;
    this.used += one.quantity;
  }
  commit(one: Held, quantity: number): boolean {
    this.charge(one);
    if (typeof one.state === 'number') return one.state === quantity;
    if (one.state === 'released') return false;
    const more = quantity - (one.state === 'held' ? one.quantity : 0);
    if (more > 0 && !this.fits(more)) return false;
    one.state = quantity;
    this.used += quantity;
    return true;
  }
  release(one: Held): boolean {
    this.charge(one);
    if (typeof one.state === 'number') return false;
    if (one.state === 'held') one.state = 'released';
    return true;
  }
  sweep(): void {
    for (const one of this.all) this.charge(one);
  }
}

type Real = { world: World; customer: string; feature_id: string; dead: EventLog; ids: string[] };
type Command = fc.AsyncCommand<Model, Real>;

const START = Date.parse('2026-01-02T00:00:00Z');
const move = (model: Model, { world }: Real) => {
  model.expire();
  world.at(new Date(START + model.now * 1000).toISOString());
};
const request = <Path extends string>(real: Real, path: Path, body: object) =>
  real.world.api.request('POST', path, { body });

async function hold(real: Real, quantity: number, { ttl, charge }: { ttl: number; charge: boolean }) {
  const hold = { ttl_seconds: ttl, on_expiry: charge ? 'charge' : 'release' };
  const asked = { external_customer_id: real.customer, feature_id: real.feature_id, quantity: String(quantity), hold };
  const { status, body, text } = await request(real, '/entitlements/check', asked);
  expect(status, text).to.equal(200);
  return body;
}

/** One command: what it does to the model and to the service, and how it reads when it fails. */
function command(name: string, run: (model: Model, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    async run(model, real) {
      move(model, real);
      await run(model, real);
      const question = { external_customer_id: real.customer, feature_id: real.feature_id, quantity: '0' };
      // While a slice is being written its usage may stand in both parts of the sum: for that moment it is more, and never less.
      await until(`${name}: ${model.used} are used`, async () => {
        const { body } = await request(real, '/entitlements/check', question);
        expect(body.held, name).to.equal(String(model.held));
        expect(Number(body.used), name).to.be.at.least(model.used);
        return body.used === String(model.used);
      });
    },
    toString: () => name,
  };
}

const of = <T>(all: readonly T[], nth: number): number => (all.length === 0 ? -1 : nth % all.length);
const terms = fc.record({ ttl: fc.integer({ min: 5, max: 120 }), charge: fc.boolean() });
const nth = fc.nat({ max: 30 });
const units = fc.integer({ min: 1, max: 60 });

const commands: fc.Arbitrary<Command>[] = [
  fc.tuple(units, terms).map(([quantity, kept]) =>
    command(`hold ${quantity} ${JSON.stringify(kept)}`, async (model, real) => {
      const answer = await hold(real, quantity, kept);
      expect(answer.allowed).to.equal(model.hold(quantity, kept));
      if (answer.allowed) real.ids.push(answer.reservation!.id);
    }),
  ),
  fc.tuple(fc.integer({ min: 2, max: 8 }), units, terms).map(([callers, quantity, kept]) =>
    command(`${callers} hold ${quantity} at one time`, async (model, real) => {
      const answers = await Promise.all(Array.from({ length: callers }, () => hold(real, quantity, kept)));
      const expected = answers.map(() => model.hold(quantity, kept)).filter(Boolean).length;
      const allowed = answers.filter((one) => one.allowed);
      expect(allowed).to.have.lengthOf(expected);
      real.ids.push(...allowed.map((one) => one.reservation!.id));
    }),
  ),
  fc.tuple(nth, fc.integer({ min: 0, max: 70 })).map(([index, quantity]) =>
    command(`commit ${quantity} of the ${index}th`, async (model, real) => {
      const at = of(model.all, index);
      if (at < 0) return;
      // Twice at one time: it is done once.
      const body = { quantity: String(quantity) };
      const both = await Promise.all([0, 1].map(() => request(real, `/reservations/${real.ids[at]}/commit`, body)));
      const isDone = model.commit(model.all[at]!, quantity);
      expect(both.map(({ status }) => status)).to.deep.equal(isDone ? [200, 200] : [400, 400]);
    }),
  ),
  nth.map((index) =>
    command(`commit the ${index}th in a process that ends before the log has it`, async (model, real) => {
      const at = of(model.all, index);
      const one = model.all[at];
      if (!one) return;
      const stores = { ...real.world.api.services, log: real.dead };
      const author = { user_id: '', now: real.world.now };
      const asked = { quantity: String(one.quantity), properties: null };
      const done = await commitReservation(stores, real.world.api.scope, {
        id: real.ids[at]!,
        request: asked,
        author,
      }).catch((error: FarthingError) => error);
      const wasSent = typeof one.state === 'number';
      // What has expired needs room, and without the log nobody knows how far usage is counted: it is refused for the doubt.
      const isDone = one.state !== 'expired' && model.commit(one, one.quantity);
      if (done instanceof FarthingError)
        expect(done.code).to.equal(isDone ? 'service_unavailable' : 'invalid_operation');
      else expect([isDone, wasSent]).to.deep.equal([true, true]);
    }),
  ),
  nth.map((index) =>
    command(`release the ${index}th`, async (model, real) => {
      const at = of(model.all, index);
      if (at < 0) return;
      const { status } = await request(real, `/reservations/${real.ids[at]}/release`, {});
      expect(status).to.equal(model.release(model.all[at]!) ? 200 : 400);
    }),
  ),
  fc.integer({ min: 1, max: 60 }).map((seconds) =>
    command(`wait ${seconds} s`, async (model, real) => {
      model.now += seconds;
      move(model, real);
    }),
  ),
  fc.constant(
    command('the job', async (model, real) => {
      const { failed } = await endDueReservations(real.world.api.services, { now: real.world.now });
      expect(failed).to.deep.equal([]);
      model.sweep();
    }),
  ),
  units.map((quantity) =>
    command(`an event of ${quantity} units`, async (model, real) => {
      await real.world.use(real.customer, 'tokens', quantity);
      await real.world.waitForPipeline();
      model.used += quantity;
    }),
  ),
];

describe('laws of reservations', function () {
  this.timeout(600_000);
  let world: World;
  let feature: Feature;
  let dead: EventLog;

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const meter = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1')]);
    feature = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
    const grant = { plan_id: world.id('plan Pro'), feature_id: feature.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...grant, usage_limit: LIMIT });
    const gone = connectPostgres(readUrl(world.api.services.postgres));
    dead = await openEmbeddedLog(gone, { partition_count: 1, append_timeout_ms: 1000 });
    await gone.destroy();
  });
  after(() => world.stop());

  it('whatever comes in whichever order, it is what the model says', async () => {
    let runs = 0;
    const law = fc.asyncProperty(fc.commands(commands, { maxCommands: 25 }), async (some) => {
      const customer = `customer ${runs++}`;
      world.at('2026-01-01T00:00:00Z');
      await world.subscribe(customer, 'Pro');
      const real: Real = { world, customer, feature_id: feature.id, dead, ids: [] };
      const model = new Model();
      await fc.asyncModelRun(() => ({ model, real }), some);
      // Of the others, too: what one run leaves is swept by the next.
      await endDueReservations(world.api.services, { now: world.now });
      model.expire();
      model.sweep();
      await world.waitForPipeline();
      const { features } = await world.get(`/customers/usage?customer_lookup_key=${encodeURIComponent(customer)}`);
      expect(features[0]!.current_usage).to.equal(String(model.used));
      const findings: unknown[] = [];
      await auditReservations(world.api.services, (finding) => findings.push(finding));
      expect(findings).to.deep.equal([]);
    });
    await fc.assert(law, { numRuns: samples(12) });
  });
});
