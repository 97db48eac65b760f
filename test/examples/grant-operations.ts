/** The operations of the areas credit_grant.*: of rules alone on core/credits/grants, of what is given through the real interface. */
import { z } from 'zod';
import { computeDeferMinutes, deriveApplicationAction } from '../../core/credits/grants/application.ts';
import { computeCreditExpiry, computeCreditShare } from '../../core/credits/grants/periods.ts';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { SUBSCRIPTION_STATUSES } from '../../core/subscriptions/record.ts';
import { CreditGrantApplicationModel } from '../../storage/models/credits/credit-grant-application.ts';
import { fixed, type World } from '../support/world.ts';
import { exampleWorld, freshName } from './example-world.ts';
import { instant } from './time-operations.ts';

export function firstPeriodOfGrant(given: unknown) {
  const { credits, period_start, period_end, grant_date } = z
    .object({ credits: z.string(), period_start: instant, period_end: instant, grant_date: instant })
    .parse(given);
  return { credits: computeCreditShare(credits, { start: period_start, end: period_end }, grant_date).toFixed() };
}

const Span = z.union([
  z.tuple([instant, instant]).transform(([start, end]) => ({ start, end })),
  z.object({ start: instant, end: instant }),
]);
const Expiration = z.object({
  expiration_type: z.enum(['NEVER', 'DURATION', 'BILLING_CYCLE']),
  duration: z.coerce.number().nullish(),
  unit: z.enum(['DAY', 'WEEK', 'MONTH', 'YEAR']).nullish(),
});

export function grantExpiry(given: unknown) {
  const { grant_period_start, subscription_period, ...stated } = Expiration.extend({
    grant_period_start: instant,
    subscription_period: Span.nullish(),
  }).parse(given);
  const expiration = {
    expiration_type: stated.expiration_type,
    expiration_duration: stated.duration ?? null,
    expiration_duration_unit: stated.unit ?? null,
  };
  const cycle = subscription_period ?? { start: grant_period_start, end: grant_period_start };
  const start_date = formatMs(cycle.start);
  const expires = computeCreditExpiry(expiration, grant_period_start, {
    start_date,
    end_date: null,
    trial_start: null,
    trial_end: null,
    current_period_start: start_date,
    current_period_end: formatMs(cycle.end),
    billing_anchor: start_date,
    billing_period: 'MONTHLY',
    billing_period_count: 1,
    timezone: 'UTC',
  });
  return { expires_at: expires === null ? null : formatMs(expires) };
}

export function grantAction(given: unknown) {
  const { subscription_status } = z.object({ subscription_status: z.enum(SUBSCRIPTION_STATUSES) }).parse(given);
  return { action: deriveApplicationAction(subscription_status) };
}

export function deferBackoff(given: unknown) {
  const { retry_count } = z.object({ retry_count: z.coerce.number().int() }).parse(given);
  return { minutes: computeDeferMinutes(retry_count) };
}

export async function applyGrant(given: unknown) {
  const { grant_period_start, cadence, ...stated } = Expiration.extend({
    grant_period_start: z.string(),
    cadence: z.enum(['ONETIME', 'RECURRING']),
  }).parse(given);
  const { applications, added } = await give(grant_period_start, {
    cadence,
    ...(cadence === 'RECURRING' ? { period: 'MONTHLY', period_count: 1 } : {}),
    expiration_type: stated.expiration_type,
    expiration_duration: stated.duration ?? null,
    expiration_duration_unit: stated.unit ?? null,
  });
  return { application_status: applications[0]!.application_status, credits_added: added.toFixed() };
}

export async function createGrant(given: unknown) {
  const { cadence, period, start, period_count } = z
    .object({
      cadence: z.enum(['ONETIME', 'RECURRING']),
      period: z.string().nullish(),
      period_count: z.coerce.number().nullish(),
      start: z.string(),
    })
    .parse(given);
  const recurring = { period, period_count: period_count ?? 1 };
  const { applications } = await give(start, { cadence, ...(cadence === 'RECURRING' ? recurring : {}) });
  const count = (status: string) => applications.filter((one) => one.application_status === status).length;
  return { applied: count('applied'), pending: count('pending') };
}

/** A grant that begins then, of a subscription that does, too: its applications in order, and the credits that the wallet has of it. */
async function give(words: string, fields: Record<string, unknown>) {
  const world = await exampleWorld();
  const start_date = instantOfWords(words, world.now).toISOString();
  const name = freshName();
  if (!world.has('plan Granted')) await world.plan('Granted', [fixed('10')]);
  const began = new Date(Math.min(Date.parse(start_date), world.now.getTime())).toISOString();
  const { id: subscription_id } = await world.subscribe(name, 'Granted', { start_date: began });
  const request = { name, scope: 'SUBSCRIPTION', subscription_id, credits: '100', start_date, ...fields };
  const { id } = await world.post('/creditgrants', request);
  const applications = await CreditGrantApplicationModel.in(world.api.scope, world.api.services.postgres)
    .where('credit_grant_id', id)
    .orderBy('period_start');
  return { applications, added: await creditsOf(world, name) };
}

async function creditsOf(world: World, customer: string): Promise<Decimal> {
  const wallets: { credit_balance: string }[] = await world.get(
    `/customers/${world.id(`customer ${customer}`)}/wallets`,
  );
  return sumDecimals(wallets.map(({ credit_balance }) => new Decimal(credit_balance)));
}

/** `now`, `30 days ago`, `2 months 15 days before now`, `3 days after now`, or an instant. */
function instantOfWords(words: string, now: Date): Date {
  if (/^\d{4}-/.test(words)) return new Date(words);
  const sign = /\b(?:after|from) now|^in /.test(words) ? 1 : -1;
  const at = new Date(now);
  const count = (unit: string) => sign * Number(new RegExp(`(\\d+) ${unit}`).exec(words)?.[1] ?? 0);
  const day = at.getUTCDate();
  at.setUTCDate(1);
  at.setUTCMonth(at.getUTCMonth() + count('month') + 12 * count('year'));
  at.setUTCDate(day);
  at.setTime(at.getTime() + (count('day') + 7 * count('week')) * 86_400_000 + count('hour') * 3_600_000);
  return at;
}
