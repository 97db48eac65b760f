/** The audit of the usage of final invoices: what came later is no difference, and what was changed behind the back of the service is one. */
import { expect } from 'chai';
import { auditInvoiceUsage } from '../../../../actions/operations/audit/invoice-usage.ts';
import { until } from '../../../support/until.ts';
import { fixed, startWorld, usage, type World } from '../../../support/world.ts';

describe('audit of the usage of invoices', () => {
  let world: World;
  let line: string;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('most', { type: 'MAX', field: 'n', bucket_size: 'DAY' }, { event_name: 'calls' });
    await world.plan('Pro', [usage('calls', '1'), usage('most', '2'), fixed('10')]);
    await world.subscribe('acme', 'Pro');
    for (const day of [10, 11, 12])
      await world.send([
        world.event('acme', 'calls', { n: day, at: `2026-01-${day}T05:00:00Z`, event_id: `of ${day}` }),
      ]);
    await world.on('2026-02-01', () => world.finalize());
    const [invoice] = await world.invoices('acme');
    line = invoice!.line_items.find((one) => one.quantity === '33')!.id;
  });
  after(() => world.stop());

  async function findings(): Promise<[number, string[]]> {
    const told: string[] = [];
    const { usage_lines } = await auditInvoiceUsage(world.api.services, ({ kind, what }) =>
      told.push(`${kind} ${what}`),
    );
    return [usage_lines, told];
  }
  const said = (path: string, value: string) =>
    world.api.services.postgres.raw(
      `update invoice_line_items set computed_from = jsonb_set(computed_from, ?, ?) where id = ?`,
      [`{${path}}`, value, line],
    );

  it('finds nothing, also where events came later, or were void later, and the next invoice says it', async () => {
    expect(await findings()).to.deep.equal([2, []]);
    await world.use('acme', 'calls', 100, { at: '2026-01-20T00:00:00Z' });
    await world.waitForPipeline();
    const answer = await world.api.request('POST', '/events/of%2011/void', { body: { reason: 'wrong' } });
    expect(answer.status, answer.text).to.equal(202);
    await until('the event is void', async () =>
      (await world.get('/events/of%2011/corrections')).items.every(({ state }) => state === 'applied'),
    );
    expect(await findings()).to.deep.equal([2, []]);
    await world.on('2026-03-01', () => world.finalize());
    const [, told] = await findings();
    expect(told).to.deep.equal([]);
  });

  it('tells a count and a quantity that the events do not come to', async () => {
    await said('event_count', '4');
    expect((await findings())[1]).to.deep.equal([
      `invoice_usage_differs ${(await world.invoices('acme'))[0]!.id}, line ${line}: the line says 4 events and 33, its events up to the marks are 3 and come to 33`,
    ]);
    await said('event_count', '3');
    await said('quantity', '"34"');
    expect((await findings())[1]).to.have.length(1);
    await said('quantity', '"33"');
    expect((await findings())[1]).to.deep.equal([]);
  });

  it('tells events that are gone', async () => {
    await world.api.services.clickhouse.command({
      query: `alter table events delete where event_id = 'of 12'`,
      clickhouse_settings: { mutations_sync: '1' },
    });
    const [, told] = await findings();
    expect(told.join('\n')).to.contain(
      'the line says 3 events and 33, its events up to the marks are 2 and come to 21',
    );
  });
}).timeout(120_000);
