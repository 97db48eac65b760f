/**
 * What those may use who take part in another's subscription, and whose wallet pays where somebody else does (docs/rules/entitlements.md, "Who takes part in
 * another's"): the limits are the parent's, and one for all of them, whoever asks and however many at one time.
 */
import { expect } from 'chai';
import { auditReservations } from '../../actions/operations/audit/reservations.ts';
import type { Check, Feature } from '../support/answers.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

describe('scenario: limits of families', () => {
  let world: World;
  let tokens: Feature;
  let flag: Feature;

  const ask = (customer: string, quantity: string, hold: Fields | null = null) =>
    world.post('/entitlements/check', { external_customer_id: customer, feature_id: tokens.id, quantity, hold });
  const left = async <Path extends string>(customer: Path) => {
    const { reason, used, held, remaining } = await ask(customer, '0');
    return [reason, used, held, remaining].join(' ');
  };
  const end = (held: Check, how: string, body: Fields = {}) =>
    world.post(`/reservations/${held.reservation!.id}/${how}`, body);
  /** The same question at every door that answers it, of each of them. */
  const doors = async (customer: string) => {
    const { features } = await world.get(`/customers/usage?customer_lookup_key=${customer}`);
    const { id } = await world.get(`/customers/external/${customer}`);
    const entitled = await world.get(`/customers/${id}/entitlements`);
    const of = <One extends { feature: { id: string } }>(all: readonly One[]) =>
      all.find(({ feature }) => feature.id === tokens.id);
    return [
      await left(customer),
      `${of(features)!.current_usage} of ${of(features)!.total_limit}`,
      of(entitled.features)!.entitlement.usage_limit,
      of(entitled.features)!.sources[0]!.subscription_id === world.id('subscription company'),
      entitled.features.some(({ feature }) => feature.id === flag.id),
    ];
  };
  const modify = (inheritance_params: Fields) =>
    world.post(`/subscriptions/${world.id('subscription company')}/modify/execute`, {
      type: 'inheritance',
      inheritance_params,
    });

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const meter = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '1')]);
    tokens = await world.post('/features', { name: 'Tokens', type: 'metered', meter_id: meter.id });
    flag = await world.post('/features', { name: 'Export', type: 'boolean' });
    const plan_id = world.id('plan Pro');
    await world.post('/entitlements', { plan_id, feature_id: tokens.id, feature_type: 'metered', usage_limit: 100 });
    await world.post('/entitlements', { plan_id, feature_id: flag.id, feature_type: 'boolean', is_enabled: true });
    for (const external_id of ['north', 'south', 'east', 'payer']) await world.post('/customers', { external_id });
    await world.subscribe('company', 'Pro', {
      inheritance: { external_customer_ids_to_inherit_subscription: ['north', 'south'] },
    });
  });
  after(() => world.stop());

  it('a child draws on what its parent has, and every door says the same to all of them', async () => {
    await world.use('north', 'tokens', 20);
    await world.use('company', 'tokens', 10);
    await world.waitForPipeline();
    const held = await ask('south', '15', {});
    expect(held).to.deep.include({ allowed: true, reason: 'within_limit', used: '30', held: '15', remaining: '55' });
    expect(held.reservation!.customer_id).to.equal((await world.get('/customers/external/south')).id);
    for (const who of ['north', 'south', 'company'])
      expect(await doors(who), who).to.deep.equal(['within_limit 30 15 55', '30 of 100', 100, true, true]);
    expect((await ask('north', '56')).reason).to.equal('limit_reached');
    expect((await ask('company', '56')).reason).to.equal('limit_reached');
    await end(held, 'commit', { quantity: '5' });
    for (const who of ['north', 'south', 'company']) expect(await left(who), who).to.equal('within_limit 35 0 65');
    await world.waitForPipeline();
    for (const who of ['north', 'south', 'company'])
      expect(await doors(who), who).to.deep.equal(['within_limit 35 0 65', '35 of 100', 100, true, true]);
    const { id } = (await world.post('/subscriptions/search', { external_customer_id: 'south' })).items[0]!;
    const { features } = await world.get(`/subscriptions/${id}/entitlements`);
    const { items } = await world.get('/customers/external/south/subscriptions?expand=entitlements');
    expect([features.length, items[0]!.entitlements!.length]).to.deep.equal([2, 2]);
    expect(features[0]!.sources[0]!.subscription_id).to.equal(world.id('subscription company'));
  });

  it('who takes no part has nothing', async () => {
    expect((await ask('east', '1')).reason).to.equal('not_entitled');
  });

  it('of all who ask at one time no more are held than there is room for, whoever is released or committed meanwhile', async () => {
    const who = ['north', 'company', 'south'];
    const asked = await Promise.all(Array.from({ length: 30 }, (_, n) => ask(who[n % 3]!, '5', {})));
    const held = asked.filter(({ allowed }) => allowed);
    expect(held.length).to.equal(13);
    expect(asked.filter(({ reason }) => reason === 'limit_reached').length).to.equal(17);
    await world.pausePipeline();
    // Each room that becomes free is taken once, and what is committed stays taken while it is not counted.
    const [mixed] = await Promise.all([
      Promise.all(Array.from({ length: 20 }, (_, n) => ask(who[(n + 1) % 3]!, '5', {}))),
      ...held.map((one, n) => end(one, n < 6 ? 'commit' : 'release')),
    ]);
    const after = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(who[n % 3]!, '5', {})));
    const again = [...mixed, ...after].filter(({ allowed }) => allowed);
    expect(again.length).to.equal(7);
    for (const one of who) expect(await left(one), one).to.equal('within_limit 65 35 0');
    await world.resumePipeline();
    await world.waitForPipeline();
    for (const one of who) expect(await left(one), one).to.equal('within_limit 65 35 0');
    await Promise.all(again.map((one) => end(one, 'release')));
    for (const one of who) expect(await left(one), one).to.equal('within_limit 65 0 35');
    const findings: unknown[] = [];
    await auditReservations(world.api.services, (finding) => findings.push(finding));
    expect(findings).to.deep.equal([]);
  });

  it('who leaves takes what is held for them along, and has nothing any more', async () => {
    await world.on('2026-01-10T00:00:00Z');
    const held = await ask('south', '30', { ttl_seconds: 600_000 });
    expect(await left('north')).to.equal('within_limit 65 30 5');
    await world.pausePipeline();
    const used = await ask('south', '2', {});
    await end(used, 'commit');
    world.at('2026-01-10T00:00:01Z');
    await modify({ action: 'remove', external_customer_ids_to_remove: ['south'] });
    // What was committed before is the family's, counted or not.
    expect(await left('north')).to.equal('within_limit 67 0 33');
    expect((await ask('south', '1')).reason).to.equal('not_entitled');
    await world.resumePipeline();
    await world.waitForPipeline();
    expect(await left('company')).to.equal('within_limit 67 0 33');
    await end(held, 'commit', { quantity: '30' });
    await world.waitForPipeline();
    expect(await left('company')).to.equal('within_limit 67 0 33');
  });

  it('what is held for who has joined is the family’s', async () => {
    await modify({ action: 'add', external_customer_ids_to_inherit_subscription: ['east'] });
    world.at('2026-01-10T00:00:02Z');
    const held = await ask('east', '33', {});
    expect(await left('north')).to.equal('within_limit 67 33 0');
    await end(held, 'release');
  });

  it('what was held before somebody joined counts from then on, as what becomes of it does', async () => {
    const solo = await world.plan('Solo', [usage('tokens', '1')]);
    const granted = { plan_id: solo.id, feature_id: tokens.id, feature_type: 'metered', usage_limit: 1_000 };
    await world.post('/entitlements', granted);
    await world.subscribe('west', 'Solo');
    const long = { ttl_seconds: 600_000 };
    const [used, kept, many] = [
      await ask('west', '20', long),
      await ask('west', '10', long),
      await ask('west', '500', long),
    ];
    const before = await ask('west', '7', long);
    await end(before, 'commit');
    await world.waitForPipeline();
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('within_limit 67 0 33');
    world.at('2026-01-10T00:00:03Z');
    // Who joins has no subscription of their own any more: what they use from then on is nobody's but the family's.
    await world.post(`/subscriptions/${world.id('subscription west')}/cancel`, { cancellation_type: 'immediate' });
    await modify({ action: 'add', external_customer_ids_to_inherit_subscription: ['west'] });
    await world.pausePipeline();
    world.at('2026-01-10T00:00:04Z');
    // More than there is room for: it is promised, and nobody else takes anything meanwhile.
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('limit_reached 67 530 0');
    await end(many, 'release');
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('within_limit 67 30 3');
    expect((await ask('north', '4', {})).reason).to.equal('limit_reached');
    // What was committed before is theirs alone, and what is committed now the family's: what was held for it is there.
    await end(used, 'commit');
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('within_limit 87 10 3');
    await world.resumePipeline();
    await world.waitForPipeline();
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('within_limit 87 10 3');
    await end(kept, 'release');
    for (const one of ['north', 'company']) expect(await left(one), one).to.equal('within_limit 87 0 13');
  });

  it('what another pays for is granted to who uses it, and paid with the credits of who is invoiced', async () => {
    const credits = (customer: string, fields: Fields = {}) =>
      world.post('/entitlements/check', { external_customer_id: customer, credits: '5', ...fields });
    const paid = { inheritance: { invoicing_customer_external_id: 'payer' } };
    await world.subscribe('branch', 'Pro', paid);
    expect(await left('branch')).to.equal('within_limit 0 0 100');
    expect((await ask('payer', '1')).reason).to.equal('not_entitled');
    expect((await credits('branch')).reason).to.equal('no_wallet');
    const wallet = await world.post('/wallets', {
      external_customer_id: 'payer',
      currency: 'usd',
      initial_credits_to_load: '8',
    });
    const held = await credits('branch', { hold: {} });
    expect(held).to.deep.include({ allowed: true, wallet_id: wallet.id, remaining: '3' });
    expect((await credits('payer')).reason).to.equal('insufficient_credits');
    expect((await credits('branch', { wallet_id: wallet.id })).reason).to.equal('insufficient_credits');
    await end(held, 'commit', { quantity: '1' });
    expect((await world.get(`/wallets/${wallet.id}`)).credit_balance).to.equal('7');
    const purse = { external_customer_id: 'company', currency: 'usd', initial_credits_to_load: '1000' };
    const shared = await world.post('/wallets', purse);
    expect(await credits('north')).to.deep.include({ allowed: true, wallet_id: shared.id });
    const { status } = await world.api.request('POST', '/entitlements/check', {
      body: { external_customer_id: 'south', credits: '1', wallet_id: shared.id },
    });
    expect(status).to.equal(400);
  });
});
