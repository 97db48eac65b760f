/**
 * A grant computes its remaining quota from the events since its last read (docs/decisions/0012-entitlement-grants.md). The answer equals
 * a read of all events, also if events come late, are voided or replaced, and it reads fewer of them.
 */
import { expect } from 'chai';
import { listEntitledFeatures, listGrantingSubscriptions } from '../../actions/rating/allowances/entitled-features.ts';
import { gatherGrantedUsage } from '../../actions/rating/entitlements/granted-usage.ts';
import { readUsageSince } from '../../storage/cache/cached-histories.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import { connectPostgres, readUrl } from '../../storage/postgres/pool/postgres.ts';
import type { Feature } from '../support/answers.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

const at = (hour: number, ms = 0) => new Date(Date.UTC(2026, 0, 10, hour) + ms).toISOString();

describe('scenario: grants that go on', () => {
  let world: World;
  const features: Feature[] = [];

  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    const { id: meter_id } = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '0.5')]);
    const terms = { feature_type: 'metered', grant_duration_value: 5, grant_duration_unit: 'hour' };
    const grant = { ...terms, plan_id: world.id('plan Pro') };
    for (const [grant_measure, grant_quota, is_enabled] of [
      ['quantity', '700', true],
      ['amount', '300', true],
      ['quantity', '5', false],
    ] as const) {
      const feature = await world.post('/features', {
        name: `${grant_measure} ${grant_quota}`,
        type: 'metered',
        meter_id,
      });
      const { id } = await world.post('/entitlements', {
        ...grant,
        feature_id: feature.id,
        grant_measure,
        grant_quota,
      });
      if (!is_enabled) await world.api.request('PUT', `/entitlements/${id}`, { body: { is_enabled } });
      features.push(feature);
    }
    await world.subscribe('acme', 'Pro');
    world.at(at(12));
    await sent(1, 1_500, 20_000);
  });
  after(() => world.stop());

  /** So many of one unit, from the hour on. */
  const sent = async (hour: number, count: number, every_ms: number) => {
    await world.send(
      Array.from({ length: count }, (_, n) =>
        world.event('acme', 'tokens', { n: 1, at: at(hour, n * every_ms), event_id: `${hour} ${n}` }),
      ),
    );
    await world.waitForPipeline();
  };
  const told = async (stores: Stores) => {
    const { scope } = world.api;
    const reading = { scope, database: stores.postgres, now: world.now };
    const { id } = await world.get('/customers/external/acme');
    const subscriptions = await listGrantingSubscriptions(id, undefined, reading);
    const entitled = await listEntitledFeatures(subscriptions, undefined, reading);
    const usages = await gatherGrantedUsage(stores, { entitled, reading });
    const said = usages.map(({ feature, used, window, granted }) => [feature.name, used, window, granted!.grants]);
    return JSON.parse(JSON.stringify(said));
  };
  /** Up to three o'clock it is known how many there are. */
  const behind = async () => {
    const { services, scope } = world.api;
    const meter = await MeterModel.fetch(scope, world.id('meter tokens'), { database: services.postgres });
    const [start_ms, end_ms, at_ms] = ['2026-01-01', '2026-02-01', at(3)].map((text) => Date.parse(text));
    const question = {
      meter,
      external_customer_ids: ['acme'],
      start_ms: start_ms!,
      end_ms: end_ms!,
      now_ms: world.now.getTime(),
    };
    const {
      read,
      known,
      cache: keep,
    } = await readUsageSince<string>(services, scope, { key: 'test', query: question });
    if (!known) {
      const [early] = read.usage.splitAt(at_ms!);
      const quantity = early.sumBetween({ start: start_ms!, end: end_ms! });
      keep(
        { at: at_ms!, event_count: early.portions.length, quantity, made: `${early.portions.length} early` },
        async () => '',
      );
    }
    return [known?.made ?? null, read.usage.portions.length];
  };
  /** Of who knows what was, and of who has never asked. */
  const same = async (what: string) => {
    const { services } = world.api;
    const postgres = connectPostgres(readUrl(services.postgres));
    try {
      const known = await told(services);
      expect(known, what).to.deep.equal(await told({ ...services, postgres }));
      return known;
    } finally {
      await postgres.destroy();
    }
  };

  it('are the same, whatever comes', async () => {
    expect(await behind()).to.deep.equal([null, 1_500]);
    expect(await behind(), 'what is known is not read again').to.deep.equal(['360 early', 1_140]);
    await told(world.api.services);
    // 1,500 events in 8⅓ hours from 1 o'clock on: of the second grant, from 6 to 11, 600 were used.
    const first = await same('asked again');
    expect([first[0][1], first[2][1]]).to.deep.equal(['0', '1500']);
    world.at(at(13));
    await sent(12, 100, 1_000);
    const [quantity, amount] = await same('what came since');
    expect([quantity[1], amount[1]]).to.deep.equal(['100', '50']);
    await world.send([world.event('acme', 'tokens', { n: 3, at: at(10, 1), event_id: 'late' })]);
    await world.waitForPipeline();
    await same('what comes late for a grant that has ended');
    expect(await behind(), 'it came behind what is known').to.deep.equal(['360 early', 1_241]);
    await world.send([world.event('acme', 'tokens', { n: 3, at: at(0, 1), event_id: 'first of all' })]);
    await world.waitForPipeline();
    await same('what begins all of them earlier');
    expect(await behind(), 'of which there is another').to.deep.equal([null, 1_602]);
    for (const how of ['void', 'replace'] as const) {
      const body = {
        reason: 'a mistake',
        event: { ...world.event('acme', 'tokens', { n: 3, at: at(2, 1) }), event_id: undefined },
      };
      const asked = how === 'void' ? { reason: body.reason } : body;
      const id = how === 'void' ? 'first of all' : 'late';
      const answer = await world.api.request('POST', `/events/${encodeURIComponent(id)}/${how}`, { body: asked });
      expect(answer.status, answer.text).to.equal(202);
      await until('it is applied', async () => {
        const open = await world.api.services.postgres('event_corrections').where({ state: 'requested' });
        return open.length === 0;
      });
      await world.waitForPipeline();
      await same(`behind a ${how}`);
      expect((await behind())[0], how).to.equal(null);
    }
    world.at(at(18));
    await sent(17, 700, 1_000);
    const [last] = await same('another grant');
    expect(last[1]).to.equal('700');
  });
});
