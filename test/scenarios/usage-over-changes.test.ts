/** Usage over a change inside a period (docs/rules/proration.md, "Usage over a change"): the numbers of the rule, at the doors of billing. */
import { expect } from 'chai';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { trySync } from '../../actions/lifecycle/subscriptions/sync-plan.ts';
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
    await world.meter('stored', { type: 'WEIGHTED_SUM', field: 'n' });
    await world.meter('standing', { type: 'WEIGHTED_SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter('users', { type: 'COUNT_UNIQUE', field: 'user' });
    await world.meter('peak', { type: 'MAX', field: 'n' });
    await world.meter('daily', { type: 'MAX', field: 'n', bucket_size: 'DAY' });
    await world.meter('monthly', { type: 'SUM', field: 'n', bucket_size: 'MONTH' });
    await world.meter('calls', { type: 'SUM', field: 'n' });
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
  const changeLine = async (customer: string, fields: Record<string, unknown>) => {
    const { line_items } = await world.subscription(customer);
    const { id } = line_items.find((line) => line.end_date === null)!;
    const answer = await world.api.request('PUT', `/subscriptions/lineitems/${id}`, { body: fields });
    expect(answer.status, answer.text).to.equal(200);
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
    it('of 10 GB all month, $31 → $62 on the 16th, is 150 + 320', async () => {
      await begin('rising', usage('stored', '31'));
      await send('rising', 'stored', [['2026-01-01', { n: 10 }]]);
      world.at('2026-01-16');
      await changeLine('rising', { amount: '62' });
      expect(await charged('rising')).to.equal('470');
      expect(await invoiced('rising')).to.deep.equal(['150', '320']);
    });

    it('at equal prices of another plan, gone on the 20th, is 190', async () => {
      await begin('gone', usage('stored', '31'));
      await send('gone', 'stored', [
        ['2026-01-01', { n: 10 }],
        ['2026-01-20', { n: -10 }],
      ]);
      world.at('2026-01-16');
      await changePlan('gone', usage('stored', '31.00'));
      expect(await charged('gone')).to.equal('190');
      expect(await invoiced('gone')).to.deep.equal(['150', '40']);
    });

    it('that ends with the subscription on the 16th is 150', async () => {
      await begin('ended', usage('stored', '31'));
      await send('ended', 'stored', [['2026-01-01', { n: 10 }]]);
      world.at('2026-01-16');
      await world.waitForPipeline();
      await world.cancel('ended');
      const [last] = (await world.invoices('ended')).slice(-1);
      expect(last!.total).to.equal('150');
      expect(last!.line_items[0]!.quantity).to.equal('4.838709677419354839');
    });

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
    it('one user in both halves, $10 → $11 by a price that is taken over on the 16th, is 10.52', async () => {
      await begin('synced', usage('users', '10'));
      const { items } = await world.get(`/prices?plan_ids=${world.id('plan synced')}`);
      await send('synced', 'users', [
        ['2026-01-05', { user: 'a' }],
        ['2026-01-20', { user: 'a' }],
      ]);
      world.at('2026-01-16');
      const body = { amount: '11', effective_from: '2026-01-16T00:00:00Z' };
      const { status } = await world.api.request('PUT', `/prices/${items[0]!.id}`, { body });
      expect(status).to.equal(200);
      const { workflow_id } = await world.post(`/plans/${world.id('plan synced')}/sync/subscriptions`, {});
      const attempt = { number: 1, attempt: 1, is_last: true, timeout_ms: 60_000 };
      const { signal } = new AbortController();
      const place = { ...world.api.scope, workflow_id };
      await trySync(world.api.services, place as never, { ...attempt, signal, clock: () => world.now } as never);
      expect(await charged('synced')).to.equal('10.52');
      expect(await invoiced('synced')).to.deep.equal(['4.84', '5.68']);
    });

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

    it('10 a day, $1 → $2 at noon of the 16th, is 465; to an equal price 310', async () => {
      const days = Array.from({ length: 31 }, (_, day) => `2026-01-${String(day + 1).padStart(2, '0')}T06:00`);
      const events: Sent[] = [...days, '2026-01-16T18:00'].map((time) => [time, { n: 10 }]);
      for (const [customer, amount, total] of [
        ['doubled', '2', '465'],
        ['same', '1.0', '310'],
      ] as const) {
        await begin(customer, usage('daily', '1'));
        await send(customer, 'daily', events);
        world.at('2026-01-16T12:00:00Z');
        await changePlan(customer, usage('daily', amount));
        expect(await charged(customer)).to.equal(total);
      }
      expect(await invoiced('doubled')).to.deep.equal(['155', '310']);
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

    it('what an add-on measures from the 16th on is charged in full', async () => {
      world.at('2026-01-01');
      await world.plan('bare', [usage('calls', '1')]);
      await world.subscribe('bare', 'bare');
      const { id: addon_id } = await world.post('/addons', { name: 'Peaks', lookup_key: 'peaks', type: 'onetime' });
      const { meter: _meter, ...terms } = usage('peak', '10');
      const meter_id = world.id('meter peak');
      const price = { entity_type: 'ADDON', entity_id: addon_id, currency: 'usd', billing_period: 'MONTHLY' };
      await world.post('/prices', { ...terms, ...price, meter_id });
      world.at('2026-01-16');
      await world.post('/subscriptions/addon', { subscription_id: idOf('bare'), addon_id });
      await send('bare', 'peak', [
        ['2026-01-05', { n: 99 }],
        ['2026-01-20', { n: 10 }],
      ]);
      expect(await charged('bare')).to.equal('100');
    });
  });

  describe('what is added up', () => {
    const cents = (amount: string) => usage('monthly', amount);

    it('31,000 calls by MONTH at 1 ct, then 2 ct, are 310', async () => {
      await begin('months', cents('0.01'));
      await send('months', 'monthly', [['2026-01-10', { n: 31_000 }]]);
      world.at('2026-01-16');
      await changePlan('months', cents('0.02'));
      expect(await charged('months')).to.equal('310');
    });

    it('tiers go on over two changes to equal terms', async () => {
      const price = (unit: string) =>
        tiers('monthly', [
          [1000, unit],
          [null, '0.08'],
        ]);
      await begin('slabs', price('0.1'));
      await send('slabs', 'monthly', [
        ['2026-01-05', { n: 500 }],
        ['2026-01-15', { n: 400 }],
        ['2026-01-25', { n: 108.5 }],
      ]);
      world.at('2026-01-11');
      await changePlan('slabs', price('0.10'));
      world.at('2026-01-21');
      await changePlan('slabs', price('0.100'));
      expect(await charged('slabs')).to.equal('100.68');
      expect(await invoiced('slabs')).to.deep.equal(['50', '40', '10.68']);
    });

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

    it('10 at $1, of which 5 are taken back at $2, are 5', async () => {
      await begin('corrected', usage('calls', '1'));
      await send('corrected', 'calls', [
        ['2026-01-10', { n: 10 }],
        ['2026-01-20', { n: -5 }],
      ]);
      world.at('2026-01-16');
      await changePlan('corrected', usage('calls', '2'));
      expect(await charged('corrected')).to.equal('5');
      expect(await invoiced('corrected')).to.deep.equal(['10', '-5']);
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
