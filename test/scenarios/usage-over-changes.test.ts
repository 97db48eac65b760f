/**
 * Usage over a change inside a period (docs/rules/proration.md, "Usage over a change"), where limits, grants, thresholds and late events meet
 * it. test/core/rating/chains.test.ts has the numbers of the rule, and test/combined/usage-over-changes.test.ts each kind of change at each
 * door.
 */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice } from '../support/answers.ts';
import { check, provenBy } from '../support/verifier.ts';
import { type PriceTerms, startWorld, tiers, usage, type World } from '../support/world.ts';

type Sent = readonly [string, Record<string, unknown>];

describe('scenario: usage over a change', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    world.at('2025-12-01');
    await world.meter('standing', { type: 'WEIGHTED_SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('daily', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
  });
  after(() => world.stop());

  const idOf = (customer: string) => world.id(`subscription ${customer}`);
  const begin = async (customer: string, price: PriceTerms, fields: Record<string, unknown> = {}) => {
    world.at('2026-01-01');
    await world.plan(customer, [price]);
    await world.subscribe(customer, customer, fields);
  };
  const send = (customer: string, event_name: string, events: readonly Sent[]) =>
    world.send(
      events.map(([time, properties]) => {
        const timestamp = time.length > 10 ? `${time}:00Z` : `${time}T00:00:00Z`;
        return { event_name, external_customer_id: customer, timestamp, properties };
      }),
    );
  /** From now on the prices of another plan hold. */
  const changePlan = async (customer: string, price: PriceTerms) => {
    const plan = `${customer} from ${world.now.toISOString()}`;
    await world.plan(plan, [price]);
    const target_plan_id = world.id(`plan ${plan}`);
    await world.post(`/subscriptions/${idOf(customer)}/change/v2/execute`, {
      target_plan_id,
      proration_behavior: 'create_prorations',
    });
  };
  const cycle = async (customer: string) => {
    const invoices = await world.invoices(customer);
    return invoices.find((one) => one.period_end === '2026-02-01T00:00:00Z');
  };
  /** `/subscriptions/usage` and the preview say the same amount. */
  const charged = async (customer: string): Promise<string> => {
    const { total } = await world.preview(customer);
    const { amount } = await world.post('/subscriptions/usage', { subscription_id: idOf(customer) });
    expect(String(amount), 'usage and preview').to.equal(total);
    return total;
  };
  const amountsOf = ({ line_items }: Invoice) => line_items.map(({ amount }) => amount);
  /** The lines of the period's invoice, once it is there. */
  const invoiced = async (customer: string): Promise<string[]> => {
    await world.on('2026-02-02');
    return amountsOf((await cycle(customer))!);
  };
  const finalizeAll = async () => {
    await world.waitForPipeline();
    await world.finalize();
  };

  describe('a level', () => {
    it('is held against a limit as it is billed: in whole months, also in a short first one', async () => {
      const { id } = await world.meter('limited', { type: 'WEIGHTED_SUM', field: 'n' });
      const feature = await world.post('/features', {
        name: 'Limited',
        lookup_key: 'limited',
        type: 'metered',
        meter_id: id,
      });
      world.at('2026-01-16');
      await world.plan('limited', [usage('limited', '31')]);
      await world.post('/entitlements', {
        entity_type: 'PLAN',
        entity_id: world.id('plan limited'),
        feature_id: feature.id,
        feature_type: 'metered',
        usage_limit: 1,
      });
      await world.subscribe('limited', 'limited', { billing_cycle: 'calendar' });
      await send('limited', 'limited', [['2026-01-16', { n: 31 }]]);
      // 31 × 16/31 = 16 GB-months, of which one is free.
      expect(await charged('limited')).to.equal('465');
      const answer = await world.get(`/customers/usage?customer_id=${world.id('customer limited')}`);
      const { current_usage, total_limit } = answer.features[0]!;
      expect([String(current_usage), String(total_limit)]).to.deep.equal(['16', '1']);
    });

    it('that never resets costs the same every month, and changes its price at once', async () => {
      world.at('2025-12-01');
      await world.plan('stands', [usage('standing', '31')]);
      await world.subscribe('stands', 'stands');
      await send('stands', 'standing', [['2025-12-01', { n: 10 }]]);
      world.at('2026-01-16');
      await world.waitForPipeline();
      await world.bill();
      await changePlan('stands', usage('standing', '62'));
      await world.on('2026-02-02');
      const cycles = (await world.invoices('stands')).filter(({ line_items }) => line_items.length > 0);
      expect(cycles.map(amountsOf)).to.deep.equal([['310'], ['150', '320']]);
      await world.on('2026-03-02');
      expect(amountsOf((await world.invoices('stands')).at(-1)!)).to.deep.equal(['620']);
    });
  });

  describe('peaks and sets', () => {
    it('a peak of 10 is shared with a phase that is to come, and nothing drifts while the period runs', async () => {
      world.at('2026-01-01');
      const { prices } = await world.plan('phased', [usage('peak', '10')]);
      const price_id = prices?.[0]?.id ?? (await world.get(`/prices?plan_ids=${world.id('plan phased')}`)).items[0]!.id;
      await world.subscribe('phased', 'phased', {
        phases: [
          { start_date: '2026-01-01T00:00:00Z', end_date: '2026-01-16T00:00:00Z' },
          { start_date: '2026-01-16T00:00:00Z', override_line_items: [{ price_id, amount: '1' }] },
        ],
        auto_invoice_threshold: '50',
      });
      await send('phased', 'peak', [['2026-01-05', { n: 10 }]]);
      for (const day of ['05', '10', '16', '17', '31']) {
        world.at(`2026-01-${day}T12:00:00Z`);
        expect(await charged('phased'), day).to.equal('53.55');
      }
    });

    it('and is invoiced before the period is over once: the phase that comes adds nothing by itself', async () => {
      const look = async (date: string) => {
        world.at(date);
        await world.waitForPipeline();
        return (await billThresholds(world.api.services, world.now)).invoiced;
      };
      expect([await look('2026-01-06'), await look('2026-01-17'), await look('2026-01-31')]).to.deep.equal([1, 0, 0]);
      const [partial] = await world.invoices('phased');
      expect(partial!.total).to.equal('53.55');
      await world.on('2026-02-02');
      const lines = (await cycle('phased'))!.line_items.map(({ amount }) => new Decimal(amount));
      expect(sumDecimals(lines).toFixed()).to.equal('0');
    });

    it('the invoice of a period that still runs is proven, also of a line that has ended in it', async () => {
      const customer = 'proven';
      await begin(customer, usage('daily', '1'), { auto_invoice_threshold: '40' });
      await send(customer, 'daily', [
        ['2026-01-05', { n: 50 }],
        ['2026-01-16', { n: 20 }],
        ['2026-01-20', { n: 30 }],
      ]);
      world.at('2026-01-16T12:00:00Z');
      await changePlan(customer, usage('daily', '2'));
      world.at('2026-01-27');
      await world.waitForPipeline();
      await billThresholds(world.api.services, world.now);
      // 50, half of 20, and half of 20 and 30 at $2.
      const partial = (await world.invoices(customer)).find((one) => one.billing_reason === 'THRESHOLD_BILLING');
      expect(amountsOf(partial!)).to.deep.equal(['60', '80']);
      expect((await check(await provenBy(world.api, partial!.id))).differences).to.deep.equal([]);
    });
  });

  describe('what is added up', () => {
    it('grants of money cover what lines add, whose tiers go on', async () => {
      const { id } = await world.meter('granted');
      const feature = await world.post('/features', {
        name: 'Granted',
        lookup_key: 'granted',
        type: 'metered',
        meter_id: id,
      });
      const price = (unit: string) =>
        tiers('granted', [
          [100, unit],
          [null, '0.5'],
        ]);
      world.at('2026-01-01');
      await world.plan('granted', [price('1')]);
      await world.post('/entitlements', {
        entity_type: 'SUBSCRIPTION',
        entity_id: (await world.subscribe('granted', 'granted')).id,
        feature_id: feature.id,
        feature_type: 'metered',
        grant_measure: 'amount',
        grant_quota: '30',
        grant_duration_value: 1,
        grant_duration_unit: 'day',
      });
      // 90, of which 30 are covered; then 10 × 1 + 60 × 0.5 = 40, of which 30 are.
      await send('granted', 'granted', [
        ['2026-01-05T10:00', { n: 90 }],
        ['2026-01-20T10:00', { n: 70 }],
      ]);
      world.at('2026-01-16');
      await changePlan('granted', price('1.0'));
      expect(await charged('granted')).to.equal('70');
    });
  });

  describe('late events', () => {
    const differences = async (customer: string) => {
      const invoices = await world.invoices(customer);
      return invoices.flatMap(({ line_items }) =>
        line_items.flatMap(({ amount, parent_line_item_id, display_name }) =>
          parent_line_item_id ? [`${display_name}: ${amount}`] : [],
        ),
      );
    };

    it('change all lines of the chain, by the rule that it was computed with', async () => {
      await begin('late', usage('peak', '10', { display_name: 'old' }));
      await send('late', 'peak', [['2026-01-05', { n: 10 }]]);
      world.at('2026-01-16');
      await changePlan('late', usage('peak', '1', { display_name: 'new' }));
      expect(await invoiced('late')).to.deep.equal(['48.39', '5.16']);
      await finalizeAll();
      // 20 × (10 × 15 + 1 × 16) / 31 = 107.10.
      await send('late', 'peak', [['2026-01-20', { n: 20 }]]);
      await world.waitForPipeline();
      await world.on('2026-03-02');
      expect(await differences('late')).to.deep.equal(['old (late events): 48.38', 'new (late events): 5.17']);
    });

    it('of a period that was computed before there were chains change the amount of their own line alone', async () => {
      await begin('before', usage('peak', '10', { display_name: 'old' }));
      await send('before', 'peak', [
        ['2026-01-05', { n: 10 }],
        ['2026-01-20', { n: 7 }],
      ]);
      world.at('2026-01-16');
      await changePlan('before', usage('peak', '1', { display_name: 'new' }));
      await world.on('2026-02-02');
      await finalizeAll();
      // As the version before wrote it: each line by itself, 10 at $10 and 7 at $1.
      const { id } = (await cycle('before'))!;
      const asBefore = async (
        display_name: string,
        quantity: string,
        [amount, start, end]: [string, string, string],
      ) => {
        const window = { window_start: `2026-01-${start}T00:00:00Z`, window_end: end, quantity, event_count: 1 };
        const { postgres } = world.api.services;
        await postgres('invoice_line_items')
          .where({ invoice_id: id, display_name })
          .update({
            amount,
            quantity,
            computed_from: postgres.raw(`(computed_from - 'chain') || ?::jsonb`, [JSON.stringify(window)]),
          });
      };
      const totals = { subtotal: '107', total: '107', amount_due: '107', amount_remaining: '107' };
      await world.api.services.postgres('invoices').where({ id }).update(totals);
      await asBefore('old', '10', ['100', '01', '2026-01-16T00:00:00Z']);
      await asBefore('new', '7', ['7', '16', '2026-02-01T00:00:00Z']);
      await send('before', 'peak', [['2026-01-25', { n: 9 }]]);
      await world.waitForPipeline();
      await world.on('2026-03-02');
      expect(await differences('before')).to.deep.equal(['new (late events): 2']);
      // Computed again it is by that rule, too: 10 at $10, and 9 at $1.
      const { id: again } = await world.post(`/invoices/${id}/recalculate`, {});
      expect(amountsOf(await world.get(`/invoices/${again}`))).to.deep.equal(['100', '9']);
    });
  });
});
