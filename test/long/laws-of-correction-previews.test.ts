/** A previewed correction changes exactly what the preview lists (docs/rules/events.md, "What a correction would change"). */
import { expect } from 'chai';
import fc from 'fast-check';
import { computeInvoice } from '../../actions/invoicing/invoices/compute-invoice.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { samples } from '../support/samples.ts';
import { listChanged, readTraces } from '../support/traces.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const AGGREGATIONS = {
  sum: { type: 'SUM', field: 'n' },
  count: { type: 'COUNT' },
  max: { type: 'MAX', field: 'n' },
  unique: { type: 'COUNT_UNIQUE', field: 'n' },
  latest: { type: 'LATEST', field: 'n' },
  hourly: { type: 'MAX', field: 'n', bucket_size: 'HOUR' },
  average: { type: 'AVG', field: 'n' },
  weighted: { type: 'WEIGHTED_SUM', field: 'n' },
  multiplied: { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '3' },
  grouped: { type: 'MAX', field: 'n', bucket_size: 'DAY', group_by: 'k' },
} as const;
const CUSTOMERS = ['final', 'draft'] as const;
/** January is over and invoiced, February runs. */
const DAYS = ['2026-01-05', '2026-01-20', '2026-02-03', '2026-02-04'];

describe('previews of corrections', function () {
  this.timeout(300_000);
  let world: World;
  let count = 0;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    for (const [name, aggregation] of Object.entries(AGGREGATIONS))
      await world.meter(name, aggregation, { event_name: 'calls' });
    await world.plan('Pro', [
      fixed('10', { invoice_cadence: 'ADVANCE' }),
      tiers('sum', [
        [10, '1.1'],
        [50, '0.7', '3'],
        [null, '0.31'],
      ]),
      tiers('count', [
        [2, '0'],
        [null, '2.5'],
      ]),
      usage('max', '0.333'),
      usage('unique', '1', { billing_model: 'PACKAGE', transform_quantity: { divide_by: 2 } }),
      usage('latest', '0.01'),
      usage('hourly', '0.2'),
      usage('average', '0.7'),
      usage('weighted', '0.03'),
      usage('multiplied', '0.05'),
      usage('grouped', '0.4'),
    ]);
  });
  after(() => world.stop());

  const content = fc.record({
    customer: fc.constantFrom(...CUSTOMERS),
    day: fc.constantFrom(...DAYS),
    hour: fc.integer({ min: 0, max: 3 }),
    n: fc.integer({ min: 0, max: 40 }),
    k: fc.constantFrom('a', 'b'),
  });
  type Drawn = typeof content extends fc.Arbitrary<infer One> ? One : never;
  const timeline = fc.record({
    events: fc.array(content, { minLength: 4, maxLength: 14 }),
    corrections: fc.array(fc.record({ at: fc.nat(100), to: fc.option(content) }), { minLength: 2, maxLength: 4 }),
  });

  const toEvent = (run: number, { customer, day, hour, n, k }: Drawn) => ({
    event_name: 'calls',
    external_customer_id: `${customer} ${run}`,
    timestamp: `${day}T0${hour}:30:00Z`,
    properties: { n, k },
    source: 'world',
  });
  const names = (run: number) => CUSTOMERS.map((customer) => `${customer} ${run}`);

  async function readUsage(meter_id: string, external_customer_id: string, period: { start: string; end: string }) {
    const body = { meter_id, external_customer_id, start_time: period.start, end_time: period.end };
    return new Decimal(String((await world.post<{ value: string }>('/events/usage/meter', body)).value)).toFixed();
  }

  /** Totals of the next invoice and of the draft by subscription, after the draft is computed again. */
  async function readTotals(run: number): Promise<Record<string, string>> {
    const totals: Record<string, string> = {};
    for (const name of names(run)) {
      const subscription_id = world.id(`subscription ${name}`);
      for (const { id, invoice_status } of await world.invoices(name)) {
        if (invoice_status !== 'DRAFT') continue;
        const { services, scope } = world.api;
        const computed = await computeInvoice(services, scope, id, world.now);
        totals[`${subscription_id} ${id}`] = computed.invoice.total;
      }
      totals[`${subscription_id} next`] = (await world.preview(name)).total;
    }
    return totals;
  }

  it('equals the correction, for every aggregation, in open, drafted and final periods', async () => {
    await fc.assert(
      fc.asyncProperty(timeline, async ({ events, corrections }) => {
        const run = ++count;
        world.at('2026-01-01');
        for (const name of names(run)) await world.subscribe(name, 'Pro');
        const sent = events.map((event, index) => ({ ...toEvent(run, event), event_id: `${run}-${index}` }));
        world.at('2026-01-31');
        await world.send(sent.filter(({ timestamp }) => timestamp < '2026-02'));
        await world.on('2026-02-01');
        for (const { id, invoice_status } of await world.invoices(`final ${run}`))
          if (invoice_status === 'DRAFT') await world.api.request('POST', `/invoices/${id}/finalize`);
        world.at('2026-02-05');
        await world.send(sent.filter(({ timestamp }) => timestamp >= '2026-02'));
        await world.waitForPipeline();
        const voided = new Set<string>();
        for (const { at, to } of corrections) {
          const { event_id } = sent[at % sent.length]!;
          if (voided.has(event_id)) continue;
          if (to === null) voided.add(event_id);
          const verb = to === null ? 'void' : 'replace';
          const event = to === null ? {} : { event: toEvent(run, to) };
          const before = await readTotals(run);
          const traces = await readTraces(world.api.services.postgres);
          const preview = await world.post(
            `/events/${event_id}/${verb}/preview` as `/events/${string}/void/preview`,
            event,
          );
          expect(listChanged(traces, await readTraces(world.api.services.postgres))).to.deep.equal([]);
          const body = { ...event, reason: 'a test' };
          const { status, text } = await world.api.request('POST', `/events/${event_id}/${verb}`, { body });
          expect(status, text).to.equal(202);
          await world.waitForPipeline();
          const after = await readTotals(run);
          const planned = { ...before };
          for (const { subscription_id, invoice_id, total_before, total_after, charges } of preview.invoices) {
            const key = `${subscription_id} ${invoice_id ?? 'next'}`;
            expect(total_before, key).to.equal(before[key]);
            planned[key] = total_after;
            expect(
              charges.every((one) => !new Decimal(one.after).minus(one.before).minus(one.amount).toNumber()),
            ).to.equal(true);
          }
          expect(planned, JSON.stringify([preview.invoices, before, after])).to.deep.equal(after);
          for (const one of preview.meters) {
            const period = { start: one.period_start, end: one.period_end };
            expect(await readUsage(one.meter_id, one.external_customer_id, period), one.name).to.equal(one.after);
          }
        }
      }),
      { numRuns: samples(4), endOnFailure: true },
    );
  });

  it('is refused like the correction, and needs its permission', async () => {
    world.at('2026-02-05');
    await world.customer('refused');
    await world.send([world.event('refused', 'calls', { n: 3, event_id: 'refused-1' })]);
    await world.waitForPipeline();
    const ask = (id: string, verb: 'void' | 'replace', body: unknown = {}, key = world.api.key) =>
      world.api.request('POST', `/events/${id}/${verb}/preview`, { body, key });
    const event = { event_name: 'calls', external_customer_id: 'refused', properties: { n: 5 } };
    const { body } = await ask('refused-1', 'replace', { event });
    const summed = body.meters.find(({ name }) => name === 'sum')!;
    expect([summed.before, summed.after, summed.period_start]).to.deep.equal(['3', '5', '2026-02-01T00:00:00Z']);
    expect(body.invoices).to.deep.equal([]);
    const faults: [unknown, string][] = [
      [{}, 'event'],
      [{ event: { ...event, event_name: '' } }, 'event.event_name'],
      [{ event: { ...event, event_id: 'another' } }, 'event.event_id'],
    ];
    for (const [sent, field] of faults) {
      const answer = await ask('refused-1', 'replace', sent);
      expect([answer.status, answer.body.details?.field], answer.text).to.deep.equal([400, field]);
    }
    expect((await ask('missing', 'void')).status).to.equal(404);
    expect((await ask('refused-1', 'void', {}, (await world.api.otherTenant()).key)).status).to.equal(404);
    expect((await ask('refused-1', 'void', {}, await world.api.keyWithRoles(['all_reader']))).status).to.equal(403);
    const keyless = await world.api.request('POST', '/events/refused-1/void/preview', { body: {}, key: null });
    expect(keyless.status).to.equal(401);
    await world.api.request('POST', '/events/refused-1/void', { body: { reason: 'a test' } });
    await world.waitForPipeline();
    expect((await ask('refused-1', 'replace', { event })).status).to.equal(400);
    const again = await ask('refused-1', 'void');
    expect([again.status, again.body.before, again.body.meters]).to.deep.equal([200, null, []]);
  });
});
