/** GET /events/{id}/thread: an event, the usage and the cost that it adds, and its invoice; or why it is not counted. */
import { expect } from 'chai';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { roundMoney } from '../../../core/foundation/money.ts';
import { type Chance, createChance, seedsToRun } from '../../support/seeds.ts';
import { type PriceTerms, startWorld, tiers, usage, type World } from '../../support/world.ts';

const follow = (world: World, id: string) => world.get(`/events/${encodeURIComponent(id)}/thread`);

describe('events: the thread of an event', () => {
  let world: World;
  const event = (event_id: string, fields: object = {}) => ({
    event_id,
    event_name: 'completion',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T12:00:00Z',
    properties: { n: '60', region: 'eu' },
    ...fields,
  });

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter(
      'completion',
      { type: 'SUM', field: 'n' },
      { filters: [{ key: 'region', values: ['eu', 'us'] }] },
    );
    await world.meter('requests', { type: 'COUNT' }, { event_name: 'completion' });
    await world.meter('peak', { type: 'MAX', field: 'n' }, { event_name: 'completion' });
    await world.plan('Pro', [
      tiers('completion', [
        [100, '1'],
        [null, '0.5', '3'],
      ]),
      usage('peak', '0.0001'),
    ]);
    await world.subscribe('acme', 'Pro');
    await world.customer('idle');
    await world.waitForPipeline();
    world.at('2026-03-15T12:00:00Z');
    await world.send([
      event('first', { timestamp: '2026-03-02T12:00:00Z' }),
      event('second'),
      event('misspelt', { event_name: 'completoin' }),
      event('elsewhere', { event_name: 'storage_level' }),
      event('unusable', { event_name: 'level', properties: { n: 'many' } }),
      event('stranger', { external_customer_id: 'nobody' }),
      event('idle', { external_customer_id: 'idle' }),
      event('refused', { event_name: 'filtered', properties: { region: 'asia' } }),
      event('voided'),
      event('replaced'),
    ]);
    await world.meter('level', { type: 'SUM', field: 'n' });
    await world.meter('filtered', { type: 'COUNT' }, { filters: [{ key: 'region', values: ['eu'] }] });
    await world.waitForPipeline();
    const body = { reason: 'a test' };
    expect((await world.api.request('POST', '/events/voided/void', { body })).status).to.equal(202);
    await world.replace('replaced', event('replaced', { properties: { n: '0', region: 'eu' } }));
  });
  after(() => world.stop());

  describe('200', () => {
    it('the usage and the cost that it adds, over the boundary of a tier', async () => {
      const thread = await follow(world, 'second');
      expect(thread).to.include({ status: 'counted', reason: null, detail: null, nearest_event_name: null });
      expect(thread.event).to.deep.include({ id: 'second', properties: { n: '60', region: 'eu' } });
      expect(thread.customer).to.include({ name: 'acme', external_id: 'acme' });
      const meters = Object.fromEntries(
        thread.meters.map(({ name, ...meter }: { name: string }) => [name, meter]),
      ) as Record<string, (typeof thread.meters)[number]>;
      const period = { period_start: '2026-03-01T00:00:00Z', period_end: '2026-04-01T00:00:00Z' };
      expect(meters.completion).to.include({ value: '60', quantity: '+60', before: '60', after: '120', ...period });
      expect(meters.completion).to.include({ aggregation: 'SUM', is_priced: true });
      expect(meters.requests).to.include({ value: '1', quantity: '+1', before: '2', after: '3', is_priced: false });
      expect(meters.peak).to.include({ value: '60', quantity: '0', before: '60', after: '60', is_priced: true });
      const [charge, peak] = thread.charges;
      expect(charge).to.include({ plan_name: 'Pro', quantity_before: '60', quantity_after: '120', currency: 'usd' });
      // Forty units fill the first tier, and twenty enter the second one with its fixed amount.
      expect(charge).to.include({ before: '60', after: '113', amount: '53', tier: 2, ...period });
      expect(charge!.written_out).to.equal('40 × 1 + 20 × 0.5 + 3');
      expect(peak).to.include({ before: '0.006', after: '0.006', amount: '0', written_out: '0', tier: null });
      const preview = await world.preview('acme');
      expect(thread.next_invoice).to.deep.equal({
        subscription_id: world.id('subscription acme'),
        amount: preview.total,
        currency: 'usd',
        period_end: '2026-04-01T00:00:00Z',
        invoice_id: null,
      });
    });

    const NOT_COUNTED: [id: string, reason: string, nearest: string | null, detail: string][] = [
      ['misspelt', 'unmatched', 'completion', 'no meter has the event name completoin'],
      ['elsewhere', 'unmatched', null, 'no meter has the event name storage_level'],
      ['unusable', 'unusable', null, 'meter level: property "n" is not a number'],
      ['refused', 'unmatched', null, 'meter filtered does not accept it: property "region" is not an accepted value'],
    ];
    for (const [id, reason, nearest_event_name, detail] of NOT_COUNTED) {
      it(`${id}: not counted, because it is ${reason}`, async () => {
        const thread = await follow(world, id);
        expect(thread).to.include({ status: 'not_counted', reason, nearest_event_name, detail, next_invoice: null });
        expect([thread.meters, thread.charges]).to.deep.equal([[], []]);
      });
    }

    for (const [id, reason] of [
      ['stranger', 'no_customer'],
      ['idle', 'no_subscription'],
    ] as const) {
      it(`${id}: counted, but not charged because of ${reason}`, async () => {
        const thread = await follow(world, id);
        expect(thread).to.include({ status: 'counted', reason, next_invoice: null });
        expect(thread.charges).to.deep.equal([]);
        // Without a subscription the usage is that of the calendar month.
        const month = { period_start: '2026-03-01T00:00:00Z', period_end: '2026-04-01T00:00:00Z' };
        expect(thread.meters[0]).to.include({ before: '0', after: '60', ...month });
      });
    }

    it('a voided event, which adds nothing', async () => {
      expect(await follow(world, 'voided')).to.deep.include({
        status: 'voided',
        reason: null,
        meters: [],
        charges: [],
      });
    });

    it('a corrected event, with the content that replaced the first', async () => {
      const thread = await follow(world, 'replaced');
      expect(thread).to.include({ status: 'corrected', reason: null });
      const sum = thread.meters.find(({ name }: { name: string }) => name === 'completion');
      expect(sum).to.include({ value: '0', quantity: '0', before: '120', after: '120' });
    });

    it('a dead letter, with the reason', async () => {
      const { log } = world.api.services;
      const text = '[{"event_id":"dead","event_name":"completion","external_customer_id":"acme","timestamp":"noon"}]';
      const entry = { kind: 'events' as const, received_at_us: world.now.getTime() * 1000, generated_ids: null };
      await log.append([{ ...world.api.scope, ...entry, partition: 0, event_count: 1, body: Buffer.from(text) }]);
      await world.waitForPipeline();
      const thread = await follow(world, 'dead');
      expect(thread).to.include({ event: null, status: 'not_counted', reason: 'dead_letter' });
      expect(thread.detail).to.equal('timestamp: is malformed');
    });

    it('an event that waits in the log is processing', async () => {
      await world.pausePipeline();
      await world.send([event('waiting', { properties: { n: 0, region: 'eu' } })]);
      expect(await follow(world, 'waiting')).to.deep.include({ status: 'processing', meters: [], charges: [] });
      await world.resumePipeline();
      await world.waitForPipeline();
    });
  });

  it('the event of a customer whose usage a parent pays, on the subscription of the parent', async () => {
    await world.customer('branch');
    const inheritance = { external_customer_ids_to_inherit_subscription: ['branch'] };
    await world.subscribe('company', 'Pro', { inheritance });
    await world.send([
      event('own', { external_customer_id: 'company', timestamp: '2026-03-15T12:00:01Z' }),
      event('joined', { external_customer_id: 'branch', timestamp: '2026-03-15T12:00:02Z' }),
    ]);
    await world.waitForPipeline();
    const thread = await follow(world, 'joined');
    expect(thread).to.include({ status: 'counted', reason: null });
    const [charge] = thread.charges;
    expect(charge).to.include({ subscription_id: world.id('subscription company'), before: '60', after: '113' });
    // The usage of the customer is its own, and the charge is that of the whole family.
    const sum = thread.meters.find(({ name }: { name: string }) => name === 'completion');
    expect(sum).to.include({ before: '0', after: '60' });
    expect(thread.next_invoice!.amount).to.equal((await world.preview('company')).total);
  });

  it('401 without a key, 403 for a key that may not read events', async () => {
    const path = '/events/second/thread';
    expect((await world.api.request('GET', path, { key: null })).status).to.equal(401);
    const key = await world.api.keyWithRoles(['event_ingestor']);
    expect((await world.api.request('GET', path, { key })).status).to.equal(403);
    // A key for events alone may not read who pays for them, and how much.
    const reader = await world.api.keyWithRoles(['event_reader'], { user_type: 'service_account' });
    const refused = await world.api.request('GET', path, { key: reader });
    expect([refused.status, refused.body.details]).to.deep.equal([403, { permission: 'customer:read' }]);
  });

  it('404 for an unknown id, and for the event of another tenant', async () => {
    expect((await world.api.request('GET', '/events/never/thread')).status).to.equal(404);
    const { key } = await world.api.otherTenant();
    expect((await world.api.request('GET', '/events/second/thread', { key })).status).to.equal(404);
  });

  // The last one, because the clock moves.
  describe('200 after the period', () => {
    it('shows the draft, and then the final invoice, that has the charge', async () => {
      await world.on('2026-04-01');
      const [draft] = await world.invoices('acme');
      const drafted = await follow(world, 'second');
      expect(drafted.invoice).to.equal(null);
      expect(drafted.next_invoice).to.include({ invoice_id: draft!.id, amount: draft!.total });
      expect(drafted.charges[0]).to.include({ before: '60', after: '113', amount: '53' });
      await world.finalize();
      const [final] = await world.invoices('acme');
      expect(final).to.include({ id: draft!.id, invoice_status: 'FINALIZED' });
      const { invoice, next_invoice } = await follow(world, 'second');
      expect(next_invoice).to.equal(null);
      const line = (final!.line_items as { id: string; meter_id: string }[]).find(
        ({ meter_id }) => meter_id === world.id('meter completion'),
      )!;
      expect(invoice).to.deep.equal({
        invoice_id: draft!.id,
        invoice_number: final!.invoice_number,
        invoice_line_item_id: line.id,
        subscription_id: world.id('subscription acme'),
        amount: final!.total,
        currency: 'usd',
        period_end: '2026-04-01T00:00:00Z',
      });
      // The final invoice also has the correction from before it.
      expect(await follow(world, 'replaced')).to.deep.include({ invoice, next_invoice: null });
    });

    it('a late event is on the next invoice, and then on that of its late events', async () => {
      world.at('2026-04-02T00:00:00Z');
      await world.send([event('late')]);
      await world.waitForPipeline();
      const thread = await follow(world, 'late');
      expect(thread.charges[0]).to.include({ amount: '30', written_out: '60 × 0.5' });
      expect(thread.invoice).to.equal(null);
      expect(thread.next_invoice).to.include({ invoice_id: null, amount: (await world.preview('acme')).total });
    });

    it('a correction after the final invoice is on the next one', async () => {
      await world.replace('second', event('second', { properties: { n: '90', region: 'eu' } }));
      const { status, invoice, next_invoice } = await follow(world, 'second');
      expect(status).to.equal('corrected');
      expect(invoice).to.include({ period_end: '2026-04-01T00:00:00Z' });
      expect(next_invoice).to.include({ invoice_id: null, amount: (await world.preview('acme')).total });
    });

    it('an event that a correction moved out of a final period is on the next invoice alone', async () => {
      const moved = { timestamp: '2026-04-01T12:00:00Z', properties: { n: '60', region: 'eu' } };
      await world.replace('first', event('first', moved));
      const { invoice, next_invoice } = await follow(world, 'first');
      expect(invoice).to.equal(null);
      expect(next_invoice).to.include({ period_end: '2026-05-01T00:00:00Z' });
    });

    it('final invoices have late events and corrections in the end', async () => {
      await world.on('2026-05-01');
      await world.finalize();
      const invoices = await world.invoices('acme');
      const april = invoices.find(({ period_end }) => period_end === '2026-05-01T00:00:00Z')!;
      const late = await follow(world, 'late');
      expect([late.invoice!.invoice_number, late.next_invoice]).to.deep.equal([april.invoice_number, null]);
      const corrected = await follow(world, 'second');
      expect(corrected.invoice).to.include({ period_end: '2026-04-01T00:00:00Z' });
      expect(corrected.next_invoice).to.equal(null);
    });
  });
});

const AGGREGATIONS: Record<string, unknown>[] = [
  { type: 'SUM', field: 'n' },
  { type: 'COUNT' },
  { type: 'MAX', field: 'n' },
  { type: 'LATEST', field: 'n' },
  { type: 'COUNT_UNIQUE', field: 'n' },
  { type: 'AVG', field: 'n' },
  { type: 'WEIGHTED_SUM', field: 'n' },
  { type: 'MAX', field: 'n', bucket_size: 'HOUR' },
];

function randomPrice(meter: string, chance: Chance): PriceTerms {
  const amount = () => `0.${chance.whole(1, 99_999).toString().padStart(6, '0')}`;
  const slabs = (): [number | null, string, string?][] => [
    [chance.whole(5, 40), amount(), `${chance.whole(0, 3)}`],
    [chance.whole(50, 90), amount()],
    [null, amount(), '1.25'],
  ];
  return chance.pick([
    () => usage(meter, amount()),
    () => tiers(meter, slabs()),
    () => tiers(meter, slabs(), { tier_mode: 'VOLUME' }),
    () => usage(meter, amount(), { billing_model: 'PACKAGE', transform_quantity: { divide_by: chance.whole(2, 9) } }),
  ])();
}

describe('events: the sums of a thread', function () {
  this.timeout(240_000);

  for (const seed of seedsToRun(3)) {
    it(`are those of usage and preview, without the event and with it (seed ${seed})`, async () => {
      const chance = createChance(seed);
      const world = await startWorld({ now: '2026-03-01T00:00:00Z' });
      try {
        const names = AGGREGATIONS.map((_, index) => `meter ${index}`);
        for (const [index, aggregation] of AGGREGATIONS.entries())
          await world.meter(names[index]!, aggregation, { event_name: 'call' });
        await world.plan(
          'Pro',
          names.map((name) => randomPrice(name, chance)),
        );
        // The second customer sends all events but one.
        await world.subscribe('whole', 'Pro');
        await world.subscribe('without', 'Pro');
        world.at('2026-03-20T12:34:56Z');
        const events = Array.from({ length: 25 }, (_, index) => ({
          event_id: `${index}`,
          event_name: 'call',
          timestamp: new Date(
            Date.UTC(2026, 2, chance.whole(1, 19), chance.whole(9, 11), chance.whole(0, 59)),
          ).toISOString(),
          properties: { n: `${chance.whole(-2, 30)}.${chance.whole(0, 9)}` },
        }));
        const left_out = chance.pick(events);
        await world.send([
          ...events.map((event) => ({ ...event, external_customer_id: 'whole' })),
          ...events
            .filter((event) => event !== left_out)
            .map((event) => ({ ...event, event_id: `w${event.event_id}`, external_customer_id: 'without' })),
        ]);
        await world.waitForPipeline();
        const thread = await follow(world, left_out.event_id);
        const [whole, without] = [await world.preview('whole'), await world.preview('without')];
        expect(thread.charges).to.have.length(AGGREGATIONS.length);
        expect(thread.next_invoice!.amount).to.equal(whole.total);
        for (const name of names) {
          const meter_id = world.id(`meter ${name}`);
          const lineOf = (preview: typeof whole) => preview.line_items.find((line) => line.meter_id === meter_id)!;
          const charge = thread.charges.find((one: { meter_id: string | null }) => one.meter_id === meter_id)!;
          const [line, other] = [lineOf(whole), lineOf(without)];
          const rounded = (text: string) => roundMoney(new Decimal(text), 'usd').toFixed();
          const context = JSON.stringify({ name, charge, line, other });
          expect([charge.quantity_before, charge.quantity_after], context).to.deep.equal([
            other.quantity,
            line.quantity,
          ]);
          expect([rounded(charge.before), rounded(charge.after)], context).to.deep.equal([
            new Decimal(other.amount).toFixed(),
            new Decimal(line.amount).toFixed(),
          ]);
          expect(charge.amount, context).to.equal(new Decimal(charge.after).minus(charge.before).toFixed());
          expect(computeWritten(charge.written_out).toFixed(), context).to.equal(charge.amount);
          const meter = thread.meters.find((one: { meter_id: string }) => one.meter_id === meter_id)!;
          expect(new Decimal(meter.quantity).toFixed(), context).to.equal(
            new Decimal(meter.after).minus(meter.before).toFixed(),
          );
          for (const [customer, shown] of [
            ['whole', meter.after],
            ['without', meter.before],
          ] as const) {
            const range = { start_time: meter.period_start, end_time: meter.period_end };
            const query = { meter_id, external_customer_id: customer, ...range };
            const { body } = await world.api.request<{ value: string }>('POST', '/events/usage/meter', { body: query });
            expect(new Decimal(body.value).toFixed(), `${customer} ${context}`).to.equal(shown);
          }
        }
      } finally {
        await world.stop();
      }
    });
  }
});

/** Computes a sum of products, such as `40 × 1 + 20 × 0.5 − 3`. */
function computeWritten(text: string): Decimal {
  const terms = text.replace(/^−/, '0 − ').split(/ (?=[+−] )/);
  return terms.reduce((sum, term) => {
    const isLess = term.startsWith('− ');
    const factors = term.replace(/^[+−] /, '').split(' × ');
    const product = factors.reduce((result, factor) => result.times(factor), new Decimal(1));
    return isLess ? sum.minus(product) : sum.plus(product);
  }, new Decimal(0));
}

describe('events: the thread of an event that a correction made usable', () => {
  let world: World;
  const event = (event_id: string, n: string) => ({
    event_id,
    event_name: 'call',
    external_customer_id: 'acme',
    timestamp: '2026-03-15T12:00:00Z',
    properties: { n },
  });

  before(async () => {
    world = await startWorld({ now: '2026-03-01T00:00:00Z' });
    await world.meter('call', { type: 'SUM', field: 'n' });
    await world.plan('Pro', [usage('call', '0.5')]);
    await world.subscribe('acme', 'Pro');
    await world.waitForPipeline();
    world.at('2026-03-20T00:00:00Z');
    await world.send([event('counted', '10'), event('before', 'many'), event('after', 'many')]);
    await world.replace('before', event('before', '4'));
    await world.on('2026-04-01');
    await world.finalize();
    world.at('2026-04-02T00:00:00Z');
    await world.replace('after', event('after', '6'));
  });
  after(() => world.stop());

  it('before the final invoice: that invoice counts it', async () => {
    const [final] = await world.invoices('acme');
    expect(final!.total).to.equal('7');
    const { invoice, next_invoice } = await follow(world, 'before');
    expect(invoice).to.include({ invoice_id: final!.id });
    expect(next_invoice).to.equal(null);
  });

  it('after the final invoice: the next one charges it', async () => {
    const { invoice, next_invoice } = await follow(world, 'after');
    expect(invoice).to.equal(null);
    expect(next_invoice).to.include({ invoice_id: null, amount: '3', period_end: '2026-05-01T00:00:00Z' });
  });
});
