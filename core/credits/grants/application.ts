/**
 * One granting of credits to a subscription, unique by grant, subscription and period. The record is created before it
 * is due, and is then applied, postponed, skipped or cancelled (docs/rules/credits.md, "Applications").
 */
import { z } from 'zod';
import type { CreditGrant } from '../../catalog/credit-grant/record.ts';
import { Decimal } from '../../foundation/decimal.ts';
import { baseFields, decimalText, metadata, timestampText } from '../../foundation/record.ts';
import { MINUTE_MS } from '../../foundation/time/durations.ts';
import { formatMs, type Milliseconds, toInstant } from '../../foundation/time/instant.ts';
import { SUBSCRIPTION_STATUSES, type SubscriptionStatus } from '../../subscriptions/record.ts';
import { type BillingCycles, computeCreditExpiry, computeCreditShare, toGrantPeriod } from './periods.ts';

const APPLICATION_STATUSES = ['applied', 'failed', 'pending', 'skipped', 'cancelled'] as const;
const APPLICATION_REASONS = [
  'first_time_recurring_credit_grant',
  'recurring_credit_grant',
  'onetime_credit_grant',
] as const;
type ApplicationStatus = (typeof APPLICATION_STATUSES)[number];

/** Statuses that may still become applied. */
export const OPEN_APPLICATIONS: readonly ApplicationStatus[] = ['pending', 'failed'];

export const creditGrantApplicationShape = z.object({
  id: z.string(),
  credit_grant_id: z.string().meta({ description: 'Grant that is applied.' }),
  subscription_id: z.string().meta({ description: 'Subscription that gets the credits.' }),
  addon_association_id: z
    .string()
    .nullish()
    .meta({ description: 'Association of the add-on whose grant this is; null for any other grant.' }),
  scheduled_for: timestampText.meta({ description: 'Instant at which the grant is applied or retried.' }),
  applied_at: timestampText.nullish().meta({ description: 'Instant at which the credits were applied; null before.' }),
  period_start: timestampText.meta({ description: 'Start of the period that the credits are for.' }),
  period_end: timestampText
    .nullish()
    .meta({ description: 'End of the period that the credits are for; null for a ONETIME grant.' }),
  application_status: z.enum(APPLICATION_STATUSES).meta({
    description:
      'Status. pending, failed: still due. applied: the wallet has the credits. skipped: no credits were left to grant. cancelled: will not be applied.',
  }),
  credits: decimalText.meta({ description: 'Number of credits.' }),
  application_reason: z.enum(APPLICATION_REASONS).meta({
    description: 'Position among the applications of the grant: the first of several, a later one, or the only one.',
  }),
  subscription_status_at_application: z
    .enum(SUBSCRIPTION_STATUSES)
    .nullish()
    .meta({ description: 'Status of the subscription at the last attempt; null before.' }),
  retry_count: z.int().meta({ description: 'Number of postponements and failures.' }),
  failure_reason: z
    .string()
    .nullish()
    .meta({ description: 'Reason why the application was postponed, skipped or cancelled, or has failed.' }),
  metadata: metadata.nullish().meta({ description: 'Always null at present.' }),
  idempotency_key: z.string().meta({
    description:
      'Unique key of the granting. The idempotency key of its wallet transaction is `farthing/grant/` followed by this key.',
  }),
  ...baseFields,
});
export type CreditGrantApplication = z.output<typeof creditGrantApplicationShape>;

export type AppliedGrant = {
  readonly grant: CreditGrant;
  readonly subscription: BillingCycles & { readonly id: string; readonly plan_id: string };
  /** Set for a grant of an add-on only. */
  readonly association: {
    readonly id: string;
    readonly quantity: number;
    readonly start_date: string;
    readonly end_date?: string | null | undefined;
  } | null;
};

type PlannedApplication = Pick<
  CreditGrantApplication,
  | 'credit_grant_id'
  | 'subscription_id'
  | 'addon_association_id'
  | 'scheduled_for'
  | 'period_start'
  | 'period_end'
  | 'credits'
  | 'application_reason'
  | 'idempotency_key'
>;

export function planFirstApplication(given: AppliedGrant, from: Milliseconds): PlannedApplication {
  const { grant } = given;
  if (grant.cadence === 'ONETIME')
    return buildApplication(given, {
      start: from,
      end: null,
      credits: computeWholeCredits(given),
      reason: 'onetime_credit_grant',
    });
  const { period, whole } = computeGrantPeriod(given, from);
  const credits = computeCreditShare(computeWholeCredits(given), whole, from);
  return buildApplication(given, { ...period, credits, reason: 'first_time_recurring_credit_grant' });
}

/** Application after `last`. Null if the grant has ended: a period that would end after the grant is not granted. */
export function planNextApplication(
  given: AppliedGrant,
  last: Pick<CreditGrantApplication, 'period_end'>,
): PlannedApplication | null {
  if (given.grant.cadence === 'ONETIME' || !last.period_end) return null;
  const from = toInstant(last.period_end);
  const { period, whole } = computeGrantPeriod(given, from);
  const end = deriveGrantEnd(given);
  if (end !== null && period.end > end) return null;
  // A period that a change of the billing anchor shortens has a share of the credits. Every other period has all of them.
  const credits = computeCreditShare(computeWholeCredits(given), whole, from);
  return buildApplication(given, { ...period, credits, reason: 'recurring_credit_grant' });
}

/** Computes the whole credits. A grant of an add-on is multiplied by the quantity of the add-on. */
function computeWholeCredits({ grant, association }: AppliedGrant): Decimal {
  return new Decimal(grant.credits).times(association?.quantity ?? 1);
}

/**
 * Computes the period of a grant. A grant of a plan or an add-on uses the billing anchor of the subscription; a grant of the subscription
 * itself has its own anchor.
 */
function computeGrantPeriod({ grant, subscription }: AppliedGrant, start: Milliseconds) {
  const anchor = toInstant(grant.credit_grant_anchor ?? subscription.billing_anchor);
  const { timezone } = subscription;
  return toGrantPeriod({ period: grant.period!, period_count: grant.period_count!, anchor, timezone }, start);
}

/** Earliest end of the grant, the subscription and the add-on. */
function deriveGrantEnd({ grant, subscription, association }: AppliedGrant): Milliseconds | null {
  const ends = [grant.end_date, subscription.end_date, association?.end_date].flatMap((end) =>
    end ? toInstant(end) : [],
  );
  return ends.length === 0 ? null : Math.min(...ends);
}

type ApplicationTerms = {
  start: Milliseconds;
  end: Milliseconds | null;
  credits: Decimal;
  reason: PlannedApplication['application_reason'];
};

function buildApplication(
  { grant, subscription, association }: AppliedGrant,
  { start, end, credits, reason }: ApplicationTerms,
): PlannedApplication {
  const period_start = formatMs(start);
  const key = ['credit_grant', grant.id, subscription.id, ...(association ? [association.id] : []), period_start];
  return {
    credit_grant_id: grant.id,
    subscription_id: subscription.id,
    addon_association_id: association?.id ?? null,
    scheduled_for: period_start,
    period_start,
    period_end: end === null ? null : formatMs(end),
    credits: credits.toFixed(),
    application_reason: reason,
    idempotency_key: key.join(':'),
  };
}

const ACTIONS: Record<SubscriptionStatus, 'apply' | 'defer' | 'cancel'> = {
  active: 'apply',
  trialing: 'apply',
  incomplete: 'defer',
  draft: 'defer',
  paused: 'defer',
  cancelled: 'cancel',
};

export function deriveApplicationAction(status: SubscriptionStatus) {
  return ACTIONS[status];
}

const DEFER_MINUTES = 30;
const DOUBLED_MAX = 4;

/** Delay before the next attempt. It doubles each time, from 30 minutes up to eight hours. */
export function computeDeferMinutes(retry_count: number): number {
  return DEFER_MINUTES * 2 ** Math.min(retry_count, DOUBLED_MAX);
}

type ApplicationOutcome =
  | { readonly action: 'apply'; readonly expires_at: Milliseconds | null }
  | { readonly action: 'defer'; readonly why: string }
  | { readonly action: 'skip'; readonly why: string }
  | { readonly action: 'cancel'; readonly why: string };

type ApplicationContext = { readonly status: SubscriptionStatus; readonly now: Milliseconds };

/** Outcome of a due application. A deferred one is retried later; a cancelled one has no successor; any other plans the next one. */
export function deriveApplicationOutcome(
  given: AppliedGrant,
  { period_start, credits }: Pick<CreditGrantApplication, 'period_start' | 'credits'>,
  { status, now }: ApplicationContext,
): ApplicationOutcome {
  const action = deriveApplicationAction(status);
  if (action === 'cancel') return { action, why: `the subscription is ${status}` };
  const over = findGrantEndReason(given, toInstant(period_start));
  if (over !== null) return { action: 'cancel', why: over };
  if (action === 'defer') return { action, why: `the subscription is ${status}` };
  const expires_at = computeCreditExpiry(given.grant, toInstant(period_start), given.subscription);
  if (expires_at !== null && expires_at <= now)
    return { action: 'skip', why: `its credits had expired at ${formatMs(expires_at)}` };
  if (new Decimal(credits).isZero()) return { action: 'skip', why: 'its share of the period is nothing' };
  return { action: 'apply', expires_at };
}

/** Reason why the grant has ended for a period that begins at `period_start`; null if it has not. */
export function findGrantEndReason(
  { grant, subscription, association }: AppliedGrant,
  period_start: Milliseconds,
): string | null {
  const isOver = (end: string | null | undefined) => Boolean(end) && period_start >= toInstant(end!);
  if (grant.scope !== 'SUBSCRIPTION' && grant.status !== 'published') return `the grant is ${grant.status}`;
  if (isOver(grant.end_date)) return 'the grant has ended';
  if (grant.scope === 'PLAN' && grant.plan_id !== subscription.plan_id) return 'the subscription has another plan';
  if (association && isOver(association.end_date)) return 'the subscription does not have the add-on any more';
  return isOver(subscription.end_date) ? 'the subscription has ended' : null;
}

export function deferApplication({ retry_count }: Pick<CreditGrantApplication, 'retry_count'>, now: Milliseconds) {
  return {
    retry_count: retry_count + 1,
    scheduled_for: formatMs(now + computeDeferMinutes(retry_count) * MINUTE_MS),
  };
}
