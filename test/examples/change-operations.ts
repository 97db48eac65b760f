/** The operations of the areas proration.*, plan_change.* and subscription.cancel: on core, and through the real interface. */
import { z } from 'zod';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import type { Period } from '../../core/foundation/time/period.ts';
import { cappedCredit, planChangeLines } from '../../core/rating/change.ts';
import { type BilledSubscription } from '../../core/rating/charges.ts';
import type { PricedItem } from '../../core/rating/line-amount.ts';
import { deriveChangeType } from '../../core/subscriptions/plan-change.ts';
import { planQuantityChanges } from '../../core/subscriptions/quantity.ts';
import type { SubscriptionLineItem } from '../../core/subscriptions/record.ts';
import { toBilledLine } from '../support/billed-lines.ts';
import { fixed, usage, type World } from '../support/world.ts';
import type { Result } from './compare.ts';
import { exampleWorld, freshName } from './example-world.ts';
import { instant } from './time-operations.ts';

const DAY_MS = 86_400_000;
const decimal = z.union([z.string(), z.number()]).transform((given) => new Decimal(given));
const periodShape = {
  currency: z.string().default('usd'),
  period_start: instant,
  period_end: instant,
  proration_date: instant,
  invoice_cadence: z.enum(['ADVANCE', 'ARREAR']),
};
const calculationShape = z.object({
  ...periodShape,
  action: z.string(),
  old_unit_amount: decimal.default(new Decimal(0)),
  old_quantity: decimal.default(new Decimal(0)),
  new_unit_amount: decimal.default(new Decimal(0)),
  new_quantity: decimal.default(new Decimal(0)),
  billed_amount: decimal.optional(),
  previous_credits: decimal.default(new Decimal(0)),
});
type Calculation = z.output<typeof calculationShape>;
type Terms = { unit_amount: Decimal; quantity: Decimal };

/** A credit is below 0 in a change of a line, and above it where a line is taken away. */
export function calculateProration(given: Result): Result {
  const asked = calculationShape.parse(given);
  if (asked.action === 'quantity_change' && changesNothing(asked)) return { net: '0', changed_line_items: 0 };
  const lines = linesOf(asked);
  const credit = sumDecimals(lines.filter(({ amount }) => amount.isNegative()).map(({ amount }) => amount));
  const charge = sumDecimals(lines.filter(({ amount }) => !amount.isNegative()).map(({ amount }) => amount));
  const net = credit.plus(charge);
  return {
    credit: (asked.action === 'remove_item' ? credit.negated() : credit).toFixed(),
    charge: charge.toFixed(),
    net: net.toFixed(),
    settlement: net.isZero() ? null : net.isNegative() ? 'wallet_credit' : 'invoice',
  };
}

function linesOf(asked: Calculation) {
  const { period_start, period_end, proration_date, currency } = asked;
  const before = { unit_amount: asked.old_unit_amount, quantity: asked.old_quantity };
  const after = { unit_amount: asked.new_unit_amount, quantity: asked.new_quantity };
  const ends = asked.action !== 'add_item';
  // Where nothing else is said, all of it was billed.
  const amount = asked.billed_amount ?? before.unit_amount.times(before.quantity);
  const service = { start: period_start, end: period_end };
  const amounts = [amount, asked.previous_credits.negated()].filter((one) => !one.isZero());
  const billed_lines = amounts.map((one) => toBilledLine({ service, amount: one }));
  const item = itemOf('before', { ...asked, ...before, start: period_start });
  return planChangeLines({
    subscription: subscriptionFrom(period_start),
    current: service,
    currency,
    endings: ends ? [{ item, at: proration_date, billed_lines }] : [],
    beginnings: asked.action === 'remove_item' ? [] : [itemOf('after', { ...asked, ...after, start: proration_date })],
  });
}

function changesNothing(asked: Calculation): boolean {
  const current = { start: asked.period_start, end: asked.period_end };
  const { old_quantity, new_quantity, proration_date } = asked;
  return quantityChanges({ current, old_quantity, new_quantity, effective: proration_date }).length === 0;
}

function subscriptionFrom(start_ms: number): BilledSubscription {
  return {
    start_ms,
    end_ms: null,
    billing_anchor_ms: start_ms,
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    timezone: 'UTC',
  };
}

function itemOf(
  id: string,
  { unit_amount, quantity, currency, start, invoice_cadence }: Terms & Calculation & { start: number },
): PricedItem {
  return {
    id,
    price_type: 'FIXED',
    invoice_cadence,
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    start_ms: start,
    end_ms: null,
    reset_usage: null,
    price: { billing_model: 'FLAT_FEE', currency, amount: unit_amount.toFixed() },
    quantity,
    display_name: id,
    meter_id: null,
  };
}

export function capCredit(given: Result): Result {
  const { potential_credit, amount_paid, previous_credits } = z
    .object({ potential_credit: decimal, amount_paid: decimal, previous_credits: decimal })
    .parse(given);
  return { credit: cappedCredit(potential_credit, { amount: amount_paid, credited: previous_credits }).toFixed() };
}

/** Two requests, each with an invoice of its own. */
export function applyTwoAdds(given: Result): Result {
  const { new_unit_amounts } = z.object({ new_unit_amounts: z.array(z.string()) }).parse(given);
  const totals = new_unit_amounts.map((new_unit_amount) => {
    const asked = calculationShape.parse({ ...given, action: 'add_item', new_unit_amount, new_quantity: '1' });
    return sumDecimals(linesOf(asked).map(({ amount }) => amount));
  });
  return { total_charged: sumDecimals(totals).toFixed(), invoice_count: totals.filter((total) => total.gt(0)).length };
}

const modificationShape = z.object({
  type: z.literal('quantity_change'),
  current_period_start: instant,
  current_period_end: instant,
  effective_date: instant,
});

export function modifyQuantity(given: Result): Result {
  const { current_period_start: start, current_period_end: end, effective_date } = modificationShape.parse(given);
  const quantities = { old_quantity: new Decimal(1), new_quantity: new Decimal(2) };
  const changes = quantityChanges({ current: { start, end }, ...quantities, effective: effective_date });
  return { accepted: changes.length === 1 };
}

type Quantities = { current: Period; old_quantity: Decimal; new_quantity: Decimal; effective: number };

function quantityChanges({ current, old_quantity, new_quantity, effective }: Quantities) {
  const record = {
    id: 'subs_line_before',
    price_id: 'price_x',
    price_type: 'FIXED',
    billing_period: 'MONTHLY',
    quantity: old_quantity.toFixed(),
    start_date: formatMs(current.start),
    end_date: null,
  } as SubscriptionLineItem;
  const stated = { id: record.id, quantity: new_quantity.toFixed(), effective_date: formatMs(effective) };
  const items = [{ line_item: record, price: { min_quantity: null } }];
  return planQuantityChanges({ line_items: [stated] }, { items, current, now: effective });
}

const priced = z.array(z.object({ unit_amount: decimal, quantity: decimal }));

export function classifyPlanChange(given: Result): Result {
  const { closing, opening } = z.object({ closing: priced, opening: priced }).parse(given);
  const asked = { currency: 'usd', invoice_cadence: 'ADVANCE', start: 0 } as Calculation & { start: number };
  const items = (terms: Terms[]) => terms.map((each, index) => itemOf(`line ${index}`, { ...asked, ...each }));
  return { change_type: deriveChangeType(items(closing), items(opening)) };
}

const START = '2026-04-01T00:00:00Z';
const planChangeShape = z.union([
  z.object({
    old_amount: z.string(),
    new_amount: z.string(),
    elapsed_days: z.coerce.number(),
    period_days: z.coerce.number().refine((days) => days === 30, 'April has 30 days'),
    mode: z.enum(['keep_anchor', 'new_period_starts_now']),
    proration_behavior: z.string(),
  }),
  z.object({ condition: z.enum(['cancelled', 'paused', 'hierarchy_member', 'same_plan', 'pending_cancellation']) }),
]);

export async function changePlan(given: Result): Promise<Result> {
  const asked = planChangeShape.parse(given);
  if ('condition' in asked) return refusedPlanChange(asked.condition);
  const { old_amount, new_amount, elapsed_days, mode, proration_behavior } = asked;
  // With another length of its periods a new one begins.
  const billing_period_count = mode === 'keep_anchor' ? 1 : 2;
  const { world, customer, before } = await subscribed(old_amount);
  const target = await planOf(world, new_amount, billing_period_count);
  world.at(formatMs(Date.parse(START) + elapsed_days * DAY_MS));
  const path = `/subscriptions/${before.id}/change/execute` as const;
  const changed = await world.post(path, { ...requestFor(target), billing_period_count, proration_behavior });
  const after = changed.new_subscription;
  const [wallet] = await world.get(`/customers/${before.customer_id}/wallets`);
  const { proration_applied, invoice } = changed;
  return {
    customer,
    credit: proration_applied?.credit_amount ?? '0',
    opening_invoice_total: invoice?.total,
    net_invoice: invoice?.total,
    invoices_created: invoice ? 1 : 0,
    wallet_credit: wallet?.balance ?? '0',
    change_type: changed.change_type,
    period_unchanged: after.current_period_end === before.current_period_end,
    anchor_unchanged: after.billing_anchor === before.billing_anchor,
  };
}

async function refusedPlanChange(condition: string): Promise<Result> {
  const { world, before, plan_id } = await subscribed('20');
  const target = condition === 'same_plan' ? plan_id : await planOf(world, '50', 1);
  if (condition === 'cancelled')
    await world.post(`/subscriptions/${before.id}/cancel`, { cancellation_type: 'immediate' });
  if (condition === 'pending_cancellation')
    await world.post(`/subscriptions/${before.id}/cancel`, { cancellation_type: 'end_of_period' });
  // What no request can make of it.
  const made = {
    paused: { subscription_status: 'paused' },
    hierarchy_member: { subscription_type: 'grouped_invoicing' },
  };
  const changes = made[condition as keyof typeof made];
  if (changes) await world.api.services.postgres('subscriptions').where('id', before.id).update(changes);
  const written = await rowsOf(world, before.id);
  const body = requestFor(target);
  const answer = await world.api.request('POST', `/subscriptions/${before.id}/change/execute`, { body });
  return { error_code: answer.body.code, writes: (await rowsOf(world, before.id)) - written };
}

async function rowsOf(world: World, subscription_id: string): Promise<number> {
  const { postgres } = world.api.services;
  const counts = await Promise.all(
    ['invoices', 'subscription_line_items', 'subscription_schedules'].map((table) =>
      postgres(table).where({ subscription_id }).count(),
    ),
  );
  return counts.reduce((sum, [row]) => sum + Number(row!.count), 0);
}

function requestFor(target_plan_id: string) {
  const periods = { billing_cadence: 'RECURRING', billing_period: 'MONTHLY', billing_cycle: 'anniversary' };
  return { target_plan_id, proration_behavior: 'create_prorations', ...periods };
}

async function planOf(world: World, amount: string, billing_period_count: number): Promise<string> {
  const name = freshName();
  const plan = await world.plan(name, [fixed(amount, { invoice_cadence: 'ADVANCE', billing_period_count })]);
  return plan.id;
}

async function subscribed(advance: string, fields: Record<string, unknown> = {}, usagePrice?: string) {
  const world = await exampleWorld();
  world.at(START);
  const customer = freshName();
  if (usagePrice && !world.has('meter calls')) await world.meter('calls');
  const prices = [fixed(advance, { invoice_cadence: 'ADVANCE' }), ...(usagePrice ? [usage('calls', usagePrice)] : [])];
  const plan = await world.plan(customer, prices);
  const before = await world.subscribe(customer, customer, { start_date: START, ...fields });
  // The examples are about customers who have paid: of others a credit lowers what they owe.
  await world.pay(customer);
  return { world, customer, before, plan_id: plan.id as string };
}

const cancellationShape = z.object({
  cancellation_type: z.string(),
  cancel_at: z.string().optional(),
  proration_behavior: z.string().optional(),
  subscription_status: z.enum(['active', 'cancelled', 'draft']).default('active'),
  subscription_type: z.enum(['standalone', 'inherited', 'parent']).default('standalone'),
  advance_amount: z.string().default('10'),
  elapsed_days: z.coerce.number().default(10),
  inherited_children: z.int().default(0),
});

/** `now+5d` is five days after the request. */
export async function cancelSubscription(given: Result): Promise<Result> {
  if (given.prepaid_wallet) return cancelWithWallet(given);
  const asked = cancellationShape.parse(given);
  const fields = asked.subscription_status === 'draft' ? { subscription_status: 'draft' } : {};
  const { world, before } = await subscribed(asked.advance_amount, fields);
  const now = Date.parse(START) + asked.elapsed_days * DAY_MS;
  world.at(formatMs(now));
  const path = `/subscriptions/${before.id}/cancel` as const;
  const children = await joined(world, before.id, asked.inherited_children);
  if (asked.subscription_status === 'cancelled') await world.post(path, { cancellation_type: 'immediate' });
  if (asked.subscription_type === 'inherited')
    await world.api.services
      .postgres('subscriptions')
      .where('id', before.id)
      .update({ subscription_type: 'INHERITED' });
  const { cancellation_type, proration_behavior } = asked;
  const cancel_at = asked.cancel_at && atOf(asked.cancel_at, now);
  const answer = await world.api.request('POST', path, { body: { cancellation_type, cancel_at, proration_behavior } });
  if (answer.status !== 200) return { error_code: answer.body.code };
  const after = await world.get(`/subscriptions/${before.id}`);
  const told = await world.get(`/webhooks/events?entity_ids=${before.id}&event_names=subscription.cancelled`);
  const ids = [before.id, ...children].join(',');
  const all = await world.get(`/webhooks/events?entity_ids=${ids}&event_names=subscription.cancelled`);
  return {
    status: answer.body.status,
    credit: answer.body.total_credit_amount,
    cancel_at: asWritten(after.cancel_at, { stated: asked.cancel_at, now, before }),
    events: told.items.map(({ event_name }: { event_name: string }) => event_name),
    events_subscription_cancelled: all.items.length,
    effective_date: answer.body.effective_date,
  };
}

/** What was used until then is paid with prepaid credits, when the last invoice becomes final. */
async function cancelWithWallet(given: Result): Promise<Result> {
  const quantity = z.coerce.number().parse(given.usage_quantity);
  const world = await exampleWorld();
  const name = freshName();
  await world.meter(name);
  await world.plan(name, [usage(name, String(given.unit_amount))]);
  await world.subscribe(name, name);
  const purse = { external_customer_id: name, currency: 'usd', initial_credits_to_load: String(given.prepaid_wallet) };
  const answer = await world.api.request('POST', '/wallets', { body: purse });
  await world.use(name, name, quantity, { at: world.now.toISOString() });
  await world.waitForPipeline();
  world.at(new Date(world.now.getTime() + DAY_MS).toISOString());
  const { cancellation_type } = given;
  await world.api.request('POST', `/subscriptions/${world.id(`subscription ${name}`)}/cancel`, {
    body: { cancellation_type },
  });
  const { items } = await world.get(`/invoices?customer_id=${world.id(`customer ${name}`)}&invoice_status=DRAFT`);
  for (const { id } of items) await world.api.request('POST', `/invoices/${id}/finalize`, { body: {} });
  const final = await world.get(`/invoices/${items[0]?.id}`);
  const { balance } = await world.get(`/wallets/${answer.body.id}`);
  return { final_invoice_usage_amount: final.subtotal, wallet_balance: balance };
}

/** So many customers take part in it: the ids of their subscriptions. */
async function joined(world: World, id: string, count: number): Promise<string[]> {
  if (count === 0) return [];
  const names = Array.from({ length: count }, (_, index) => `${id} ${index}`);
  for (const name of names) await world.post('/customers', { external_id: name, name });
  const inheritance_params = { action: 'add', external_customer_ids_to_inherit_subscription: names };
  const body = { type: 'inheritance', inheritance_params };
  const { changed_resources } = await world.post(`/subscriptions/${id}/modify/execute`, body);
  return changed_resources.subscriptions.map((child: { id: string }) => child.id);
}

function atOf(stated: string, now: number): string {
  const days = /^now([+-]\d+)d$/.exec(stated)?.[1];
  return days === undefined ? stated : formatMs(now + Number(days) * DAY_MS);
}

/** In the words of the row, where it is what the row says. */
function asWritten(
  cancel_at: string | null,
  { stated, now, before }: { stated: string | undefined; now: number; before: { current_period_end: string } },
): string | null {
  if (cancel_at === null) return null;
  if (stated && Date.parse(atOf(stated, now)) === Date.parse(cancel_at)) return stated;
  return Date.parse(cancel_at) === Date.parse(before.current_period_end) ? 'current_period_end' : cancel_at;
}
