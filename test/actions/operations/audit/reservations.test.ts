/** The audit of reservations names what was changed behind the back of the service; where their events stand is forgotten once they are counted. */
import { expect } from 'chai';
import { appendEventsWithPositions, toOneBody } from '../../../../actions/metering/events/append-events.ts';
import type { Finding } from '../../../../actions/operations/audit/findings.ts';
import { auditReservations, sampleReservations } from '../../../../actions/operations/audit/reservations.ts';
import { purgeReservationEventsJob } from '../../../../scheduler/jobs/purge-reservation-events.ts';
import type { Feature } from '../../../support/answers.ts';
import { until } from '../../../support/until.ts';
import { startWorld, usage, type World } from '../../../support/world.ts';

/** As somebody does who switches the triggers off. */
const untold = (statement: string) => `begin; set local session_replication_role = replica; ${statement}; commit`;

describe('audit of the reservations', () => {
  let world: World;
  let feature: Feature;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    const { id: meter_id } = await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '0.01')]);
    feature = await world.post('/features', { name: 'Tokens', lookup_key: 'tokens', type: 'metered', meter_id });
    await world.post('/entitlements', {
      plan_id: world.id('plan Pro'),
      feature_id: feature.id,
      feature_type: 'metered',
    });
    await world.subscribe('acme', 'Pro');
    await hold('10');
    await committed('7');
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const hold = async (quantity: string): Promise<string> => {
    const asked = { external_customer_id: 'acme', feature_id: feature.id, quantity, hold: { ttl_seconds: 3600 } };
    return (await world.post('/entitlements/check', asked)).reservation!.id;
  };
  const committed = async (quantity: string) => world.post(`/reservations/${await hold(quantity)}/commit`, {});
  const raw = (statement: string) => world.api.services.postgres.raw(statement);
  async function kinds(look: typeof auditReservations | typeof sampleReservations): Promise<string[]> {
    const findings: Finding[] = [];
    await look(world.api.services, (finding) => findings.push(finding));
    return findings.map(({ kind }) => kind).sort();
  }
  const both = async () => [await kinds(auditReservations), await kinds(sampleReservations)];

  for (const [what, damage, mend, kind] of [
    [
      'a pool that says more than is held',
      untold('update reservation_pools set held = held + 1'),
      untold('update reservation_pools set held = held - 1'),
      'pool_differs',
    ],
    [
      'what was committed and has become less',
      'update reservation_events set units = units - 1',
      'update reservation_events set units = units + 1',
      'reservation_differs',
    ],
  ] as const)
    it(`tells ${what}, of all and of some`, async () => {
      expect(await both()).to.deep.equal([[], []]);
      await raw(damage);
      expect(await both()).to.deep.equal([[kind], [kind]]);
      await raw(mend);
      expect(await both()).to.deep.equal([[], []]);
    });

  it('where the events of a reservation stand is forgotten when they are counted and old, and what they came to is known', async () => {
    const purged = async (now: Date) => {
      const job = purgeReservationEventsJob(world.api.services, { every_seconds: 3600, retention_days: 30 });
      return (await job.run(now)).done.purged;
    };
    const late = new Date(Date.now() + 31 * 86_400_000);
    await committed('5');
    await world.waitForPipeline();
    expect(await purged(new Date())).to.equal(0);
    // The pipeline has not come so far.
    const behind = 'update slices set next_offset = next_offset - 1';
    await raw(`${behind} where next_offset > 0`);
    expect(await purged(late)).to.equal(1);
    await raw(behind.replace('- 1', '+ 1'));
    expect(await purged(late)).to.equal(1);
    expect((await raw('select count(*)::int as n from reservation_events')).rows).to.deep.equal([{ n: 0 }]);
    expect(await both()).to.deep.equal([[], []]);
    await raw(`update reservations set counted_units = counted_units + 1 where counted_units = 7`);
    expect(await both()).to.deep.equal([['reservation_differs'], ['reservation_differs']]);
    await raw(`update reservations set counted_units = counted_units - 1 where counted_units = 8`);
    const { features } = await world.get('/customers/usage?customer_lookup_key=acme');
    expect(features[0]!.current_usage).to.equal('12');
  });

  it('tells an event under the id of a reservation that is not its commit, until somebody has corrected it', async () => {
    const { services, scope } = world.api;
    const taking = async (event_id: string, n: string) => {
      const text = JSON.stringify({ ...world.event('acme', 'tokens', { n, event_id }) });
      const body = toOneBody([{ bytes: Buffer.from(text), event_id }]);
      // As what is in the log from before there was a rule: no door lets it in.
      await appendEventsWithPositions(services.log, scope, { ...body, now: new Date() });
      await world.waitForPipeline();
    };
    const voided = async (event_id: string) => {
      await world.api.request('POST', `/events/${event_id}/void`, { body: { reason: 'not what was committed' } });
      await until('it is applied', async () => (await both()).flat().length === 0);
    };
    const id = await hold('3');
    await taking(id, '4');
    expect(await both()).to.deep.equal([['reservation_id_taken'], ['reservation_id_taken']]);
    // It counts as nothing, for the other was there first.
    await world.post(`/reservations/${id}/commit`, {});
    await world.waitForPipeline();
    expect(await both()).to.deep.equal([['reservation_id_taken'], ['reservation_id_taken']]);
    await voided(id);
    expect(await both()).to.deep.equal([[], []]);
    const other = await hold('6');
    await world.post(`/reservations/${other}/commit`, {});
    await world.waitForPipeline();
    expect(await both()).to.deep.equal([[], []]);
    await taking(`${other}:2`, '1');
    expect(await both()).to.deep.equal([['reservation_id_taken'], ['reservation_id_taken']]);
    await voided(`${other}:2`);
    expect(await both()).to.deep.equal([[], []]);
    // The audit knows of a correction once somebody has asked for it; usage once it is applied.
    await world.waitForPipeline();
    const counted = await world.get(`/customers/usage?customer_lookup_key=acme`);
    expect(counted.features[0]!.current_usage).to.equal('18');
  });
});
