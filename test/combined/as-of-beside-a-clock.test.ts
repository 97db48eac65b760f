/** `as_of` in an environment with a test clock, whose instants do not show when events arrived (docs/rules/clock.md, "Complete"). */
import { expect } from 'chai';
import { startWorld, type World } from '../support/world.ts';

describe('scenario: as_of beside a test clock', () => {
  const CLOCK = '2024-01-01T00:00:00Z';
  const JUST_BEFORE = '2023-12-31T23:59:59.999Z';
  let world: World;
  before(async () => {
    world = await startWorld({ now: CLOCK, test_clock: true });
    await world.meter('calls');
    await world.customer('acme');
  });
  after(() => world.stop());
  beforeEach(() => world.pausePipeline());
  afterEach(() => world.resumePipeline());

  const usage = async () => {
    const range = { start_time: '2023-12-01T00:00:00Z', end_time: '2024-02-01T00:00:00Z' };
    const query = { event_name: 'calls', external_customer_id: 'acme', aggregation_type: 'COUNT', ...range };
    const { as_of, value } = await world.post('/events/usage', query);
    return [as_of, value];
  };
  const send = (key: string) => {
    const body = {
      event_name: 'calls',
      external_customer_id: 'acme',
      properties: { n: 1 },
      timestamp: '2023-12-15T00:00:00Z',
    };
    return world.api.request('POST', '/events', { body, key });
  };

  it('shows that events sent since the last advance are not counted yet', async () => {
    world.api.setNow('2024-01-01T00:01:00Z');
    expect(await usage()).to.deep.equal([CLOCK, '0']);
    expect((await send(world.api.key)).status).to.equal(202);
    expect(await usage()).to.deep.equal([JUST_BEFORE, '0']);
    await world.resumePipeline();
    await world.waitForPipeline();
    expect(await usage()).to.deep.equal([CLOCK, '1']);
    await world.pausePipeline();
  });

  it('does not show the events of another tenant', async () => {
    world.api.setNow('2024-01-01T00:02:00Z');
    const other = await world.api.otherTenant();
    expect((await send(other.key)).status).to.equal(202);
    expect(await usage()).to.deep.equal([CLOCK, '1']);
    expect((await send(world.api.key)).status).to.equal(202);
    expect(await usage()).to.deep.equal([JUST_BEFORE, '1']);
  });
});
