/** The operations of the areas subscription.* and trial.*: through the real interface and the scheduler's own work. */
import { z } from 'zod';
import { definePrice } from '../../core/catalog/price/define.ts';
import { createPriceShape, type Price } from '../../core/catalog/price/record.ts';
import { anyCase } from '../../core/foundation/record.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { resolvePaymentSettings } from '../../core/subscriptions/payment-settings.ts';
import { COLLECTION_METHODS, PAYMENT_BEHAVIORS } from '../../core/subscriptions/record.ts';
import { planTrial } from '../../core/subscriptions/trial.ts';
import { fixed, type PriceTerms, usage, type World } from '../support/world.ts';
import type { Result } from './compare.ts';
import { exampleWorld, freshName } from './example-world.ts';
import { instant } from './time-operations.ts';

const DAY_MS = 86_400_000;

const days = z.array(z.number()).nullish();
const windowShape = z.object({
  start: instant,
  timezone: z.string().default('UTC'),
  trial_period_days: z.union([z.number(), z.string().transform(Number)]).nullish(),
  plan_recurring_fixed_trial_days: days,
  plan_usage_trial_days: days,
});

export function trialWindow(given: Result): Result {
  const { start, timezone, trial_period_days, ...plan } = windowShape.parse(given);
  const prices = [
    ...(plan.plan_recurring_fixed_trial_days ?? []).map((of) => priceWithTrial('FIXED', of)),
    ...(plan.plan_usage_trial_days ?? []).map((of) => priceWithTrial('USAGE', of)),
  ];
  const terms = { trial_period_days: trial_period_days ?? null, trial_start: null, trial_end: null };
  const trial = planTrial(terms, { start, timezone, prices });
  return trial === null ? { trial } : { trial_start: formatMs(trial.start), trial_end: formatMs(trial.end) };
}

/** A usage price of today has no trial; one that has must have no say. */
function priceWithTrial(type: 'FIXED' | 'USAGE', trial_period_days: number): Price {
  const request = createPriceShape.parse({
    type,
    billing_model: 'FLAT_FEE',
    amount: '1',
    currency: 'usd',
    billing_period: 'MONTHLY',
    invoice_cadence: type === 'USAGE' ? 'ARREAR' : 'ADVANCE',
    entity_type: 'PLAN',
    entity_id: 'plan_x',
    ...(type === 'USAGE' ? { meter_id: 'meter_x' } : {}),
  });
  return { ...definePrice(request), trial_period_days } as Price;
}

const settingsShape = z.object({
  collection_method: anyCase(COLLECTION_METHODS),
  payment_behavior: anyCase(PAYMENT_BEHAVIORS),
});

export function settingsOfPayment(given: Result): Result {
  return resolvePaymentSettings(settingsShape.parse(given));
}

const creationShape = z.looseObject({
  start: z.string().optional(),
  requested_status: z.string().nullish(),
  price: z.record(z.string(), z.unknown()).optional(),
  plan_has_fixed_price: z.boolean().default(false),
  trial_start: z.string().optional(),
});

/** What the row leaves out is filled with what is valid: a customer of its own, and a plan that charges for usage. */
export async function createSubscription(given: Result): Promise<Result> {
  const { start, requested_status, price, plan_has_fixed_price, ...terms } = creationShape.parse(given);
  const start_date = start ?? terms.trial_start;
  const world = await exampleWorld();
  if (start_date) world.at(start_date);
  const asked = { ...terms, start_date, ...(requested_status ? { subscription_status: requested_status } : {}) };
  const { customer, answer } = await subscribe(world, [price ?? (plan_has_fixed_price ? ADVANCE : USAGE)], asked);
  if (answer.status !== 201) return { error_code: answer.body.code, field: answer.body.details?.field };
  const { id, subscription_status, current_period_start, current_period_end } = answer.body;
  const invoices = await invoicesOf(world, id);
  return { customer, status: subscription_status, ...{ current_period_start, current_period_end }, ...invoices };
}

const ADVANCE: PriceTerms = fixed('25', { invoice_cadence: 'ADVANCE' });
const USAGE: PriceTerms = usage('calls', '0.01');

const trialShape = z.object({ trial_end: z.string(), price: z.record(z.string(), z.unknown()) });

/** Thirteen days of trial, and what the scheduler then makes of it. */
export async function endTrial(given: Result): Promise<Result> {
  const { trial_end, price } = trialShape.parse(given);
  const { world, id } = await overTrial(trial_end, fixed(String(price.amount), price), {});
  const { billing_anchor } = await world.get(`/subscriptions/${id}`);
  return { invoice: (await invoicesOf(world, id)).last_invoice, new_billing_anchor: billing_anchor };
}

const paymentShape = settingsShape.extend({
  amount_due: z.union([z.string(), z.number()]).transform(String),
  payment_fails: z.literal(true),
});

export async function endUnpaidTrial(given: Result): Promise<Result> {
  const { amount_due, payment_fails: _asEver, ...settings } = paymentShape.parse(given);
  const price = fixed(amount_due, { invoice_cadence: 'ADVANCE' });
  const { world, id } = await overTrial('2026-04-01T00:00:00Z', price, settings);
  return { subscription_status: (await world.get(`/subscriptions/${id}`)).subscription_status };
}

const modificationShape = z.object({
  type: z.literal('trial_end'),
  action: z.string(),
  trial_days: z.coerce.number().nullish(),
  new_trial_end: z.string(),
});

/** Of a trial on its first day; instants are told as the row tells them, by their distance from the end that was agreed. */
export async function modifyTrial(given: Result): Promise<Result> {
  const { type, action, trial_days, new_trial_end } = modificationShape.parse(given);
  const world = await exampleWorld();
  const { answer } = await subscribe(world, [ADVANCE], { trial_period_days: trial_days || 7 });
  const { id, trial_end } = answer.body;
  const agreed = Date.parse(trial_end!);
  const moved = /^trial_end([+-]\d+)d$/.exec(new_trial_end);
  const asked = moved ? agreed + Number(moved[1]) * DAY_MS : world.now.getTime() - DAY_MS;
  const body = { type, trial_end_params: { action, new_trial_end: formatMs(asked) } };
  const done = await world.api.request('POST', `/subscriptions/${id}/modify/execute`, { body });
  if (done.status !== 200) return { error_code: done.body.code, field: done.body.details?.field };
  const { subscription_status: status, ...dates } = done.body.subscription!;
  const told = (date: string) => `trial_end+${(Date.parse(date) - agreed) / DAY_MS}d`;
  return { status, trial_end: told(dates.trial_end!), current_period_end: told(dates.current_period_end) };
}

async function overTrial(trial_end: string, price: PriceTerms, terms: Record<string, unknown>) {
  const world = await exampleWorld();
  const trial_start = formatMs(Date.parse(trial_end) - 13 * DAY_MS);
  world.at(trial_start);
  const { answer } = await subscribe(world, [price], { ...terms, trial_start, trial_end });
  await world.on(trial_end);
  return { world, id: answer.body.id as string };
}

async function subscribe(world: World, prices: readonly PriceTerms[], terms: Record<string, unknown>) {
  const name = freshName();
  const needsMeter = prices.some(({ meter }) => meter) && !world.has('meter calls');
  if (needsMeter) await world.meter('calls');
  await world.plan(name, prices);
  await world.post('/customers', { external_id: name, name });
  const body = { external_customer_id: name, plan_id: world.id(`plan ${name}`), currency: 'usd' };
  const answer = await world.api.request('POST', '/subscriptions', {
    body: { ...body, billing_period: 'MONTHLY', ...terms },
  });
  return { customer: name, answer };
}

async function invoicesOf(world: World, subscription_id: string) {
  const invoice_status = ['DRAFT', 'FINALIZED', 'SKIPPED'];
  const { body } = await world.api.request('POST', '/invoices/search', { body: { subscription_id, invoice_status } });
  const invoices = [...body.items].sort((a, b) => a.billing_sequence! - b.billing_sequence!);
  return { invoices: invoices.length, first_invoice: invoices[0] ?? null, last_invoice: invoices.at(-1) ?? null };
}
