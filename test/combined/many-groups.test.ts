/** Analytics of more groups than fit into an answer are refused, and nobody waits while those that fit are computed. */
import { expect } from 'chai';
import { startWorld, usage, type World } from '../support/world.ts';

const GROUPS_MAX = 10_000;
/** With a window each they are too many points. */
const FITTING = 9_100;
/** All at once they take more than twice as much. */
const STRETCH_MAX_MS = 300;

describe('analytics of many groups', function () {
  this.timeout(180_000);
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '0.10')]);
    await world.subscribe('acme', 'Pro');
    await world.subscribe('globex', 'Pro');
    world.at('2026-03-20');
    const events = (customer: string, count: number) =>
      Array.from({ length: count }, (_, n) => world.event(customer, 'tokens', { n, at: '2026-03-02T10:00:00Z' }));
    await world.send([...events('acme', FITTING), ...events('globex', GROUPS_MAX + 1)]);
    await world.waitForPipeline();
  });
  after(() => world.stop());

  const ask = <Path extends string>(external_customer_id: string, fields: object, path: Path) =>
    world.api.request('POST', path, {
      body: {
        external_customer_id,
        group_by: ['properties.n'],
        start_time: '2026-03-01T00:00:00Z',
        end_time: '2026-04-01T00:00:00Z',
        ...fields,
      },
    });

  for (const path of ['/events/analytics', '/meter-usage/detailed-analytics'])
    it(`400 of ${path} names the field and the bound`, async () => {
      const { status, body } = await ask('globex', {}, path);
      expect([status, body.details]).to.deep.equal([400, { field: 'group_by', groups_max: GROUPS_MAX }]);
      expect(body.message).to.contain(`more than ${GROUPS_MAX} groups`);
    });

  it('400 where the windows of the groups are too many, and where the groups of several customers are', async () => {
    const bound = { field: 'group_by', items_max: GROUPS_MAX, points_max: 100_000 };
    expect((await ask('acme', { window_size: 'DAY' }, '/events/analytics')).body.details).to.deep.equal(bound);
    const half = { external_customer_ids: ['acme', 'globex'], property_filters: { n: numbers(6_000) } };
    expect((await ask('acme', half, '/events/analytics')).body.details).to.deep.equal({
      field: 'group_by',
      groups_max: GROUPS_MAX,
    });
  });

  it('400 of what the usage costs, too', async () => {
    const { costsheet: sheet } = await world.post('/costs', { name: 'Costs' });
    await world.post('/prices', {
      entity_type: 'COSTSHEET',
      entity_id: sheet.id,
      meter_id: world.id('meter tokens'),
      type: 'USAGE',
      billing_model: 'FLAT_FEE',
      amount: '0.01',
      currency: 'usd',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ARREAR',
    });
    const { status, body } = await ask('globex', {}, '/costs/analytics-v2');
    expect([status, body.details], body.message).to.deep.equal([400, { field: 'group_by', groups_max: GROUPS_MAX }]);
  });

  it('those that fit are answered whole, and others have their turn meanwhile', async () => {
    const longest = longestStretch();
    const { status, body, text } = await ask('acme', {}, '/events/analytics');
    const stretch_ms = longest();
    expect(status, text.slice(0, 500)).to.equal(200);
    expect(body.items.length).to.equal(FITTING);
    expect(new Set(body.items.map(({ properties }) => properties!.n)).size).to.equal(FITTING);
    expect(body.total_cost).to.equal('4140045'); // 0.10 × (0 + 1 + … + 9,099)
    expect(stretch_ms).to.be.below(STRETCH_MAX_MS);
  });

  it('so is what they cost, a page of it', async () => {
    const { status, body, text } = await ask('acme', { limit: 10 }, '/costs/analytics-v2');
    expect(status, text.slice(0, 500)).to.equal(200);
    expect([body.pagination.total, body.total_cost]).to.deep.equal([FITTING, '414004.5']);
  });
});

const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n));

/** Of the time of this process's cores, how much passes at most between two rounds of the event loop: a busy machine does not lengthen that. */
function longestStretch(): () => number {
  let [longest_us, before, ended] = [0, process.cpuUsage(), false];
  const look = () => {
    const { user, system } = process.cpuUsage(before);
    longest_us = Math.max(longest_us, user + system);
    before = process.cpuUsage();
    if (!ended) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    ended = true;
    return longest_us / 1000;
  };
}
