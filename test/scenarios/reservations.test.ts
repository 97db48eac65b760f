/** Reservations on the clock of an environment: what nobody ends is released or charged, and windows begin anew around what is held. */
import { expect } from 'chai';
import { expireCredits } from '../../actions/credits/wallets/expire-credits.ts';
import { endDueReservations } from '../../actions/reservations/end-due.ts';
import { type ReservationOp, runReservationBatch } from '../../actions/reservations/reservation-batch.ts';
import { submitReservation } from '../../actions/reservations/submit-reservation.ts';
import { createWalletCounter } from '../../actions/reservations/wallet-counter.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import type { Feature } from '../support/answers.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('reservations by a clock', () => {
  let world: World;
  let feature: Feature;

  const ask = (customer: string, quantity: string, hold: Fields | null = null) =>
    world.post('/entitlements/check', { external_customer_id: customer, feature_id: feature.id, quantity, hold });
  const left = async <Path extends string>(customer: Path) => {
    const { used, held, remaining } = await ask(customer, '0');
    return { used, held, remaining };
  };
  const end = (id: string, how: string, body: Fields = {}) => world.post(`/reservations/${id}/${how}`, body);

  before(async () => {
    world = await startWorld({ now: '2031-01-01T00:00:00Z', test_clock: true });
    const meter = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1', { display_name: 'tokens' })]);
    feature = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
    const grant = { plan_id: world.id('plan Pro'), feature_id: feature.id, feature_type: 'metered' };
    await world.post('/entitlements', { ...grant, usage_limit: 100 });
    for (const customer of ['acme', 'bravo', 'charlie', 'dora']) await world.subscribe(customer, 'Pro');
  });
  after(() => world.stop());

  it('what nobody ends is released at its instant, or charged at it, and is on the invoice of then', async () => {
    await world.on('2031-01-31T23:00:00Z');
    const gone = await ask('acme', '40', { ttl_seconds: 600 });
    const charged = await ask('acme', '60', { ttl_seconds: 1800, on_expiry: 'charge' });
    expect(await left('acme')).to.deep.equal({ used: '0', held: '100', remaining: '0' });
    await world.on('2031-01-31T23:10:00Z');
    expect(await world.get(`/reservations/${gone.reservation!.id}`)).to.deep.include({
      reservation_status: 'expired',
      ended_by: 'expiry',
      ended_at: '2031-01-31T23:10:00Z',
    });
    expect(await left('acme')).to.deep.equal({ used: '0', held: '60', remaining: '40' });
    const late = await end(gone.reservation!.id, 'commit', { quantity: '30' });
    expect(late).to.deep.include({ reservation_status: 'committed', committed_quantity: '30', ended_by: 'commit' });
    await world.waitForPipeline();
    await world.on('2031-02-01T00:00:00Z');
    expect(await world.get(`/reservations/${charged.reservation!.id}`)).to.deep.include({
      reservation_status: 'committed',
      committed_quantity: '60',
      ended_by: 'expiry',
      ended_at: '2031-01-31T23:30:00Z',
      event_at: '2031-01-31T23:30:00Z',
    });
    const [invoice] = await world.invoices('acme');
    const [line] = invoice!.line_items;
    expect([line!.quantity, line!.adjusted_entitlement_quantity]).to.deep.equal(['0', '90']);
    expect(await left('acme')).to.deep.equal({ used: '0', held: '0', remaining: '100' });
    const again = await world.api.request('POST', `/reservations/${charged.reservation!.id}/commit`, {
      body: { quantity: '10' },
    });
    expect(again.body.details).to.deep.include({ committed_quantity: '60', ended_by: 'expiry' });
  });

  it('what expired at the end of a period is charged in it', async () => {
    const { reservation } = await ask('dora', '70', { ttl_seconds: 600_000, on_expiry: 'charge' });
    await world.on('2031-02-22T01:20:00Z');
    const edge = await ask('dora', '30', { ttl_seconds: 600_000, on_expiry: 'charge' });
    await world.on('2031-03-01T00:00:00Z');
    expect((await world.get(`/reservations/${reservation!.id}`)).event_at).to.equal('2031-02-07T22:40:00Z');
    expect((await world.get(`/reservations/${edge.reservation!.id}`)).event_at).to.equal('2031-03-01T00:00:00Z');
    const [, february] = await world.invoices('dora');
    expect(february!.line_items[0]!.adjusted_entitlement_quantity).to.equal('70');
    expect(await left('dora')).to.deep.equal({ used: '30', held: '0', remaining: '70' });
  });

  it('a hold counts in the window that has begun, and its usage falls there', async () => {
    await world.on('2031-03-31T23:59:00Z');
    const { reservation } = await ask('bravo', '80', { ttl_seconds: 7200 });
    expect((await ask('bravo', '21')).allowed).to.equal(false);
    await world.on('2031-04-01T00:01:00Z');
    expect(await left('bravo')).to.deep.equal({ used: '0', held: '80', remaining: '20' });
    await end(reservation!.id, 'commit', { quantity: '50' });
    expect(await left('bravo')).to.deep.equal({ used: '50', held: '0', remaining: '50' });
    await world.waitForPipeline();
    expect(await left('bravo')).to.deep.equal({ used: '50', held: '0', remaining: '50' });
    const invoices = await world.invoices('bravo');
    expect(invoices.at(-1)!.line_items[0]!.adjusted_entitlement_quantity).to.equal('0');
  });

  it('an expired hold keeps nobody out while the scheduler is away', async () => {
    const other = await startWorld({ now: '2026-01-01T00:00:00Z' });
    try {
      const meter = await other.meter('tokens');
      await other.plan('Pro', [usage('tokens', '1')]);
      const { id } = await other.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
      const grant = { plan_id: other.id('plan Pro'), feature_id: id, feature_type: 'metered' };
      await other.post('/entitlements', { ...grant, usage_limit: 10 });
      await other.subscribe('acme', 'Pro');
      const check = (hold: Fields | null) =>
        other.post('/entitlements/check', { external_customer_id: 'acme', feature_id: id, quantity: '10', hold });
      const { reservation } = await check({ ttl_seconds: 30 });
      other.at('2026-01-01T00:00:29Z');
      expect((await check(null)).allowed).to.equal(false);
      other.at('2026-01-01T00:00:30Z');
      expect((await check(null)).allowed).to.equal(true);
      expect((await check({ ttl_seconds: 30 })).allowed).to.equal(true);
      expect((await other.get(`/reservations/${reservation!.id}`)).reservation_status).to.equal('expired');
      const late = await other.api.request('POST', `/reservations/${reservation!.id}/commit`, { body: {} });
      expect(late.body).to.deep.include({ code: 'invalid_operation' });
    } finally {
      await other.stop();
    }
  });

  it('a commit counts once while the pipeline stands still, and when it goes on', async () => {
    await world.pausePipeline();
    const first = await ask('charlie', '60', {});
    await end(first.reservation!.id, 'commit');
    expect(await left('charlie')).to.deep.equal({ used: '60', held: '0', remaining: '40' });
    expect((await ask('charlie', '41')).reason).to.equal('limit_reached');
    const second = await ask('charlie', '40', {});
    await world.resumePipeline();
    await world.waitForPipeline();
    expect(await left('charlie')).to.deep.equal({ used: '60', held: '40', remaining: '0' });
    await end(second.reservation!.id, 'release');
    expect(await left('charlie')).to.deep.equal({ used: '60', held: '0', remaining: '40' });
  });
});

describe('reservations, and who comes late', () => {
  let world: World;
  const counterOf = async (id: string) => {
    const { services, scope } = world.api;
    const wallet = await WalletModel.fetch(scope, id, { database: services.postgres });
    return createWalletCounter(services, scope, { wallet, when_in_doubt: 'deny' });
  };
  const by = (now: number) => ({ now, author: { user_id: '', now: new Date(now) } });
  const holding = (idempotency_key: string | null) =>
    ({ ttl_seconds: 60, on_expiry: 'release', properties: null, metadata: null, idempotency_key }) as const;

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
  });
  after(() => world.stop());

  it('what is charged at its expiry uses the credits that were good then', async () => {
    await world.customer('purse');
    const wallet = await world.post('/wallets', {
      external_customer_id: 'purse',
      currency: 'usd',
      initial_credits_to_load: '100',
      initial_credits_expiry_date_utc: '2026-01-01T12:00:00Z',
    });
    world.at('2026-01-01T11:59:00Z');
    const hold = { ttl_seconds: 55, on_expiry: 'charge' };
    const { reservation } = await world.post('/entitlements/check', {
      external_customer_id: 'purse',
      credits: '90',
      hold,
    });
    // Both jobs come after the credits have expired, and that of the credits comes first.
    world.at('2026-01-01T12:00:03Z');
    const due = { now: world.now, only: world.api.scope };
    const { services } = world.api;
    expect(await expireCredits(services, due)).to.deep.equal({ expired: 0, failed: [] });
    expect(await endDueReservations(services, { now: world.now })).to.deep.include({ ended: 1, failed: [] });
    const after = await world.get(`/wallets/${wallet.id}`);
    expect(after).to.deep.include({ credit_balance: '10', credits_owed: '0' });
    expect(await world.get(`/reservations/${reservation!.id}`)).to.deep.include({
      reservation_status: 'committed',
      ended_at: '2026-01-01T11:59:55Z',
    });
    expect(await expireCredits(services, due)).to.deep.equal({ expired: 1, failed: [] });
    expect((await world.get(`/wallets/${wallet.id}`)).credit_balance).to.equal('0');
  });

  it('a commit that came in time is not too late because it is decided with who came later', async () => {
    await world.customer('in time');
    const wallet = await world.post('/wallets', {
      external_customer_id: 'in time',
      currency: 'usd',
      initial_credits_to_load: '100',
    });
    const asked = { external_customer_id: 'in time', credits: '100', hold: { ttl_seconds: 60 } };
    const { reservation } = await world.post('/entitlements/check', asked);
    const { postgres } = world.api.services;
    const counter = await counterOf(wallet.id);
    const end = Date.parse(reservation!.expires_at);
    const quantity = new Decimal('100');
    const ops: ReservationOp[] = [
      { kind: 'check', quantity, hold: holding(null), ...by(end + 100) },
      { kind: 'commit', id: reservation!.id, quantity, events: null, ...by(end - 10) },
    ];
    const desk = counter.createPool(await counter.gather(new Date(end + 100)));
    const [late, inTime] = await runReservationBatch(postgres, desk, ops);
    expect(late).to.have.nested.property('verdict.reason', 'insufficient_credits');
    expect(inTime).to.have.nested.property('reservation.committed_quantity', '100');
    expect(await world.get(`/wallets/${wallet.id}`)).to.deep.include({ credit_balance: '0', credits_owed: '0' });
  });

  it('who was answered is not told of what failed afterwards, and waits for nobody', async () => {
    await world.customer('answered');
    const fields = { external_customer_id: 'answered', currency: 'usd', initial_credits_to_load: '100' };
    const { id } = await world.post('/wallets', fields);
    const counter = await counterOf(id);
    const { services } = world.api;
    const op: ReservationOp = {
      kind: 'check',
      quantity: new Decimal('10'),
      hold: holding('twice'),
      ...by(world.now.getTime()),
    };
    let gathered = 0;
    const failing: typeof counter = {
      ...counter,
      async gather(now) {
        gathered += 1;
        if (gathered === 1) return counter.gather(now);
        await first;
        throw new TypeError('it cannot be read any more');
      },
    };
    // The second of one key is looked up once the first is written.
    const first = submitReservation(services, failing, op);
    const second = submitReservation(services, failing, op).catch((error) => error);
    expect(await first).to.have.nested.property('reservation.reservation_status', 'held');
    expect(await second).to.be.instanceOf(TypeError);
    expect(gathered).to.equal(2);
  });

  it('what a longer hold will need is not used before what expires', async () => {
    await world.customer('ordered');
    const { id } = await world.post('/wallets', { external_customer_id: 'ordered', currency: 'usd' });
    const lot = (priority: number, fields: Fields) =>
      world.post(`/wallets/${id}/top-up`, {
        credits_to_add: '50',
        transaction_reason: 'FREE_CREDIT_GRANT',
        priority,
        idempotency_key: `lot ${priority}`,
        ...fields,
      });
    const minutes = (many: number) => new Date(world.now.getTime() + many * 60_000).toISOString();
    await lot(1, {});
    await lot(2, { expiry_date_utc: minutes(10) });
    const hold = (credits: string, ttl_seconds: number) =>
      world.post('/entitlements/check', { external_customer_id: 'ordered', credits, hold: { ttl_seconds } });
    const long = await hold('50', 3600);
    expect(long.allowed).to.equal(true);
    // It would use what lasts.
    expect(await hold('50', 60)).to.deep.include({ allowed: false, reason: 'insufficient_credits' });
    const body = { credits: '50', transaction_reason: 'MANUAL_BALANCE_DEBIT', idempotency_key: 'by hand' };
    const debit = await world.api.request('POST', `/wallets/${id}/debit`, { body });
    expect(debit.body).to.deep.include({ code: 'invalid_operation' });
    world.at(minutes(30));
    await expireCredits(world.api.services, { now: world.now });
    await world.post(`/reservations/${long.reservation!.id}/commit`, {});
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '0', credits_owed: '0' });
  });
});
