/**
 * Whether a customer may use something now, and what is held for it: by answer (docs/rules/reservations.md).
 */
import { expect } from 'chai';
import { checkReservation } from '../../../actions/reservations/check.ts';
import { endDueReservations } from '../../../actions/reservations/end-due.ts';
import { checkShape } from '../../../core/credits/reservations/request.ts';
import { connectClickHouse } from '../../../storage/clickhouse/clickhouse.ts';
import type { Check, ErrorAnswer, Feature } from '../../support/answers.ts';
import { until } from '../../support/until.ts';
import { fixed, startWorld, usage, type World } from '../../support/world.ts';

type Fields = Record<string, unknown>;

describe('reservations', () => {
  let world: World;
  const features: Record<string, Feature> = {};

  const post = <Path extends string>(path: Path, body: Fields = {}) => world.post(path, body);
  const ask = (customer: string, feature: string, quantity: string | null, fields: Fields = {}) =>
    post('/entitlements/check', {
      external_customer_id: customer,
      feature_id: features[feature]!.id,
      ...(quantity === null ? {} : { quantity }),
      ...fields,
    });
  const hold = <Path extends string>(
    customer: Path,
    feature: string,
    quantity: string,
    terms: Fields = {},
    fields: Fields = {},
  ) => ask(customer, feature, quantity, { hold: terms, ...fields });
  const commit = (id: string, body: Fields = {}) => post(`/reservations/${id}/commit`, body);
  const release = (id: string) => post(`/reservations/${id}/release`);
  const refusal = async <Path extends string>(path: Path, body: Fields = {}, headers: Record<string, string> = {}) => {
    const answer = await world.api.request('POST', path, { body, headers });
    expect(answer.status, answer.text).to.be.within(400, 499);
    return answer.body;
  };
  const used = async (customer: string, feature: string) => {
    const { features: all } = await world.get(`/customers/usage?customer_lookup_key=${customer}`);
    return all.find((one) => one.feature.id === features[feature]!.id)!.current_usage;
  };
  const short = ({ allowed, reason, limit, used: of, held, remaining }: Check) => ({
    allowed,
    reason,
    limit,
    used: of,
    held,
    remaining,
  });

  before(async () => {
    world = await startWorld({ now: '2026-03-05T00:00:00Z' });
    const meters = {
      tokens: await world.meter('tokens'),
      calls: await world.meter('calls', { type: 'COUNT' }),
      regional: await world.meter(
        'regional',
        { type: 'SUM', field: 'n' },
        { filters: [{ key: 'region', values: ['eu', 'us'] }] },
      ),
      average: await world.meter('average', { type: 'AVG', field: 'n' }),
      thousands: await world.meter('thousands', { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.001' }),
    };
    await world.plan('Pro', [fixed('10'), usage('tokens', '0.01')]);
    for (const [name, type, meter] of [
      ['tokens', 'metered', meters.tokens],
      ['soft', 'metered', meters.tokens],
      ['calls', 'metered', meters.calls],
      ['regional', 'metered', meters.regional],
      ['average', 'metered', meters.average],
      ['thousands', 'metered', meters.thousands],
      ['unlimited', 'metered', meters.tokens],
      ['SSO', 'boolean'],
      ['off', 'boolean'],
      ['never granted', 'boolean'],
    ] as [string, string, { id: string }?][]) {
      const meter_id = meter ? { meter_id: meter.id } : {};
      features[name] = await post('/features', { name, type, lookup_key: name.replace(' ', '_'), ...meter_id });
    }
    const grant = (feature: string, fields: Fields = {}) =>
      post('/entitlements', {
        plan_id: world.id('plan Pro'),
        feature_id: features[feature]!.id,
        feature_type: features[feature]!.type,
        ...fields,
      });
    for (const metered of ['tokens', 'calls', 'regional', 'average', 'thousands'])
      await grant(metered, { usage_limit: 100 });
    await grant('soft', { usage_limit: 100, is_soft_limit: true });
    await grant('unlimited');
    await grant('SSO', { is_enabled: true });
    await grant('off', { is_enabled: false });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  it('what is held, committed and released counts at once, and once', async () => {
    await world.subscribe('acme', 'Pro');
    expect(short(await ask('acme', 'tokens', '100'))).to.deep.equal({
      allowed: true,
      reason: 'within_limit',
      limit: '100',
      used: '0',
      held: '0',
      remaining: '100',
    });
    const first = await hold('acme', 'tokens', '60');
    expect(short(first)).to.deep.include({ allowed: true, held: '60', remaining: '40' });
    expect(first.reservation).to.deep.include({
      customer_id: first.customer_id,
      feature_id: features.tokens!.id,
      quantity: '60',
      reservation_status: 'held',
      on_expiry: 'release',
      expires_at: '2026-03-05T00:05:00Z',
    });
    const refused = await hold('acme', 'tokens', '41');
    expect(short(refused)).to.deep.include({ allowed: false, reason: 'limit_reached', held: '60', remaining: '40' });
    expect(refused.reservation).to.equal(null);
    const second = await hold('acme', 'tokens', '40');
    expect(short(second)).to.deep.include({ allowed: true, remaining: '0' });

    const committed = await commit(first.reservation!.id, { quantity: '50' });
    expect(committed).to.deep.include({
      reservation_status: 'committed',
      committed_quantity: '50',
      ended_by: 'commit',
      ended_at: '2026-03-05T00:00:00Z',
      event_at: '2026-03-05T00:00:00Z',
    });
    expect(short(await ask('acme', 'tokens', '10'))).to.deep.include({
      allowed: true,
      used: '50',
      held: '40',
      remaining: '10',
    });
    expect(await commit(first.reservation!.id, { quantity: '50' })).to.deep.equal(committed);
    expect(await commit(first.reservation!.id)).to.deep.equal(committed);
    expect((await refusal(`/reservations/${first.reservation!.id}/commit`, { quantity: '51' })).code).to.equal(
      'invalid_operation',
    );
    expect((await refusal(`/reservations/${first.reservation!.id}/release`)).code).to.equal('invalid_operation');

    const released = await release(second.reservation!.id);
    expect(released).to.deep.include({ reservation_status: 'released', ended_by: 'release', committed_quantity: null });
    expect(await release(second.reservation!.id)).to.deep.equal(released);
    expect((await refusal(`/reservations/${second.reservation!.id}/commit`)).code).to.equal('invalid_operation');

    await world.waitForPipeline();
    expect(short(await ask('acme', 'tokens', '50'))).to.deep.include({
      allowed: true,
      used: '50',
      held: '0',
      remaining: '50',
    });
    expect(await used('acme', 'tokens')).to.equal('50');
    const { event } = await world.get(`/events/${first.reservation!.id}`);
    expect(event).to.deep.include({ event_name: 'tokens', external_customer_id: 'acme', source: 'reservation' });
    expect(event!.properties).to.deep.equal({ n: '50' });
  });

  it('the event counts once, whoever sends it again', async () => {
    await world.subscribe('again', 'Pro');
    const { reservation } = await hold('again', 'tokens', '30');
    await commit(reservation!.id);
    await world.send([{ ...world.event('again', 'tokens', { n: '30' }), event_id: reservation!.id }]);
    await commit(reservation!.id);
    await world.waitForPipeline();
    expect(short(await ask('again', 'tokens', '70'))).to.deep.include({ allowed: true, used: '30' });
  });

  it('more than is held needs room, and less leaves it', async () => {
    await world.subscribe('more', 'Pro');
    const { reservation } = await hold('more', 'tokens', '60');
    await hold('more', 'tokens', '30');
    const { details } = await refusal(`/reservations/${reservation!.id}/commit`, { quantity: '71' });
    expect(details).to.deep.include({ field: 'quantity', reason: 'limit_reached' });
    expect(await commit(reservation!.id, { quantity: '70' })).to.deep.include({ committed_quantity: '70' });
    expect(short(await ask('more', 'tokens', '1'))).to.deep.include({
      allowed: false,
      used: '70',
      held: '30',
      remaining: '0',
    });
    const none = await hold('more', 'unlimited', '5');
    expect(await commit(none.reservation!.id, { quantity: '0' })).to.deep.include({
      committed_quantity: '0',
      event_at: null,
    });
  });

  it('a soft limit is told of and does not stop anybody; what is unlimited, or just there, is allowed', async () => {
    await world.subscribe('soft', 'Pro');
    expect(short(await hold('soft', 'soft', '150'))).to.deep.include({
      allowed: true,
      reason: 'over_soft_limit',
      remaining: '0',
    });
    expect(short(await hold('soft', 'unlimited', '1000000'))).to.deep.include({
      allowed: true,
      reason: 'entitled',
      limit: null,
    });
    expect(short(await ask('soft', 'SSO', null))).to.deep.include({ allowed: true, reason: 'entitled' });
  });

  it('what the customer does not have is not allowed', async () => {
    await world.subscribe('closed', 'Pro');
    await world.customer('stranger');
    expect(short(await ask('closed', 'off', null))).to.deep.include({ allowed: false, reason: 'not_enabled' });
    expect(short(await ask('closed', 'never granted', null))).to.deep.include({
      allowed: false,
      reason: 'not_entitled',
    });
    expect(short(await hold('stranger', 'tokens', '1'))).to.deep.include({ allowed: false, reason: 'not_entitled' });
    const unknown = { external_customer_id: 'nobody', feature_id: features.tokens!.id };
    expect((await refusal('/entitlements/check', unknown)).code).to.equal('not_found');
    const misspelt = { external_customer_id: 'closed', feature_lookup_key: 'tokns' };
    expect((await refusal('/entitlements/check', misspelt)).code).to.equal('not_found');
  });

  it('a meter that counts events gets as many, and one with filters or a multiplier what it needs', async () => {
    await world.subscribe('meters', 'Pro');
    const calls = await hold('meters', 'calls', '7');
    await commit(calls.reservation!.id, { quantity: '5' });
    const regional = await hold('meters', 'regional', '9', { properties: { model: 'm' } });
    const fault = await refusal(`/reservations/${regional.reservation!.id}/commit`);
    expect(fault.details).to.deep.equal({ field: 'properties.region', allowed: ['eu', 'us'] });
    const done = await commit(regional.reservation!.id, { properties: { region: 'eu' } });
    const other = await refusal(`/reservations/${regional.reservation!.id}/commit`, { properties: { region: 'us' } });
    expect([other.code, other.details!.field]).to.deep.equal(['invalid_operation', 'properties.region']);
    const more = { properties: { region: 'eu', model: 'other' } };
    expect((await refusal(`/reservations/${regional.reservation!.id}/commit`, more)).details!.field).to.equal(
      'properties.model',
    );
    expect(await commit(regional.reservation!.id, { properties: { region: 'eu' } })).to.deep.equal(done);
    expect(await commit(regional.reservation!.id)).to.deep.equal(done);
    const thousands = await hold('meters', 'thousands', '2.5');
    await commit(thousands.reservation!.id);
    await world.waitForPipeline();
    expect(await used('meters', 'calls')).to.equal('5');
    expect(await used('meters', 'regional')).to.equal('9');
    expect(await used('meters', 'thousands')).to.equal('2.5');
    const { event } = await world.get(`/events/${regional.reservation!.id}`);
    expect(event!.properties).to.deep.equal({ model: 'm', region: 'eu', n: '9' });
    const half = { external_customer_id: 'meters', feature_id: features.calls!.id, quantity: '0.5', hold: {} };
    expect((await refusal('/entitlements/check', half)).details!.field).to.equal('quantity');
    const mean = { external_customer_id: 'meters', feature_id: features.average!.id, quantity: '0', hold: {} };
    expect((await refusal('/entitlements/check', mean)).details!.field).to.be.oneOf(['quantity', 'hold']);
    expect(short(await ask('meters', 'average', '0'))).to.deep.include({ allowed: true });
  });

  it('what is charged when it expires is what the meter counts, or nothing is held', async () => {
    await world.subscribe('charged', 'Pro');
    const charge = { hold: { on_expiry: 'charge', properties: { model: 'm' } } };
    const asked = { external_customer_id: 'charged', feature_id: features.regional!.id, quantity: '100', ...charge };
    expect((await refusal('/entitlements/check', asked)).details).to.deep.equal({
      field: 'hold.properties.region',
      allowed: ['eu', 'us'],
    });
    const properties = { region: 'eu' };
    const held = await hold('charged', 'regional', '100', { ttl_seconds: 60, on_expiry: 'charge', properties });
    // The meter has changed since.
    const filters = [{ key: 'region', values: ['us', 'asia'] }];
    const changed = await world.api.request('PUT', `/meters/${features.regional!.meter_id}`, { body: { filters } });
    expect(changed.status, changed.text).to.equal(200);
    const now = new Date(world.now.getTime() + 60_000);
    const report = await endDueReservations(world.api.services, { now });
    expect(report).to.deep.include({ failed: [] });
    expect(report.uncharged.map(({ id }) => id)).to.deep.equal([held.reservation!.id]);
    const gone = { reservation_status: 'expired', ended_by: 'expiry', committed_quantity: null };
    expect(await world.get(`/reservations/${held.reservation!.id}`)).to.deep.include(gone);
    const { items } = await world.get('/webhooks/events?event_names=reservation.charge_failed');
    expect(items.map((one) => one.entity_id)).to.deep.equal([held.reservation!.id]);
    const told = items[0]!.payload;
    expect(told.reservation).to.deep.include({ id: held.reservation!.id, ...gone });
    expect((told.error as ErrorAnswer).details).to.deep.equal({ field: 'properties.region', allowed: ['us', 'asia'] });
    expect(short(await ask('charged', 'regional', '100'))).to.deep.include({ allowed: true, held: '0' });
    const late = await commit(held.reservation!.id, { properties: { region: 'us' } });
    expect(late).to.deep.include({ reservation_status: 'committed', committed_quantity: '100' });
  });

  it('what is charged when it expires is charged at that instant, also where the job comes behind who ends it', async () => {
    await world.subscribe('late', 'Pro');
    const instant = world.now;
    const terms = { ttl_seconds: 60, on_expiry: 'charge' };
    const [first, second] = [await hold('late', 'tokens', '10', terms), await hold('late', 'tokens', '20', terms)];
    world.api.setNow(new Date(instant.getTime() + 61_000));
    const charged = { reservation_status: 'committed', ended_by: 'expiry' };
    const release = await refusal(`/reservations/${first.reservation!.id}/release`);
    expect(release.details).to.deep.include({ ...charged, committed_quantity: '10' });
    const less = await refusal(`/reservations/${second.reservation!.id}/commit`, { quantity: '1' });
    expect(less.details).to.deep.include({ ...charged, committed_quantity: '20' });
    expect(await commit(second.reservation!.id)).to.deep.include({
      ...charged,
      committed_quantity: '20',
      ended_at: second.reservation!.expires_at,
    });
    world.api.setNow(instant);
    await world.waitForPipeline();
    expect(await used('late', 'tokens')).to.equal('30');
  });

  it('nobody sends an event under the id of one that is not committed', async () => {
    await world.subscribe('first', 'Pro');
    const { reservation } = await hold('first', 'tokens', '10');
    const event = { event_name: 'other', external_customer_id: 'first', event_id: reservation!.id };
    const plural = { ...event, event_id: `${reservation!.id}:2` };
    for (const [path, body, field] of [
      ['/events', event, 'event_id'],
      ['/events/bulk', { events: [plural] }, 'events[0].event_id'],
      ['/events/raw/bulk', { events: [event] }, 'events[0].event_id'],
    ] as const)
      expect((await refusal(path, body)).details!.field, path).to.equal(field);
    await commit(reservation!.id);
    await world.waitForPipeline();
    expect(await used('first', 'tokens')).to.equal('10');
  });

  it('what one reservation becomes is so much at most, at the hold and at the commit', async () => {
    await world.subscribe('heavy', 'Pro');
    const of = (bytes: number) =>
      Object.fromEntries(Array.from({ length: Math.ceil(bytes / 4900) }, (_, nth) => [`p${nth}`, 'x'.repeat(4900)]));
    const asked = { external_customer_id: 'heavy', feature_id: features.calls!.id, quantity: '50' };
    const refused = await refusal('/entitlements/check', { ...asked, hold: { properties: of(200_000) } });
    expect(refused.details).to.deep.include({ field: 'hold.properties', max: 8 * 1024 * 1024 });
    const { reservation } = await hold('heavy', 'calls', '50');
    const fault = await refusal(`/reservations/${reservation!.id}/commit`, { properties: of(200_000) });
    expect(fault.details).to.deep.include({ field: 'properties', max: 8 * 1024 * 1024 });
    // In several parts, and in a lane of its own.
    const done = await commit(reservation!.id, { properties: of(100_000) });
    expect(done).to.deep.include({ reservation_status: 'committed', committed_quantity: '50' });
    await world.waitForPipeline();
    expect(await used('heavy', 'calls')).to.equal('50');
  });

  it('one key is one reservation, also that of the header', async () => {
    await world.subscribe('keys', 'Pro');
    const first = await hold('keys', 'tokens', '80', {}, { idempotency_key: 'job-1' });
    const again = await hold('keys', 'tokens', '80', {}, { idempotency_key: 'job-1' });
    expect(again.reservation).to.deep.equal(first.reservation);
    expect(again).to.deep.include({ allowed: true, held: '80' });
    const both = await Promise.all([0, 1].map(() => hold('keys', 'tokens', '10', {}, { idempotency_key: 'job-2' })));
    expect(both[0]!.reservation!.id).to.equal(both[1]!.reservation!.id);
    const elsewhere = {
      external_customer_id: 'keys',
      feature_id: features.calls!.id,
      hold: {},
      idempotency_key: 'job-1',
    };
    expect((await refusal('/entitlements/check', elsewhere)).code).to.equal('already_exists');
    await world.subscribe('other keys', 'Pro');
    for (const other of [{ external_customer_id: 'other keys' }, { quantity: '81' }])
      expect(
        (
          await refusal('/entitlements/check', {
            external_customer_id: 'keys',
            feature_id: features.tokens!.id,
            quantity: '80',
            hold: {},
            idempotency_key: 'job-1',
            ...other,
          })
        ).code,
      ).to.equal('already_exists');
    const body = { external_customer_id: 'keys', feature_id: features.tokens!.id, quantity: '5', hold: {} };
    const headers = { 'idempotency-key': 'from the header' };
    const sent = await world.api.request('POST', '/entitlements/check', { body, headers });
    const resent = await world.api.request('POST', '/entitlements/check', { body, headers });
    expect(resent.body.reservation!.id).to.equal(sent.body.reservation!.id);
  });

  it('lists, searches and reads them', async () => {
    await world.subscribe('listed', 'Pro');
    const { reservation, customer_id } = await hold('listed', 'tokens', '1', { metadata: { chat: '17' } });
    expect(await world.get(`/reservations/${reservation!.id}`)).to.deep.equal(reservation);
    const page = await world.get(`/reservations?customer_id=${customer_id}&reservation_status=held`);
    expect(page.items).to.deep.equal([reservation]);
    const found = await post('/reservations/search', { metadata: { chat: '17' } });
    expect(found.items).to.deep.equal([reservation]);
  });

  it('those of another tenant are not there', async () => {
    await world.subscribe('own', 'Pro');
    const { reservation, customer_id } = await hold('own', 'tokens', '1');
    const { key } = await world.api.otherTenant();
    for (const path of [`/reservations/${reservation!.id}/commit`, `/reservations/${reservation!.id}/release`])
      expect((await world.api.request('POST', path, { key, body: {} })).status).to.equal(404);
    expect((await world.api.request('GET', `/reservations/${reservation!.id}`, { key })).status).to.equal(404);
    const body = { customer_id, feature_id: features.tokens!.id };
    expect((await world.api.request('POST', '/entitlements/check', { key, body })).status).to.equal(404);
    const reader = await world.api.keyWithRoles(['all_reader']);
    expect((await world.api.request('POST', '/entitlements/check', { key: reader, body })).status).to.equal(403);
  });

  it('credits: holds and purchases of one wallet wait for nobody who waits for them', async () => {
    await world.customer('busy');
    const wallet = { external_customer_id: 'busy', currency: 'usd', initial_credits_to_load: '1000' };
    const { id } = await post('/wallets', wallet);
    const body = { external_customer_id: 'busy', credits: '1', hold: {} };
    const bought = { credits_to_add: '1', transaction_reason: 'PURCHASED_CREDIT_INVOICED' };
    const asked = Array.from({ length: 40 }, (_, index) =>
      index % 4 === 0
        ? world.api.request('POST', `/wallets/${id}/top-up`, { body: bought })
        : world.api.request('POST', '/entitlements/check', { body }),
    );
    for (const { status, text } of await Promise.all(asked)) expect(status, text).to.be.below(300);
  });

  it('credits: what is held of a postpaid wallet is not collected', async () => {
    const { id: customer_id } = await world
      .customer('postpaid')
      .then(() => world.get(`/customers/${world.id('customer postpaid')}`));
    const { id } = await post('/wallets', {
      customer_id,
      currency: 'usd',
      wallet_type: 'POST_PAID',
      initial_credits_to_load: '100',
    });
    const held = await post('/entitlements/check', { customer_id, wallet_id: id, credits: '70', hold: {} });
    expect(held.allowed).to.equal(true);
    const amounts = { amount_due: '50', total: '50', subtotal: '50' };
    const invoice = await post('/invoices', {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      ...amounts,
      line_items: [{ display_name: 'work', amount: '50', quantity: '1' }],
    });
    await post(`/invoices/${invoice.id}/finalize`, {});
    await post(`/invoices/${invoice.id}/payment/attempt`, {});
    expect(await world.get(`/invoices/${invoice.id}`)).to.deep.include({ amount_paid: '30', amount_remaining: '20' });
    await commit(held.reservation!.id);
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '0', credits_owed: '0' });
  });

  it('credits: an invoice that becomes final uses what is beside what is held, as its preview says', async () => {
    await world.customer('billed');
    const wallet = { external_customer_id: 'billed', currency: 'usd', initial_credits_to_load: '50' };
    const { id, customer_id } = await post('/wallets', { ...wallet, config: { allowed_price_types: ['ALL'] } });
    const held = await post('/entitlements/check', { customer_id, wallet_id: id, credits: '30', hold: {} });
    const amounts = { amount_due: '40', total: '40', subtotal: '40' };
    const invoice = await post('/invoices', {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      ...amounts,
      line_items: [{ display_name: 'work', amount: '40', quantity: '1' }],
    });
    await post(`/invoices/${invoice.id}/finalize`, {});
    expect(await world.get(`/invoices/${invoice.id}`)).to.deep.include({
      total_prepaid_credits_applied: '20',
      amount_remaining: '20',
    });
    await commit(held.reservation!.id);
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '0', credits_owed: '0' });
  });

  it('credits: what can be spent is what is there, less what was used, less what is held', async () => {
    await world.customer('purse');
    const wallet = await post('/wallets', {
      external_customer_id: 'purse',
      currency: 'usd',
      initial_credits_to_load: '100',
    });
    const spend = (credits: string, fields: Fields = {}) =>
      post('/entitlements/check', { external_customer_id: 'purse', credits, ...fields });
    expect(await spend('100')).to.deep.include({
      allowed: true,
      wallet_id: wallet.id,
      remaining: '100',
      feature_id: null,
    });
    const first = await spend('60', { hold: { metadata: { job: 'j' } } });
    expect(first).to.deep.include({ allowed: true, held: '60', remaining: '40' });
    expect(await spend('41')).to.deep.include({ allowed: false, reason: 'insufficient_credits', remaining: '40' });
    // A debit by hand leaves what is held.
    const debit = (credits: string, key: string) => ({
      credits,
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      idempotency_key: key,
    });
    expect((await refusal(`/wallets/${wallet.id}/debit`, debit('41', 'd1'))).details).to.deep.include({
      credits_available: '40',
    });
    await post(`/wallets/${wallet.id}/debit`, debit('10', 'd2'));
    expect((await refusal(`/wallets/${wallet.id}/terminate`)).code).to.equal('invalid_operation');
    const done = await commit(first.reservation!.id, { quantity: '55.5' });
    expect(done).to.deep.include({ reservation_status: 'committed', committed_quantity: '55.5' });
    expect(await commit(first.reservation!.id)).to.deep.equal(done);
    expect(await world.get(`/wallets/${wallet.id}`)).to.deep.include({ credit_balance: '34.5' });
    const { items } = await world.get(
      `/wallets/${wallet.id}/transactions?reference_id=${first.reservation!.id}&reference_type=REQUEST`,
    );
    expect(items.map((one) => [one.id, one.credit_amount, one.idempotency_key])).to.deep.equal([
      [done.wallet_transaction_id, '55.5', `farthing/reservation/${first.reservation!.id}`],
    ]);
    const more = await spend('30', { hold: {} });
    expect(
      (await refusal(`/reservations/${more.reservation!.id}/commit`, { quantity: '35' })).details!.reason,
    ).to.equal('insufficient_credits');
    await commit(more.reservation!.id, { quantity: '34.5' });
    expect(await spend('0.000001')).to.deep.include({ allowed: false, remaining: '0' });
    expect(await post('/entitlements/check', { external_customer_id: 'more', credits: '1' })).to.deep.include({
      allowed: false,
      reason: 'no_wallet',
    });
  });

  it('says of credits that are to be held how many last until then', async () => {
    await world.customer('lasting');
    const terms = { external_customer_id: 'lasting', currency: 'usd', initial_credits_to_load: '10' };
    const { id } = await post('/wallets', terms);
    const expiry_date_utc = new Date(world.now.getTime() + 3_600_000).toISOString();
    const soon = { credits_to_add: '50', transaction_reason: 'FREE_CREDIT_GRANT', expiry_date_utc };
    await post(`/wallets/${id}/top-up`, soon);
    const check = (credits: string, ttl_seconds?: number) =>
      post('/entitlements/check', {
        external_customer_id: 'lasting',
        credits,
        ...(ttl_seconds ? { hold: { ttl_seconds } } : {}),
      });
    expect(await check('11')).to.deep.include({ allowed: true, remaining: '60' });
    const refused = { allowed: false, reason: 'insufficient_credits', remaining: '10' };
    expect(await check('11', 3_601)).to.deep.include(refused);
    expect(await check('4', 3_601)).to.deep.include({ allowed: true, held: '4', remaining: '6' });
    expect(await check('11', 3_600)).to.deep.include({ allowed: true, held: '15', remaining: '45' });
  });

  it('credits that are held stay where they are, whoever may owe', async () => {
    await world.customer('owing');
    const terms = { external_customer_id: 'owing', currency: 'usd', initial_credits_to_load: '100' };
    const { id } = await post('/wallets', terms);
    const { reservation } = await post('/entitlements/check', {
      external_customer_id: 'owing',
      credits: '60',
      hold: {},
    });
    const debit = { transaction_reason: 'MANUAL_BALANCE_DEBIT', allow_negative: true };
    await post(`/wallets/${id}/debit`, { ...debit, credits: '70', idempotency_key: 'owing 70' });
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '30', credits_owed: '30' });
    await commit(reservation!.id);
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '-30', credits_owed: '30' });
    const [lot] = (await world.get(`/wallets/${id}/transactions?type=credit`)).items;
    expect(lot!.credits_available).to.equal('0');
  });

  it('credits that a longer hold needs are left by whoever may owe, as by an invoice, and no others', async () => {
    await world.customer('owing less');
    const { id } = await post('/wallets', { external_customer_id: 'owing less', currency: 'usd' });
    const lot = (key: string, terms: Fields) =>
      post(`/wallets/${id}/top-up`, {
        credits_to_add: '50',
        transaction_reason: 'FREE_CREDIT_GRANT',
        idempotency_key: `owing less ${key}`,
        ...terms,
      });
    await lot('lasting', { priority: 1 });
    await lot('short', { priority: 2, expiry_date_utc: '2026-03-05T00:10:00Z' });
    const { reservation } = await post('/entitlements/check', {
      external_customer_id: 'owing less',
      credits: '30',
      hold: { ttl_seconds: 3600 },
    });
    await post(`/wallets/${id}/debit`, {
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      allow_negative: true,
      credits: '40',
      idempotency_key: 'owing less 40',
    });
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '60', credits_owed: '20' });
    await commit(reservation!.id);
    expect(await world.get(`/wallets/${id}`)).to.deep.include({ credit_balance: '30', credits_owed: '20' });
  });

  it('where usage cannot be read the setting says, and what is not granted stays refused', async () => {
    await world.subscribe('doubt', 'Pro');
    const { services, scope } = world.api;
    // Nothing listens there.
    const clickhouse = connectClickHouse('http://127.0.0.1:9');
    const stores = { ...services, clickhouse };
    const author = { user_id: 'user_1', now: world.now };
    const inDoubt = (feature: string) => {
      const asked = { external_customer_id: 'doubt', feature_id: features[feature]!.id };
      return checkReservation(stores, scope, {
        request: checkShape.parse({ ...asked, quantity: '1', hold: {} }),
        author,
      });
    };
    try {
      expect(await inDoubt('tokens')).to.deep.include({ allowed: false, reason: 'in_doubt', reservation: null });
      const set = await world.api.request('PUT', '/settings/reservation_config', {
        body: { value: { when_in_doubt: 'allow', ttl_seconds: 60 } },
      });
      expect(set.status, set.text).to.equal(200);
      const allowed = await inDoubt('tokens');
      expect(allowed).to.deep.include({ allowed: true, reason: 'in_doubt' });
      expect(allowed.reservation).to.deep.include({ reason: 'in_doubt', expires_at: '2026-03-05T00:01:00Z' });
      const never = { external_customer_id: 'doubt', feature_id: features['never granted']!.id };
      const refused = await checkReservation(stores, scope, { request: checkShape.parse(never), author });
      expect(refused).to.deep.include({ allowed: false, reason: 'not_entitled' });
    } finally {
      await clickhouse.close();
      await world.api.request('PUT', '/settings/reservation_config', {
        body: { value: { when_in_doubt: null, ttl_seconds: null } },
      });
    }
  });

  it('parallel callers never get more than there is', async () => {
    await world.subscribe('parallel', 'Pro');
    const answers = await Promise.all(Array.from({ length: 60 }, () => hold('parallel', 'tokens', '3')));
    const allowed = answers.filter((one) => one.allowed);
    expect(allowed).to.have.lengthOf(33);
    expect(Math.max(...answers.map((one) => Number(one.held)))).to.equal(99);
    await Promise.all(
      allowed.map(({ reservation }, index) => (index % 3 ? commit(reservation!.id) : release(reservation!.id))),
    );
    await until('everything is counted', async () => (await ask('parallel', 'tokens', '0')).used === '66');
    await world.waitForPipeline();
    expect(short(await ask('parallel', 'tokens', '34'))).to.deep.include({ allowed: true, used: '66', held: '0' });
  });
});
