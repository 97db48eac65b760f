/** The subscription pages of the console: the request of the form, the time line, and the lines of previews. */
import { expect } from 'chai';
import { ApiError } from '../../console/client/client.ts';
import { findUnshownError } from '../../console/components/field-errors.ts';
import type { InvoiceRecord } from '../../console/pages/invoices/invoice.ts';
import { createDraft } from '../../console/pages/plans/price-draft.ts';
import {
  findNextInvoiceAt,
  listCurrentLines,
  numberLines,
  type ScheduleRecord,
  type SubscribedLine,
  type SubscriptionRecord,
} from '../../console/pages/subscriptions/subscription.ts';
import {
  addPhase,
  chooseCurrency,
  EMPTY_ADDON,
  EMPTY_DRAFT,
  EMPTY_PHASE,
  followPlan,
  listCurrencies,
  listPhaseStarts,
  NO_COMMITMENT,
  NO_ENTITLEMENT_OVERRIDE,
  NO_OVERRIDE,
} from '../../console/pages/subscriptions/subscription-draft.ts';
import { buildRequest, findMissing } from '../../console/pages/subscriptions/subscription-request.ts';
import { buildTimeLine, type TimeLineEntry } from '../../console/pages/subscriptions/time-line.ts';

const START = '2026-10-01T00:00:00Z';
const CHANGE = '2026-10-15T12:00:00Z';
const PERIOD_END = '2026-12-01T00:00:00Z';

const buildLine = (fields: Partial<SubscribedLine>): SubscribedLine =>
  ({
    id: 'subs_line_1',
    price_id: 'price_seats',
    price_type: 'FIXED',
    entity_type: 'plan',
    entity_id: 'plan_team',
    plan_display_name: 'Team',
    display_name: 'Seats',
    quantity: '1',
    start_date: START,
    end_date: null,
    ...fields,
  }) as SubscribedLine;

const buildSubscription = (fields: Partial<SubscriptionRecord> = {}): SubscriptionRecord =>
  ({
    id: 'subs_1',
    plan_id: 'plan_team',
    subscription_status: 'active',
    currency: 'usd',
    start_date: START,
    end_date: null,
    trial_end: null,
    cancelled_at: null,
    current_period_end: PERIOD_END,
    phases: [],
    line_items: [buildLine({})],
    ...fields,
  }) as SubscriptionRecord;

const build = (input: Partial<Parameters<typeof buildTimeLine>[0]> = {}) =>
  buildTimeLine({
    subscription: buildSubscription(),
    schedules: [],
    invoices: [],
    changes: [],
    next: null,
    ...input,
  });
const kinds = (entries: readonly TimeLineEntry[]) => entries.map(({ kind }) => kind);

const GRADUATED = {
  ...createDraft('usd'),
  tiers: [
    { up_to: '1000', unit_amount: '0.03', flat_amount: '' },
    { up_to: '', unit_amount: '0.0123', flat_amount: '5' },
  ],
};
const ENDING = [
  { end_day: '2027-12-01', anchor_day: '2026-12-15', billing_period_count: '3' },
  { end_date: '2027-12-01T00:00:00Z', billing_anchor: '2026-12-15T00:00:00Z', billing_period_count: 3 },
] as const;

describe('the request of a new subscription', () => {
  const chosen = { ...EMPTY_DRAFT, customer_id: 'cust_1', plan_id: 'plan_1', currency: 'usd' };
  const required = {
    customer_id: 'cust_1',
    plan_id: 'plan_1',
    currency: 'usd',
    billing_period: 'MONTHLY',
    billing_cycle: 'anniversary',
  };

  for (const field of ['customer_id', 'plan_id', 'currency'] as const)
    it(`is incomplete without ${field}`, () => {
      expect(buildRequest({ ...chosen, [field]: '' })).to.equal(null);
    });

  for (const [name, fields, expected] of [
    ['leaves out what the form leaves empty', {}, {}],
    ['starts a day at midnight UTC', { start_day: '2026-12-01' }, { start_date: '2026-12-01T00:00:00Z' }],
    ['has no trial for 0 days', { trial_days: '0' }, { trial_period_days: 0 }],
    ['redeems coupons', { coupons: ['coupon_1', 'coupon_2'] }, { coupons: ['coupon_1', 'coupon_2'] }],
    [
      'sends quantities and amounts as they were typed',
      {
        overrides: {
          price_a: { ...NO_OVERRIDE, quantity: '3.5' },
          price_b: { ...NO_OVERRIDE, amount: '0.00001' },
        },
      },
      {
        override_line_items: [
          { price_id: 'price_a', quantity: '3.5' },
          { price_id: 'price_b', amount: '0.00001' },
        ],
      },
    ],
    ['leaves out an emptied override', { overrides: { price_a: NO_OVERRIDE } }, {}],
    [
      'sends tiers of its own, and nothing that they do not have',
      { overrides: { price_a: { ...NO_OVERRIDE, charge: GRADUATED } } },
      {
        override_line_items: [
          {
            price_id: 'price_a',
            billing_model: 'TIERED',
            tier_mode: 'SLAB',
            tiers: [
              { up_to: '1000', unit_amount: '0.03', flat_amount: null },
              { up_to: null, unit_amount: '0.0123', flat_amount: '5' },
            ],
          },
        ],
      },
    ],
    [
      'begins each phase where the one before it ends',
      {
        start_day: '2026-03-01',
        phases: [
          { ...EMPTY_PHASE, end_day: '2026-03-16', overrides: { price_a: { ...NO_OVERRIDE, amount: '310' } } },
          { ...EMPTY_PHASE, coupons: ['coupon_1'] },
        ],
      },
      {
        start_date: '2026-03-01T00:00:00Z',
        phases: [
          {
            start_date: '2026-03-01T00:00:00Z',
            end_date: '2026-03-16T00:00:00Z',
            override_line_items: [{ price_id: 'price_a', amount: '310' }],
          },
          { start_date: '2026-03-16T00:00:00Z', coupons: ['coupon_1'] },
        ],
      },
    ],
    [
      'attaches add-ons',
      { addons: [{ ...EMPTY_ADDON, addon_id: 'addon_1', quantity: '2' }] },
      { addons: [{ addon_id: 'addon_1', quantity: 2, cadence: 'recurring' }] },
    ],
    [
      'replaces values of entitlements, each as its type has it, and leaves out an emptied one',
      {
        entitlements: {
          ent_calls: { ...NO_ENTITLEMENT_OVERRIDE, usage_limit: '5000' },
          ent_sso: { ...NO_ENTITLEMENT_OVERRIDE, is_enabled: 'false' },
          ent_support: { ...NO_ENTITLEMENT_OVERRIDE, static_value: 'Gold' },
          ent_rest: NO_ENTITLEMENT_OVERRIDE,
        },
      },
      {
        override_entitlements: [
          { entitlement_id: 'ent_calls', usage_limit: '5000' },
          { entitlement_id: 'ent_sso', is_enabled: false },
          { entitlement_id: 'ent_support', static_value: 'Gold' },
        ],
      },
    ],
    [
      'replaces the tax rates of the customer, in the currency of the subscription',
      { tax_rate_codes: ['vat_19', 'city'] },
      {
        tax_rate_overrides: [
          { tax_rate_code: 'vat_19', currency: 'usd' },
          { tax_rate_code: 'city', currency: 'usd' },
        ],
      },
    ],
    [
      'commits units of one price, and leaves out a price without a commitment',
      {
        line_commitments: {
          price_a: { ...NO_COMMITMENT, unit: 'quantity', value: '1000', overage_factor: '1.5' },
          price_b: NO_COMMITMENT,
        },
      },
      {
        line_item_commitments: {
          price_a: { commitment_quantity: '1000', overage_factor: '1.5', enable_true_up: false },
        },
      },
    ],
    ['ends, and anchors its periods', ...ENDING],
    [
      'has no anchor with the calendar',
      { anchor_day: '2026-12-15', billing_cycle: 'calendar' },
      { billing_cycle: 'calendar' },
    ],
    [
      'is sent and due later',
      { collection_method: 'send_invoice', payment_terms: '30 NET', auto_invoice_threshold: '100' },
      { collection_method: 'send_invoice', payment_terms: '30 NET', auto_invoice_threshold: '100' },
    ],
    [
      'is paid by another customer',
      { payer: 'other', payer_external_id: 'globex' },
      { inheritance: { invoicing_customer_external_id: 'globex' } },
    ],
    [
      'is shared by several customers',
      { payer: 'shared', sharing_external_ids: ['globex', 'initech'] },
      { inheritance: { external_customer_ids_to_inherit_subscription: ['globex', 'initech'] } },
    ],
    ['leaves out the factor without a commitment', { overage_factor: '2', enable_true_up: true }, {}],
    [
      'commits an amount',
      { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true },
      { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true },
    ],
    ['creates a draft', { is_draft: true }, { subscription_status: 'draft' }],
  ] as const)
    it(name, () => {
      expect(buildRequest({ ...chosen, ...fields })).to.deep.equal({ ...required, ...expected });
    });

  it('follows the plan in period and currency, and drops overrides of other prices', () => {
    const prices = [
      { currency: 'eur', billing_period: 'ONETIME' },
      { currency: 'usd', billing_period: 'ANNUAL' },
    ];
    const draft = { ...chosen, currency: 'gbp', overrides: { price_a: { ...NO_OVERRIDE, quantity: '1' } } };
    const { currency, billing_period, overrides, plan_id } = followPlan(draft, 'plan_2', { id: 'plan_2', prices });
    expect({ currency, billing_period, overrides, plan_id }).to.deep.equal({
      currency: 'eur',
      billing_period: 'ANNUAL',
      overrides: {},
      plan_id: 'plan_2',
    });
    expect(followPlan(chosen, 'plan_2', { id: 'plan_2', prices }).currency).to.equal('usd');
    expect(followPlan(chosen, 'plan_3', { id: 'plan_3', prices: null }).currency).to.equal('');
    const once = [{ currency: 'usd', billing_period: 'ONETIME' }];
    expect(followPlan(chosen, 'plan_4', { id: 'plan_4', prices: once }).billing_period).to.equal('MONTHLY');
  });

  it('changes nothing until the prices of the plan are known, and forgets a plan that is no longer chosen', () => {
    expect(followPlan(chosen, 'plan_2', undefined)).to.equal(chosen);
    expect(followPlan(chosen, 'plan_2', { id: 'plan_1', prices: [] })).to.equal(chosen);
    expect(followPlan(chosen, 'plan_1', { id: 'plan_1', prices: [] })).to.equal(chosen);
    expect(followPlan(chosen, undefined, undefined).plan_id).to.equal('');
    expect(followPlan(EMPTY_DRAFT, undefined, undefined)).to.equal(EMPTY_DRAFT);
  });

  it('names the term that is missing', () => {
    const open = { ...NO_OVERRIDE, charge: createDraft('usd') };
    for (const [fields, expected] of [
      [{ customer_id: '' }, 'record'],
      [{ overrides: { price_a: open } }, 'charge'],
      [{ start_day: '2026-03-01', phases: [{ ...EMPTY_PHASE, overrides: { price_a: open } }] }, 'charge'],
      [{ phases: [EMPTY_PHASE] }, 'start'],
      [{ start_day: '2026-03-01', phases: [EMPTY_PHASE, EMPTY_PHASE] }, 'phase_end'],
      [{ addons: [EMPTY_ADDON] }, 'addon'],
      [{ payer: 'other' }, 'payer'],
      [{ payer: 'shared' }, 'sharing'],
      [{ start_day: '2026-03-01', phases: [EMPTY_PHASE] }, null],
    ] as const) {
      const draft = { ...chosen, ...fields };
      expect(findMissing(draft), JSON.stringify(fields)).to.equal(expected);
      expect(buildRequest(draft) === null).to.equal(expected !== null);
    }
  });

  it('gives phases a first day, which a chosen start replaces', () => {
    expect(addPhase(chosen, '2026-03-05').start_day).to.equal('2026-03-05');
    const draft = addPhase({ ...chosen, start_day: '2026-03-01' }, '2026-03-05');
    const phases = [{ ...EMPTY_PHASE, end_day: '2026-04-01' }, ...draft.phases];
    expect(listPhaseStarts({ ...draft, phases })).to.deep.equal(['2026-03-01', '2026-04-01']);
  });

  it('drops the terms of prices with their currency', () => {
    const overrides = { price_a: { ...NO_OVERRIDE, amount: '1' } };
    const line_commitments = { price_a: { ...NO_COMMITMENT, value: '1' } };
    const draft = { ...chosen, overrides, line_commitments, phases: [{ ...EMPTY_PHASE, overrides }] };
    expect(chooseCurrency(draft, 'usd')).to.equal(draft);
    expect(chooseCurrency(draft, 'eur')).to.deep.equal({ ...chosen, currency: 'eur', phases: [EMPTY_PHASE] });
  });

  it('drops the entitlements of a plan with it, and retains the tax rates', () => {
    const entitlements = { ent_calls: { ...NO_ENTITLEMENT_OVERRIDE, usage_limit: '5' } };
    const draft = { ...chosen, entitlements, tax_rate_codes: ['vat'] };
    const followed = followPlan(draft, 'plan_2', { id: 'plan_2', prices: [] });
    expect([followed.plan_id, followed.entitlements, followed.tax_rate_codes]).to.deep.equal(['plan_2', {}, ['vat']]);
    expect(followPlan(draft, undefined, undefined).entitlements).to.deep.equal({});
  });

  it('shows an error above its inputs unless one of them shows it', () => {
    const refuse = (field: string) =>
      new ApiError(400, { code: 'validation_error', message: `${field}: is wrong`, details: { field } });
    const find = (field: string) => {
      const shown = findUnshownError(refuse(field), 'phases[1]', /^\.end_date$/);
      return shown && (shown.props as { lang: string; children: string });
    };
    expect(find('phases[1].end_date')).to.equal(undefined);
    expect(find('phases[1].metadata.name')).to.deep.equal({
      lang: 'en',
      children: 'phases[1].metadata.name: is wrong',
    });
    expect(find('phases[1]')?.children).to.equal('phases[1]: is wrong');
    expect(find('phases[10].start_date')).to.equal(undefined);
    expect(find('currency')).to.equal(undefined);
    expect(findUnshownError(new Error('offline'), 'phases[1]', /^$/)).to.equal(undefined);
  });

  it('lists each currency once', () => {
    const prices = ['MONTHLY', 'ANNUAL'].map((billing_period) => ({ currency: 'usd', billing_period }));
    expect(listCurrencies(prices)).to.deep.equal(['usd']);
  });
});

describe('the time line of a subscription', () => {
  it('has the schedule above the past, the latest first', () => {
    const schedule = {
      id: 'sched_1',
      schedule_type: 'plan_change',
      status: 'pending',
      scheduled_at: PERIOD_END,
      configuration: { target_plan_id: 'plan_business' },
    } as unknown as ScheduleRecord;
    const invoice = { id: 'inv_1', created_at: CHANGE, finalized_at: '2026-11-01T00:04:00Z' } as InvoiceRecord;
    const entries = build({
      subscription: buildSubscription({ trial_end: '2026-10-08T00:00:00Z' }),
      schedules: [schedule],
      invoices: [invoice],
      changes: [{ id: 'audit_1', action: 'created', created_at: '2026-09-30T09:00:00Z', before: null, after: {} }],
      next: { total: '40', currency: 'usd' },
    });
    expect(kinds(entries)).to.deep.equal(['next_invoice', 'scheduled', 'invoice', 'trial_ends', 'started', 'created']);
    expect(entries[0]).to.include({ total: '40', currency: 'usd' });
    expect(entries[1]).to.include({ target_plan_id: 'plan_business' });
    expect(entries[2]).to.include({ at: '2026-11-01T00:04:00Z' });
  });

  it('shows an undone schedule at the time of its undoing, and leaves an executed one to its effects', () => {
    const undone = { id: 'sched_1', schedule_type: 'cancellation', status: 'cancelled', cancelled_at: CHANGE };
    const executed = { id: 'sched_2', schedule_type: 'plan_change', status: 'executed', scheduled_at: CHANGE };
    const entries = build({ schedules: [undone, executed] as unknown as ScheduleRecord[] });
    expect(kinds(entries)).to.deep.equal(['next_invoice', 'undone', 'started']);
    expect(entries[1]).to.include({ at: CHANGE, schedule_type: 'cancellation' });
  });

  it('shows two lines of one price as a change of the quantity', () => {
    const line_items = [
      buildLine({ end_date: CHANGE }),
      buildLine({ id: 'subs_line_2', quantity: '3', start_date: CHANGE }),
    ];
    const entry = build({ subscription: buildSubscription({ line_items }) }).find(({ kind }) => kind === 'line');
    expect(entry).to.include({ at: CHANGE, line: 'Seats', before: '1', after: '3' });
  });

  it('shows lines of another plan as one change of the plan', () => {
    const begun = { start_date: CHANGE, entity_id: 'plan_business', plan_display_name: 'Business' };
    const line_items = [
      buildLine({ end_date: CHANGE }),
      buildLine({ id: 'subs_line_2', price_id: 'price_business', ...begun }),
      buildLine({ id: 'subs_line_3', price_id: 'price_tokens', price_type: 'USAGE', ...begun }),
    ];
    const entries = build({ subscription: buildSubscription({ line_items, plan_id: 'plan_business' }) });
    expect(kinds(entries)).to.deep.equal(['next_invoice', 'plan_changed', 'started']);
    expect(entries[1]).to.include({ plan_name: 'Business' });
  });

  it('shows lines that were added or ended, a usage line without a quantity', () => {
    const line_items = [
      buildLine({ end_date: CHANGE }),
      buildLine({
        id: 'subs_line_2',
        price_id: 'price_tokens',
        price_type: 'USAGE',
        quantity: '0',
        start_date: '2026-10-20T00:00:00Z',
      }),
    ];
    const entries = build({ subscription: buildSubscription({ line_items }) }).filter(({ kind }) => kind === 'line');
    expect(entries.map((entry) => 'before' in entry && [entry.before, entry.after])).to.deep.equal([
      [null, ''],
      ['1', null],
    ]);
  });

  it('leaves out logged changes that other entries explain', () => {
    const change = (id: string, before: object, after: object) => ({
      id,
      action: 'updated',
      created_at: CHANGE,
      actor: { id: 'user_1', name: null, email: 'ada@example.com' },
      before: { ...before },
      after: { ...after },
    });
    const entries = build({
      changes: [
        change('audit_1', { version: 1, current_period_end: START }, { version: 2, current_period_end: PERIOD_END }),
        change('audit_2', { version: 2, payment_terms: null }, { version: 3, payment_terms: '30 NET' }),
      ],
    });
    const updated = entries.filter(({ kind }) => kind === 'updated');
    expect(updated).to.have.length(1);
    expect(updated[0]).to.deep.include({ actor: 'ada@example.com', fields: ['payment_terms'] });
  });

  it('ends a cancelled subscription once, without a next invoice', () => {
    const subscription = buildSubscription({
      subscription_status: 'cancelled',
      cancelled_at: CHANGE,
      end_date: CHANGE,
    });
    expect(kinds(build({ subscription }))).to.deep.equal(['cancelled', 'started']);
  });
});

describe('lines of subscriptions and previews', () => {
  it('numbers the lines of a preview, and retains ids', () => {
    const invoice = { line_items: [{ id: '' }, { id: 'inv_line_1' }, { id: '' }] } as InvoiceRecord;
    expect(numberLines(invoice).line_items?.map(({ id }) => id)).to.deep.equal(['1', 'inv_line_1', '3']);
  });

  it('lists lines that have not ended', () => {
    const lines = [buildLine({ end_date: CHANGE }), buildLine({ id: 'subs_line_2' })];
    expect(listCurrentLines(lines, Date.parse(CHANGE)).map(({ id }) => id)).to.deep.equal(['subs_line_2']);
    expect(listCurrentLines(lines, Date.parse(START))).to.have.length(2);
  });

  for (const [subscription_status, at] of [
    ['active', PERIOD_END],
    ['trialing', PERIOD_END],
    ['draft', null],
    ['cancelled', null],
  ] as const)
    it(`has ${at ?? 'no'} next invoice while it is ${subscription_status}`, () => {
      expect(findNextInvoiceAt({ subscription_status, current_period_end: PERIOD_END })).to.equal(at);
    });
});
