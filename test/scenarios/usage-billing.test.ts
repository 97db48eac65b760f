/** From events to invoices, through the log, the pipeline and the buckets: what was used, when, and what it costs. */
import { expect } from 'chai';
import fc from 'fast-check';
import { computeInvoice } from '../../actions/invoicing/invoices/compute-invoice.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { samples } from '../support/samples.ts';
import { fixed, startWorld, summarizeInvoice, tiers, usage, type World } from '../support/world.ts';

describe('scenario: usage billing', () => {
  let world: World;
  let count = 0;
  const newName = () => `customer ${++count}`;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('peak', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
    await world.plan('Pro', [
      fixed('10', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      tiers(
        'calls',
        [
          [1000, '0.02'],
          [5000, '0.005', '1'],
          [null, '0.01'],
        ],
        { display_name: 'calls' },
      ),
    ]);
    await world.plan('Seats', [usage('seats', '2', { display_name: 'seats' })]);
    await world.plan('Peak', [usage('peak', '1', { display_name: 'peak' })]);
    await world.plan('Yearly', [usage('calls', '1', { billing_period: 'ANNUAL', display_name: 'calls' })]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  it('three months of a base fee in advance and tiered usage in arrears', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro'));
    await world.on('2026-01-10', () => world.use(name, 'calls', 1000)); // the boundary does not enter the next tier
    await world.on('2026-02-01', () => world.use(name, 'calls', 1001)); // the very first instant of February
    await world.on('2026-03-01');
    await world.on('2026-04-01');
    expect(await world.statements(name)).to.deep.equal([
      'SUBSCRIPTION_CREATE FINALIZED 2026-01-01..2026-02-01 = 10\n  base 2026-01-01..2026-02-01: 1 = 10',
      'SUBSCRIPTION_CYCLE DRAFT 2026-01-01..2026-02-01 = 30\n' +
        '  base 2026-02-01..2026-03-01: 1 = 10\n  calls 2026-01-01..2026-02-01: 1000 = 20',
      'SUBSCRIPTION_CYCLE DRAFT 2026-02-01..2026-03-01 = 31.01\n' + // 1000 × 0.02 + 1 × 0.005 + 1, rounded
        '  base 2026-03-01..2026-04-01: 1 = 10\n  calls 2026-02-01..2026-03-01: 1001 = 21.01',
      'SUBSCRIPTION_CYCLE DRAFT 2026-03-01..2026-04-01 = 10\n' +
        '  base 2026-04-01..2026-05-01: 1 = 10\n  calls 2026-03-01..2026-04-01: 0 = 0',
    ]);
  });

  it('days of a bucketed meter are the days of the subscription’s timezone, also the one of 25 hours', async () => {
    const name = newName();
    const options = { billing_cycle: 'calendar', timezone: 'America/New_York' };
    await world.on('2025-11-01T04:00:00Z', () => world.subscribe(name, 'Peak', options));
    await world.send([
      world.event(name, 'peak', { n: 5, at: '2025-11-02T04:00:00Z' }), // midnight of 2 November in New York
      world.event(name, 'peak', { n: 7, at: '2025-11-03T04:30:00Z' }), // 23:30 of the same day, its 25th hour
      world.event(name, 'peak', { n: 11, at: '2025-11-03T05:00:00Z' }), // the next day
    ]);
    await world.on('2025-12-01T05:00:00Z');
    expect((await world.invoices(name)).at(-1)!.total).to.equal('18');
  });

  it('a meter that never resets is paid for what stands, in every period', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Seats'));
    await world.on('2026-01-10', () => world.use(name, 'seats', 3));
    await world.on('2026-02-10', () => world.use(name, 'seats', -1));
    await world.on('2026-04-01');
    expect((await world.invoices(name)).map(({ total }) => total)).to.deep.equal(['6', '4', '4']);
  });

  it('usage of a year on a monthly subscription comes with the twelfth invoice', async () => {
    const name = newName();
    await world.on('2024-01-01', () => world.subscribe(name, 'Yearly'));
    await world.on('2024-01-05', () => world.use(name, 'calls', 2));
    await world.on('2024-11-05', () => world.use(name, 'calls', 3));
    await world.on('2025-01-01');
    const said = await world.statements(name);
    expect(said).to.deep.equal([
      'SUBSCRIPTION_CYCLE DRAFT 2024-12-01..2025-01-01 = 5\n  calls 2024-01-01..2025-01-01: 5 = 5',
    ]);
  });

  it('corrections below nothing are shown and billed as nothing', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
    await world.on('2026-01-10', () => world.use(name, 'calls', -4));
    await world.on('2026-02-01');
    const [invoice] = await world.invoices(name);
    expect(invoice!.invoice_status).to.equal('SKIPPED');
    expect(invoice!.line_items[0]!.amount).to.equal('0');
  });

  it('the preview of a running period says what the draft will say', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro'));
    await world.on('2026-01-10', () => world.use(name, 'calls', 1234));
    const preview = await world.preview(name);
    await world.on('2026-02-01');
    expect(summarizeInvoice(preview)).to.deep.equal(summarizeInvoice((await world.invoices(name)).at(-1)!));
  });

  it('lines say what they were computed from', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro'));
    await world.on('2026-01-10', () => world.use(name, 'calls', 1200));
    await world.on('2026-02-01');
    const lines = await world.api.services
      .postgres('invoice_line_items')
      .where({ subscription_id: world.id(`subscription ${name}`) })
      .orderBy('id')
      .select('display_name', 'quantity', 'amount', 'period_start', 'period_end', 'meter_id', 'computed_from');
    const usageLine = lines.find((line) => line.meter_id !== null);
    expect(Object.keys(usageLine.computed_from.high_water)).to.not.be.empty;
    // Where the log stood depends on what the other scenarios sent.
    usageLine.computed_from.high_water = 'the log’s offsets';
    expectGolden('invoice-lines.json', withoutIds(lines));
  });

  it('more computations at once than there are connections: none is starved', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro'));
    await world.on('2026-01-10', () => world.use(name, 'calls', 5));
    await world.on('2026-02-01');
    const id = (await world.invoices(name)).at(-1)!.id;
    const { services, scope } = world.api;
    const computed = await Promise.all(
      Array.from({ length: 15 }, () => computeInvoice(services, scope, id, world.now)),
    );
    expect(new Set(computed.map(({ invoice }) => invoice.total))).to.deep.equal(new Set(['10.1']));
    const [, draft] = await world.statements(name);
    expect(draft!.split('\n')).to.have.length(3);
  });

  describe('late events', () => {
    async function finalJanuary(name: string): Promise<void> {
      await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
      await world.on('2026-01-10', () => world.use(name, 'calls', 5));
      await world.on('2026-02-01');
      await world.finalize();
    }

    it('a draft takes them in when it becomes final', async () => {
      const name = newName();
      await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
      await world.on('2026-01-10', () => world.use(name, 'calls', 5));
      await world.on('2026-02-01');
      await world.send([world.event(name, 'calls', { n: 2, at: '2026-01-20T00:00:00Z' })]);
      await world.waitForPipeline();
      await world.finalize();
      expect((await world.statements(name))[0]).to.contain('FINALIZED 2026-01-01..2026-02-01 = 7');
    });

    it('after that they are a line on the next invoice, once, and the final one stays as it is', async () => {
      const name = newName();
      await finalJanuary(name);
      await world.send([world.event(name, 'calls', { n: 3, at: '2026-01-20T00:00:00Z' })]);
      await world.use(name, 'calls', 1);
      await world.on('2026-03-01');
      await world.finalize();
      await world.on('2026-04-01');
      const [january, february, march] = await world.statements(name);
      expect(january).to.contain('= 5\n');
      expect(february).to.equal(
        'SUBSCRIPTION_CYCLE FINALIZED 2026-02-01..2026-03-01 = 4\n' +
          '  calls 2026-02-01..2026-03-01: 1 = 1\n  calls (late events) 2026-01-01..2026-02-01: 3 = 3',
      );
      expect(march).to.contain('SKIPPED');
    });

    it('a last invoice of nothing rests as a draft while what was accepted before is on its way', async () => {
      await world.on('2026-01-05');
      for (const name of ['hasty', 'idle'])
        await world.subscribe(name, 'Calls', { start_date: '2026-01-01T00:00:00Z' });
      await world.pausePipeline();
      world.at('2026-01-06');
      await world.use('hasty', 'calls', 90, { at: '2026-01-03T00:00:00Z' });
      world.at('2026-01-06T00:00:01Z');
      for (const name of ['hasty', 'idle']) await world.cancel(name);
      expect((await world.invoices('hasty')).map(({ invoice_status }) => invoice_status)).to.deep.equal(['DRAFT']);
      await world.resumePipeline();
      await world.waitForPipeline();
      await world.finalize();
      const [[billed], [nothing]] = [await world.invoices('hasty'), await world.invoices('idle')];
      expect([billed!.invoice_status, Number(billed!.total)]).to.deep.equal(['FINALIZED', 90]);
      expect(nothing!.invoice_status).to.equal('SKIPPED');
    });

    it('events that were replaced are a line too, also where there are as many as before', async () => {
      const name = newName();
      await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
      await world.send([
        world.event(name, 'calls', { n: 5, at: '2026-01-10T00:00:00Z', event_id: `${name} first` }),
        world.event(name, 'calls', { n: 1, at: '2026-01-11T00:00:00Z', event_id: `${name} second` }),
      ]);
      await world.on('2026-02-01');
      await world.finalize();
      await world.replace(`${name} first`, world.event(name, 'calls', { n: 2, at: '2026-01-10T00:00:00Z' }));
      await world.use(name, 'calls', 1);
      await world.on('2026-03-01');
      await world.finalize();
      await world.use(name, 'calls', 10);
      await world.on('2026-04-01');
      const totals = (await world.invoices(name)).map(({ total }) => total);
      expect(totals).to.deep.equal(['6', '0', '8']); // 2 + 1 + 1 + 10 = 14 in all
    });

    for (const [when, isFinal, totals] of [
      ['it takes them back from the draft of the next', false, ['3', '1']],
      ['they stay on the next one that is final', true, ['0', '4']],
    ] as const) {
      it(`an invoice that was skipped is computed again: ${when}, and nothing is billed twice or lost`, async () => {
        const name = newName();
        await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
        await world.on('2026-02-01');
        await world.send([world.event(name, 'calls', { n: 3, at: '2026-01-20T00:00:00Z' })]);
        await world.use(name, 'calls', 1);
        await world.on('2026-03-01');
        const [january, february] = await world.invoices(name);
        expect([january!.invoice_status, february!.total]).to.deep.equal(['SKIPPED', '4']);
        if (isFinal) await world.finalize();
        await world.post(`/invoices/${january!.id}/compute?sync=true`, {});
        await world.finalize();
        expect((await world.invoices(name)).map(({ total }) => total)).to.deep.equal(totals);
      });
    }

    // The window of a meter that never resets begins with the subscription, in every period.
    for (const [plan, feature, totals] of [
      ['Calls', 'calls', ['2', '7']],
      ['Seats', 'seats', ['4', '14']],
    ] as const) {
      it(`what came late for a skipped invoice is no line on one of an earlier period that is computed again: ${plan}`, async () => {
        const name = newName();
        await world.on('2026-01-01', () => world.subscribe(name, plan));
        await world.use(name, feature, 2);
        await world.on('2026-02-01');
        if (plan === 'Seats') await world.send([world.event(name, feature, { n: -2, at: '2026-02-10T00:00:00Z' })]);
        await world.waitForPipeline();
        await world.on('2026-03-01');
        await world.send([world.event(name, feature, { n: 7, at: '2026-02-20T00:00:00Z' })]);
        await world.waitForPipeline();
        const [january, february] = await world.invoices(name);
        expect([january!.total, february!.invoice_status]).to.deep.equal([totals[0], 'SKIPPED']);
        await world.post(`/invoices/${january!.id}/compute?sync=true`, {});
        expect((await world.invoices(name))[0]!.total).to.equal(totals[0]);
        await world.finalize();
        await world.post(`/invoices/${february!.id}/compute?sync=true`, {});
        expect((await world.invoices(name)).map(({ total }) => total)).to.deep.equal(totals);
      });
    }

    it('what they take back lowers the next invoice to nothing at most, and the rest follows', async () => {
      const name = newName();
      await finalJanuary(name);
      await world.send([world.event(name, 'calls', { n: -4, at: '2026-01-20T00:00:00Z' })]);
      await world.use(name, 'calls', 3);
      await world.on(
        '2026-03-01',
        () => world.finalize(),
        () => world.use(name, 'calls', 10),
      );
      await world.on('2026-04-01');
      const totals = (await world.invoices(name)).map(({ total }) => total);
      expect(totals).to.deep.equal(['5', '0', '9']); // 5 − 4 + 3 + 10 = 14 in all
    });
  });

  it('any split of a period’s events into requests gives the same invoice', async () => {
    const amounts = fc.array(fc.integer({ min: -50, max: 500 }), { minLength: 1, maxLength: 12 });
    const cuts = fc.array(fc.boolean(), { minLength: 12, maxLength: 12 });
    const drawn = fc
      .sample(fc.record({ amounts, cuts }), samples(5))
      .map((one) => ({ ...one, together: newName(), apart: newName() }));
    await world.on('2026-01-01');
    for (const { together, apart } of drawn) for (const name of [together, apart]) await world.subscribe(name, 'Pro');
    const events = (name: string, all: readonly number[]) =>
      all.map((n, day) =>
        world.event(name, 'calls', { n, at: new Date(Date.UTC(2026, 0, 2 + day, day)).toISOString() }),
      );
    await world.send(drawn.flatMap(({ together, amounts: all }) => events(together, all)));
    for (const { apart, amounts: all, cuts: places } of drawn)
      for (const batch of cut(events(apart, all), places)) await world.send(batch);
    await world.on('2026-02-01');
    for (const { together, apart, ...one } of drawn) {
      const [whole, split] = [(await world.invoices(together)).at(-1), (await world.invoices(apart)).at(-1)];
      expect(summarizeInvoice(whole!), JSON.stringify(one)).to.deep.equal(summarizeInvoice(split!));
    }
  });
});

function cut<T>(values: readonly T[], cuts: readonly boolean[]): T[][] {
  const batches: T[][] = [[]];
  for (const [index, value] of values.entries()) {
    if (cuts[index] && batches.at(-1)!.length > 0) batches.push([]);
    batches.at(-1)!.push(value);
  }
  return batches;
}
