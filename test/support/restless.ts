/**
 * A world of many kinds of customers in which random actions happen while drafts are cached, for tests of that cache.
 * An impossible action is refused and changes nothing.
 */
import { expect } from 'chai';
import { purgeRecordChanges } from '../../storage/cache/change-feed.ts';
import type { UsageCache } from '../../storage/usage/usage-cache.ts';
import { until } from './until.ts';
import { fixed, tiers, usage, type World } from './world.ts';

type Fields = Record<string, unknown>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
export const WHO = [
  'plain',
  'tiers',
  'free',
  'bits',
  'quarter',
  'minimum',
  'coupon',
  'credits',
  'child',
  'leaver',
  'parent',
  'heir',
];

/** A random action: `who` and `which` select records, `day` is a day of the month, `n` a number. */
export type Deed = {
  readonly does: string;
  readonly who: string;
  readonly which: number;
  readonly day: number;
  readonly n: number;
};

export type Restless = Awaited<ReturnType<typeof startRestless>>;

export async function startRestless(world: World, memory: UsageCache) {
  const sent: string[] = [];
  let nth = 0;
  let month = 0;
  const services = () => world.api.services;
  const scope = () => world.api.scope;
  const has = (who: string) => world.has(`subscription ${who}`);
  /** Subscription of a customer; for a customer without one, which inherits its parent's, that of the customer `plain`. */
  const of = (who: string) => world.id(`subscription ${has(who) ? who : 'plain'}`);
  /** Start of the month that is invoiced next, or has just begun. */
  const start = () => Date.UTC(2031, month);
  const iso = (ms: number) => new Date(ms).toISOString();

  async function offered(): Promise<void> {
    for (const meter of ['calls', 'bytes']) await world.meter(meter);
    const both = [usage('calls', '1'), fixed('10', { invoice_cadence: 'ADVANCE' })];
    await world.plan('Pro', [...both, fixed('7')]);
    await world.plan('Other', [usage('calls', '2'), usage('bytes', '0.5'), fixed('20')]);
    const slabs: [number | null, string][] = [
      [10, '3'],
      [null, '1'],
    ];
    await world.plan('Tiers', [tiers('calls', slabs), usage('bytes', '0.3')]);
    for (const plan of ['Free', 'Bits']) await world.plan(plan, both);
    for (const meter of ['calls', 'bytes'])
      await world.post('/features', {
        name: meter,
        lookup_key: meter,
        type: 'metered',
        meter_id: world.id(`meter ${meter}`),
      });
    const granting = { feature_id: await feature('calls'), feature_type: 'metered', entity_type: 'PLAN' };
    await world.post('/entitlements', { ...granting, entity_id: world.id('plan Free'), usage_limit: 3 });
    const bits = { grant_measure: 'quantity', grant_quota: '2', grant_duration_value: 1, grant_duration_unit: 'week' };
    await world.post('/entitlements', { ...granting, entity_id: world.id('plan Bits'), ...bits });
    const { id } = await world.post('/addons', { name: 'Extra', lookup_key: 'extra', type: 'onetime' });
    const extra = {
      entity_type: 'ADDON',
      entity_id: id,
      currency: 'usd',
      billing_period: 'MONTHLY',
      price_unit_type: 'FIAT',
    };
    await world.post('/prices', { ...extra, ...fixed('6'), start_date: '2020-01-01T00:00:00Z' });
    await world.post('/entitlements', { ...granting, entity_type: 'ADDON', entity_id: id, usage_limit: 2 });
    for (const [coupon_code, terms] of Object.entries({ ONCE: { cadence: 'once' }, ALWAYS: { cadence: 'forever' } }))
      await world.post('/coupons', {
        name: coupon_code,
        coupon_code,
        type: 'percentage',
        percentage_off: '10',
        ...terms,
      });
    await world.post('/taxes/rates', { name: 'VAT', code: 'vat', percentage_value: '19' });
  }

  const feature = async (lookup_key: string): Promise<string> =>
    (await world.get('/features?limit=100')).items.find((one) => one.lookup_key === lookup_key)!.id;

  async function subscribed(): Promise<void> {
    await world.customer('heir');
    for (const [who, plan] of [
      ['plain', 'Pro'],
      ['tiers', 'Tiers'],
      ['free', 'Free'],
      ['bits', 'Bits'],
      ['credits', 'Pro'],
      ['child', 'Pro'],
      ['leaver', 'Pro'],
    ] as const)
      await world.subscribe(who, plan);
    await world.subscribe('quarter', 'Pro', {
      commitment_amount: '90',
      commitment_duration: 'QUARTERLY',
      enable_true_up: true,
    });
    await world.subscribe('minimum', 'Pro', { commitment_amount: '12', overage_factor: '1.5', enable_true_up: true });
    await world.subscribe('coupon', 'Pro', { subscription_coupons: [{ coupon_code: 'ONCE' }] });
    await world.subscribe('parent', 'Pro', {
      inheritance: { subscriptions_ids_for_grouped_invoicing: [of('child'), of('leaver')] },
    });
    await world.post('/wallets', { external_customer_id: 'credits', currency: 'usd' });
  }

  const table = (name: string) => services().postgres(name).where(scope());
  const modify = (who: string, body: Fields) => ask('POST', `/subscriptions/${of(who)}/modify/execute`, body);
  const ask = async <Method extends string, Path extends string>(method: Method, path: Path, body: Fields = {}) => {
    const answer = await world.api.request(method, path, method === 'GET' ? {} : { body });
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.be.below(500);
    // An impossible request is refused and changes nothing.
    return answer.body;
  };
  const pick = <One>(list: readonly One[], which: number): One | undefined => list[which % list.length];
  const corrected = async (event_id: string) => {
    const isOver = async () =>
      ((await ask('GET', `/events/${event_id}/corrections`)).items ?? []).every(({ state }) => state === 'applied');
    await until(`the correction of ${event_id} has its effect`, isOver);
  };
  const used = async (who: string, n: number, at: number, meter = 'calls') => {
    const event_id = `event-${++nth}`;
    await world.send([world.event(who, meter, { n, at: iso(at), event_id })]);
    if (at < start()) sent.push(event_id);
  };
  const line = async ({ who, which }: Deed, type?: string) => {
    const { line_items } = await world.get(`/subscriptions/${of(who)}`);
    return pick(
      line_items.filter((one) => !type || one.price_type === type),
      which,
    );
  };
  const final = async ({ who, which }: Deed) =>
    pick(
      (await ownInvoices(who)).filter((one) => one.invoice_status === 'FINALIZED'),
      which,
    );
  const ownInvoices = async (who: string) => (has(who) ? world.invoices(who) : []);
  const draft = async ({ who }: Deed) => (await ownInvoices(who)).find((one) => one.invoice_status === 'DRAFT');
  const member = (action: 'add' | 'remove', who: string) =>
    modify('parent', {
      type: 'grouped_invoicing',
      grouped_invoicing_params: { action, child_subscription_ids: [of(who)] },
    });

  const deeds: Record<string, (deed: Deed) => Promise<unknown>> = {
    'uses late': ({ who, day, n }) => used(who, n, start() - day * DAY_MS),
    'uses later': ({ who, day, n }) => used(who, n, start() - (31 + day) * DAY_MS),
    'uses another meter': ({ who, day, n }) => used(who, n, start() - day * DAY_MS, 'bytes'),
    'uses now': ({ who, n }) => used(who, n, start() + HOUR_MS),
    void: async ({ which }) => {
      const [event_id] = sent.splice(which % sent.length, 1);
      await ask('POST', `/events/${event_id}/void`, { reason: 'wrong' });
      await corrected(event_id!);
    },
    replace: async ({ who, which, day, n }) => {
      const event_id = pick(sent, which) ?? 'none';
      const { event_id: _own, ...event } = world.event(who, 'calls', { n, at: iso(start() - day * DAY_MS) });
      await ask('POST', `/events/${event_id}/replace`, { event, reason: 'wrong' });
      await corrected(event_id);
    },
    price: ({ who, n }) =>
      table('prices')
        .whereIn(
          'id',
          table('subscription_line_items')
            .where({ subscription_id: of(who) })
            .select('price_id'),
        )
        .where({ billing_model: 'FLAT_FEE' })
        .update({ amount: String(n) }),
    'what is free': async ({ which, n }) => {
      const { items } = await world.get('/entitlements?limit=100');
      const limited = items.filter((one) => one.usage_limit !== null);
      await ask('PUT', `/entitlements/${pick(limited, which)!.id}`, { usage_limit: n });
    },
    'a new entitlement': async ({ who, n }) =>
      ask('POST', '/entitlements', {
        entity_type: 'SUBSCRIPTION',
        entity_id: of(who),
        feature_id: await feature('calls'),
        feature_type: 'metered',
        usage_limit: n,
      }),
    'the meter of a feature': async ({ which }) =>
      table('features')
        .where({ lookup_key: 'bytes' })
        .update({ meter_id: world.id(`meter ${pick(['calls', 'bytes'], which)}`) }),
    'a coupon': ({ who, which }) =>
      modify(who, { type: 'coupon', coupon_params: { action: 'add', coupon_code: pick(['ONCE', 'ALWAYS'], which) } }),
    'no coupon': async ({ who, which }) => {
      const { items } = await world.get(`/coupons/associations?subscription_ids=${of(who)}`);
      const coupon_association_id = pick(items, which)?.id ?? 'none';
      await modify(who, { type: 'coupon', coupon_params: { action: 'remove', coupon_association_id } });
    },
    'the coupon changes': ({ n }) => table('coupons').update({ percentage_off: String(n) }),
    tax: ({ who, which }) =>
      ask('POST', '/taxes/associations', {
        tax_rate_code: 'vat',
        ...pick(
          [
            { entity_type: 'customer', entity_id: world.id(`customer ${who}`) },
            { entity_type: 'subscription', entity_id: of(who) },
          ],
          which,
        ),
      }),
    'an exempt customer': ({ who, which }) =>
      ask('PUT', `/customers/${world.id(`customer ${who}`)}`, {
        tax_exempt: pick(['none', 'exempt', 'reverse'], which),
      }),
    'another name in events': async ({ who }) => {
      const [{ external_id }] = await table('customers')
        .where({ id: world.id(`customer ${who}`) })
        .select('external_id');
      const other = external_id.endsWith('!') ? who : `${who}!`;
      await table('customers').where({ external_id }).update({ external_id: other });
    },
    'an add-on': async ({ who }) => {
      const { items } = await world.get('/addons');
      await modify(who, { type: 'addon', addon_params: { action: 'add', add: { addon_id: items[0]!.id } } });
    },
    'no add-on': async ({ who, which }) => {
      const held = await world.get(`/subscriptions/${of(who)}/addons/associations`);
      const addon_association_id = pick(held, which)?.id ?? 'none';
      await modify(who, { type: 'addon', addon_params: { action: 'remove', remove: { addon_association_id } } });
    },
    'another plan': ({ who, which }) =>
      ask('POST', `/subscriptions/${of(who)}/change/execute`, {
        target_plan_id: world.id(`plan ${pick(['Pro', 'Other', 'Free', 'Tiers'], which)}`),
        proration_behavior: 'create_prorations',
        billing_cadence: 'RECURRING',
        billing_period: 'MONTHLY',
        billing_cycle: 'anniversary',
      }),
    quantity: async (deed) => {
      const found = await line(deed, 'FIXED');
      const quantity_change_params = { line_items: [{ line_item_id: found?.id, quantity: String(deed.n) }] };
      await modify(deed.who, { type: 'quantity_change', quantity_change_params });
    },
    'the amount of a line': async (deed) =>
      ask('PUT', `/subscriptions/lineitems/${(await line(deed))?.id}`, { amount: String(deed.n) }),
    'a line ends': async (deed) =>
      ask('DELETE', `/subscriptions/lineitems/${(await line(deed))?.id}`, {
        effective_from: iso(start() + deed.day * HOUR_MS),
      }),
    'a commitment': ({ n }) =>
      table('subscriptions')
        .where({ id: of('minimum') })
        .update({ commitment_amount: String(10 + n) }),
    credits: async ({ n }) => {
      const [{ id }] = await table('wallets').limit(1);
      await ask('POST', `/wallets/${id}/top-up`, {
        credits_to_add: String(n),
        transaction_reason: 'FREE_CREDIT_GRANT',
      });
    },
    'a grant of credits': ({ who, n }) =>
      ask('POST', '/creditgrants', {
        name: 'Gift',
        scope: 'SUBSCRIPTION',
        subscription_id: of(who),
        credits: String(n),
        cadence: 'ONETIME',
        start_date: iso(start()),
      }),
    'joins the group': ({ which }) => member('add', pick(['child', 'leaver', 'plain'], which)!),
    'leaves the group': ({ which }) => member('remove', pick(['child', 'leaver', 'plain'], which)!),
    'an heir': ({ which }) => {
      const action = pick(['add', 'remove'], which);
      const key =
        action === 'add' ? 'external_customer_ids_to_inherit_subscription' : 'external_customer_ids_to_remove';
      return modify('plain', { type: 'inheritance', inheritance_params: { action, [key]: ['heir'] } });
    },
    'an invoice is void': async (deed) => ask('POST', `/invoices/${(await final(deed))?.id}/void`),
    'an invoice is billed again': async (deed) => ask('POST', `/invoices/${(await final(deed))?.id}/recalculate`),
    'a credit note': async (deed) => {
      const invoice = await final(deed);
      const line_items = [{ invoice_line_item_id: pick(invoice?.line_items ?? [], deed.which)?.id, amount: '1' }];
      await ask('POST', '/creditnotes', { invoice_id: invoice?.id, reason: 'SERVICE_ISSUE', line_items });
    },
    'a draft is computed': async (deed) => ask('POST', `/invoices/${(await draft(deed))?.id}/compute?sync=true`),
    'a draft is made final': async (deed) => ask('POST', `/invoices/${(await draft(deed))?.id}/finalize`),
    'settings of invoices': ({ n }) =>
      ask('PUT', '/settings/invoice_config', { value: { due_date_days: n, invoice_number_prefix: `N${n}` } }),
    'the end of the period': ({ who }) =>
      ask('POST', `/subscriptions/${of(who)}/cancel`, { cancellation_type: 'end_of_period' }),
    'changes are forgotten': async () => {
      await purgeRecordChanges(services().postgres);
      await purgeRecordChanges(services().postgres);
    },
    'usage is forgotten': async () => memory.running.clear(),
  };

  await offered();
  await subscribed();
  return {
    deeds: Object.keys(deeds),
    /** Uses units on this day of the month. */
    use: (who: string, n: number, day: number) => used(who, n, start() + day * DAY_MS),
    /** Moves to the next month; returns the instant at which it begins. */
    nextMonth: () => Date.UTC(2031, ++month),
    does: (deed: Deed) => deeds[deed.does]!(deed),
  };
}
