/**
 * Commitments from draft to final: of a line, of a window, of the subscription, of a term of several periods; with what comes
 * late, and with what is cut (docs/rules/commitments.md). All of them live through the same months.
 */
import { expect } from 'chai';
import type { AnalyticsPoint, InvoiceProof } from '../support/answers.ts';
import { check, provenBy } from '../support/verifier.ts';
import { type PriceTerms, startWorld, summarizeInvoice, tiers, usage, type World } from '../support/world.ts';

const hasEvents = ({ event_count }: AnalyticsPoint) => event_count > 0;

type Terms = NonNullable<NonNullable<InvoiceProof['lines'][number]['line']['computed_from']>['window_terms']>;

describe('scenario: commitments', () => {
  let world: World;
  const price: Record<string, string> = {};
  const previews: Record<string, ReturnType<typeof summarizeInvoice>> = {};

  before(async () => {
    world = await startWorld();
    await catalogue();
    await january();
    await february();
    await world.on('2026-03-01');
    await world.finalize();
    await world.on('2026-03-02', late);
    await world.on('2026-04-01');
    await world.finalize();
  });
  after(() => world.stop());

  async function catalogue(): Promise<void> {
    await world.meter('calls');
    await world.meter('storage');
    await world.meter('cpu', { type: 'SUM', field: 'n', bucket_size: 'HOUR' });
    await plan('One', usage('calls', '1', { display_name: 'calls' }));
    const slabs: [number | null, string][] = [
      [10, '2'],
      [null, '1'],
    ];
    await plan('Tiers', tiers('calls', slabs, { display_name: 'calls' }));
    const storage = usage('storage', '2', { display_name: 'storage' });
    await plan('Two', usage('calls', '1', { display_name: 'calls' }), storage);
    await plan('Cpu', usage('cpu', '1', { display_name: 'cpu' }));
  }

  async function plan(name: string, ...prices: PriceTerms[]): Promise<void> {
    await world.plan(name, []);
    for (const one of prices) price[`${name} ${one.meter}`] = (await world.price(name, one)).id;
  }

  const ofLine = (name: string, commitment: object) => ({ line_item_commitments: { [price[name]!]: commitment } });

  async function january(): Promise<void> {
    const money = { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true };
    const units = { commitment_quantity: 20, commitment_type: 'quantity', enable_true_up: true, overage_factor: 2 };
    const quarter = { ...money, overage_factor: '2', commitment_duration: 'QUARTERLY' };
    const times = {
      start: { hour: 23, minute: 0 },
      end: { hour: 1, minute: 0 },
      price: { billing_model: 'FLAT_FEE', amount: '2' },
      commitment_value: '10',
      overage_factor: '3',
      true_up_enabled: true,
    };
    const windows = { is_window_commitment: true, commitment_time_buckets: [times] };
    await world.on('2026-01-01');
    await world.subscribe('money', 'One', ofLine('One calls', money));
    await world.subscribe('units', 'Tiers', ofLine('Tiers calls', units));
    await world.subscribe('term', 'One', ofLine('One calls', quarter));
    await world.subscribe('whole', 'Two', money);
    await world.subscribe('whole term', 'Two', quarter);
    await world.subscribe('windows', 'Cpu', { ...ofLine('Cpu cpu', windows), timezone: 'America/New_York' });
    await use('2026-01-20T12:00:00Z', { money: 70, units: 15, term: 60, whole: 70, 'whole term': 60 });
    await world.send([
      world.event('whole', 'storage', { n: 25, at: '2026-01-20T12:00:00Z' }),
      world.event('windows', 'cpu', { n: 20, at: '2026-01-10T04:30:00Z' }), // 23:30 in New York
      world.event('windows', 'cpu', { n: 7, at: '2026-01-10T17:00:00Z' }), // noon
    ]);
    await world.on('2026-01-22', () =>
      world.subscribe('cut', 'One', {
        ...ofLine('One calls', { ...money, commitment_amount: '310' }),
        billing_cycle: 'calendar',
      }),
    );
    for (const name of ['money', 'whole', 'whole term']) previews[name] = summarizeInvoice(await world.preview(name));
  }

  async function february(): Promise<void> {
    await world.on('2026-02-01');
    await use('2026-02-20T00:00:00Z', { money: 140, units: 25, term: 60, whole: 20, 'whole term': 20 });
    await world.send([world.event('whole term', 'storage', { n: 20, at: '2026-02-21T00:00:00Z' })]);
    await world.on('2026-02-08', () => world.cancel('cut'));
  }

  /** Of January within what was lacking, of February above; of the subscription the other way round. */
  const late = () =>
    world.send([
      world.event('money', 'calls', { n: 20, at: '2026-01-25T00:00:00Z' }),
      world.event('money', 'calls', { n: 10, at: '2026-02-25T00:00:00Z' }),
      world.event('whole', 'calls', { n: 10, at: '2026-01-25T00:00:00Z' }),
      world.event('whole', 'calls', { n: 90, at: '2026-02-25T00:00:00Z' }),
      world.event('term', 'calls', { n: 5, at: '2026-01-25T00:00:00Z' }),
      world.event('term', 'calls', { n: 5, at: '2026-03-01T12:00:00Z' }),
    ]);

  function use(at: string, used: Record<string, number>): Promise<void> {
    return world.send(Object.entries(used).map(([name, n]) => world.event(name, 'calls', { n, at })));
  }

  /** Of every invoice that is not nothing. */
  async function statements(name: string): Promise<string[]> {
    return (await world.statements(name)).filter((statement) => !statement.includes(' SKIPPED '));
  }

  describe('of a line', () => {
    it('stands on the line item', async () => {
      const [line] = (await world.subscription('money')).line_items;
      expect(line).to.deep.include({
        commitment_amount: '100',
        commitment_quantity: null,
        commitment_type: 'amount',
        commitment_overage_factor: '1.5',
        commitment_true_up_enabled: true,
        commitment_windowed: false,
        commitment_duration: null,
        commitment_time_buckets: null,
      });
    });

    it('money: lacking in one month, above in the next; what comes late costs what it would have cost', async () => {
      expect(await statements('money')).to.deep.equal([
        'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 100\n  calls 2026-01-01..2026-02-01: 70 = 100',
        // 100 + 40 × 1.5
        'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 160\n  calls 2026-02-01..2026-03-01: 140 = 160',
        'SUBSCRIPTION_CYCLE FINALIZED 2026-03-01..2026-04-01 = 115\n' +
          '  calls 2026-03-01..2026-04-01: 0 = 100\n' +
          '  calls (late events) 2026-02-01..2026-03-01: 10 = 15\n' +
          '  calls (late events) 2026-01-01..2026-02-01: 20 = 0',
      ]);
      const [first] = await world.invoices('money');
      expect(summarizeInvoice(first!)).to.deep.equal(previews.money);
      expect(first!.line_items[0]!.commitment_info).to.deep.equal({
        type: 'amount',
        amount: '100',
        quantity: null,
        duration: null,
        overage_factor: '1.5',
        true_up_enabled: true,
        is_windowed: false,
        computed_true_up_amount: '30',
        computed_overage_amount: '0',
        computed_commitment_utilized_amount: '70',
      });
    });

    it('units are priced first, and tiers are those of all usage', async () => {
      const totals = (await world.invoices('units')).map(({ total }) => total);
      expect(totals).to.deep.equal(['30', '40', '30']); // 10 × 2 + 10 × 1; 30 + 5 × 2; nothing used
    });

    it('a first period that the anchor shortens, and a last one that a cancellation cuts, have their share', async () => {
      expect(await statements('cut')).to.deep.equal([
        'SUBSCRIPTION_CYCLE FINALIZED 2026-01-22..2026-02-01 = 100\n  calls 2026-01-22..2026-02-01: 0 = 100', // 10 of 31 days
        'PRORATION FINALIZED 2026-02-01..2026-02-08 = 77.5\n  calls 2026-02-01..2026-02-08: 0 = 77.5', // 7 of 28
      ]);
    });

    it('a term of three months is used up over them, and made up for at its end', async () => {
      const totals = (await world.invoices('term')).map(({ total }) => total);
      // 60 within; 40 within and 20 above, twice; then 5 of March and 5 that came late, above
      expect(totals).to.deep.equal(['60', '80', '20']);
    });
  });

  describe('of the subscription', () => {
    it('lines draw in their order; what is above stands beside, what is lacking at the end, what is late as it would have', async () => {
      expect(await statements('whole')).to.deep.equal([
        'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 130\n' +
          '  calls 2026-01-01..2026-02-01: 70 = 70\n' +
          '  storage 2026-01-01..2026-02-01: 25 = 30\n' + // the units that were measured stand on one line
          '  storage (overage) 2026-01-01..2026-02-01: 0 = 30', // 20 × 1.5
        'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 100\n' +
          '  calls 2026-02-01..2026-03-01: 20 = 20\n' +
          '  storage 2026-02-01..2026-03-01: 0 = 0\n' +
          '  Commitment (true-up) 2026-02-01..2026-03-01: 1 = 80',
        'SUBSCRIPTION_CYCLE FINALIZED 2026-03-01..2026-04-01 = 130\n' +
          '  calls 2026-03-01..2026-04-01: 0 = 0\n' +
          '  storage 2026-03-01..2026-04-01: 0 = 0\n' +
          '  calls (late events) 2026-01-01..2026-02-01: 10 = 15\n' +
          '  calls (late events) 2026-02-01..2026-03-01: 90 = 15\n' + // 80 were paid, 10 are above
          '  Commitment (true-up) 2026-03-01..2026-04-01: 1 = 100',
      ]);
      const [first] = await world.invoices('whole');
      expect(summarizeInvoice(first!)).to.deep.equal(previews.whole);
      // What came late for February was within what was lacking.
      const range = { start_time: '2026-02-01T00:00:00Z', end_time: '2026-03-01T00:00:00Z' };
      for (const [asked, amount, lacking] of [
        [range, '115', []],
        [{}, '100', ['100']],
      ] as const) {
        const subscription_id = world.id('subscription whole');
        const shown = await world.post('/subscriptions/usage', { subscription_id, ...asked });
        expect(shown.amount).to.equal(amount);
        const trueUps = shown.charges.filter(({ meter_id }) => meter_id === null);
        expect(trueUps.map((charge) => charge.amount)).to.deep.equal(lacking);
      }
      expect((await world.preview('whole')).total, 'of the running period').to.equal('100');
      expect(first!.line_items.map((line) => line.commitment_info!.computed_overage_amount)).to.deep.equal([
        '0',
        '0',
        '30',
      ]);
    });

    it('of a term each line has its share of what is left', async () => {
      expect(await statements('whole term')).to.deep.equal([
        'SUBSCRIPTION_CYCLE FINALIZED 2026-01-01..2026-02-01 = 60\n' +
          '  calls 2026-01-01..2026-02-01: 60 = 60\n' +
          '  storage 2026-01-01..2026-02-01: 0 = 0',
        'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 80\n' +
          '  calls 2026-02-01..2026-03-01: 20 = 13.33\n' +
          '  calls (overage) 2026-02-01..2026-03-01: 0 = 13.34\n' +
          '  storage 2026-02-01..2026-03-01: 20 = 26.67\n' +
          '  storage (overage) 2026-02-01..2026-03-01: 0 = 26.66',
      ]);
      expect(summarizeInvoice((await world.invoices('whole term'))[0]!)).to.deep.equal(previews['whole term']);
    });
  });

  describe('of each window', () => {
    it('times of day by the clock of the subscription, those without usage among them', async () => {
      const [line] = (await world.subscription('windows')).line_items;
      expect(line!.commitment_time_buckets).to.have.length(1);
      expect(line!.price_id).to.not.equal(price['Cpu cpu']);
      const [first] = await world.invoices('windows');
      // 10 + 30 × 3 at 23:00 of the 9th; the other 61 of 62 windows 10 each; 7 at noon
      expect(first!.total).to.equal('717');
      expect(first!.line_items[0]!.commitment_info).to.deep.include({
        is_windowed: true,
        computed_commitment_utilized_amount: '10',
        computed_overage_amount: '90',
        computed_true_up_amount: '610',
      });
    });

    it('say in analytics what each time of day comes to, where that is asked for', async () => {
      const range = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' };
      const asked = { external_customer_id: 'windows', ...range, window_size: 'DAY' };
      const [item] = (await world.post('/events/analytics', { ...asked, breakdown_bucket: true })).items;
      const [line] = (await world.subscription('windows')).line_items;
      const { id } = line!.commitment_time_buckets![0]!;
      expect(item!.total_cost).to.equal('717');
      const of = { price_id: line!.price_id, subscription_line_item_id: line!.id };
      expect(item!.bucket_summaries).to.deep.equal([
        {
          bucket_id: id,
          ...of,
          start: { hour: 23, minute: 0 },
          end: { hour: 1, minute: 0 },
          commitment_type: 'amount',
          commitment_value: '10',
          total_usage: '20',
          base_charge: '40',
          computed_utilized: '10',
          computed_overage: '90',
          computed_true_up: '610',
        },
        {
          bucket_id: '',
          ...of,
          start: null,
          end: null,
          commitment_type: null,
          commitment_value: null,
          total_usage: '7',
          base_charge: '7',
          computed_utilized: '0',
          computed_overage: '0',
          computed_true_up: '0',
        },
      ]);
      // The 9th of January there, and the 10th: of each day the hour after midnight is one that is committed to.
      const bucketsOf = (point: AnalyticsPoint) => point.buckets!.map(({ bucket_id }) => bucket_id);
      const [used, unused] = [item!.points!.filter(hasEvents), item!.points!.filter((point) => !hasEvents(point))];
      expect(used.map(bucketsOf)).to.deep.equal([[id], [id, '']]);
      // A day without usage lacks what its two hours are committed to.
      for (const point of unused) expect(bucketsOf(point)).to.deep.equal([id]);
      const costs = item!.points!.reduce((sum: number, { cost }) => sum + Number(cost), 0);
      expect(costs).to.equal(Number(item!.total_cost));
      const [plain] = (await world.post('/events/analytics', asked)).items;
      expect([plain!.bucket_summaries, plain!.points![0]!.buckets]).to.deep.equal([null, null]);
    });

    it('are computed again by whoever checks the invoice, window by window', async () => {
      const { id } = (await world.invoices('windows'))[0]!;
      const proven = await provenBy(world.api, id);
      const { differences, stated } = await check(proven);
      expect(differences).to.deep.equal([]);
      expect(stated.map(({ what }) => what)).to.deep.equal(['the commitment of each window, with its times of day']);
      for (const change of [
        (terms: Terms) => (terms.time_buckets![0]!.overage_factor = '2.9'),
        (terms: Terms) => ((terms.time_buckets![0]!.start as { hour: number }).hour = 22),
        (terms: Terms) => ((terms.time_buckets![0]!.price as { amount: string }).amount = '2.1'),
        (terms: Terms) => (terms.time_buckets![0]!.true_up_enabled = false),
      ]) {
        const proof = structuredClone(proven.proof);
        change(proof.lines[0]!.line.computed_from!.window_terms!);
        expect((await check({ ...proven, proof })).differences, String(change)).to.not.deep.equal([]);
      }
    });
  });
});
