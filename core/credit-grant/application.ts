/**
 * One time that a grant gives its credits to a subscription: a record of its own, unique by grant, subscription and period, which is
 * made before it is due and is applied, put off, skipped or cancelled then (docs/rules/credits.md, "Applications").
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { baseFields, decimalText, metadata, timestampText } from '../record.ts';
import { SUBSCRIPTION_STATUSES, type SubscriptionStatus } from '../subscription/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../time/instant.ts';
import { type BillingCycles, computeCreditExpiry, computeCreditShare, toGrantPeriod } from './periods.ts';
import type { CreditGrant } from './record.ts';

export const APPLICATION_STATUSES = ['applied', 'failed', 'pending', 'skipped', 'cancelled'] as const;
export const APPLICATION_REASONS = [
  'first_time_recurring_credit_grant',
  'recurring_credit_grant',
  'onetime_credit_grant',
] as const;
export type ApplicationStatus = (typeof APPLICATION_STATUSES)[number];

/** What may still be applied. */
export const OPEN_APPLICATIONS: readonly ApplicationStatus[] = ['pending', 'failed'];

export const creditGrantApplicationShape = z.object({
  id: z.string(),
  credit_grant_id: z.string().meta({ description: 'The grant.' }),
  subscription_id: z.string().meta({ description: 'The subscription that it is given for.' }),
  addon_association_id: z
    .string()
    .nullish()
    .meta({ description: 'Of the grant of an add-on: how the subscription has it.' }),
  scheduled_for: timestampText.meta({ description: 'When it is applied, or tried again.' }),
  applied_at: timestampText.nullish().meta({ description: 'When it was applied; null before.' }),
  period_start: timestampText.meta({ description: 'The begin of the period for which it is given.' }),
  period_end: timestampText.nullish().meta({ description: 'The end of that period; null of what is given once.' }),
  application_status: z.enum(APPLICATION_STATUSES).meta({
    description:
      'pending and failed: it is to come; applied: the wallet has it; skipped: there was nothing left to give; cancelled: it does not come.',
  }),
  credits: decimalText.meta({ description: 'How many credits.' }),
  application_reason: z
    .enum(APPLICATION_REASONS)
    .meta({ description: 'Whether it is the first of several, or the only one.' }),
  subscription_status_at_application: z
    .enum(SUBSCRIPTION_STATUSES)
    .nullish()
    .meta({ description: 'What the subscription was when it was looked at last; null before.' }),
  retry_count: z.int().meta({ description: 'How often it was put off, or failed.' }),
  failure_reason: z
    .string()
    .nullish()
    .meta({ description: 'Why it was put off, skipped or cancelled, or has failed.' }),
  metadata: metadata.nullish().meta({ description: 'Nothing yet: null.' }),
  idempotency_key: z
    .string()
    .meta({ description: 'One key is one credit; that of its wallet transaction is `farthing/grant/` and this one.' }),
  ...baseFields,
});
export type CreditGrantApplication = z.output<typeof creditGrantApplicationShape>;

/** A grant as a subscription has it. */
export type AppliedGrant = {
  readonly grant: CreditGrant;
  readonly subscription: BillingCycles & { readonly id: string; readonly plan_id: string };
  /** Of a grant of an add-on. */
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

/** The first one of what begins then. */
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

/** The one that follows; null where the grant gives no more: a period that would end behind the end of the grant is none. */
export function planNextApplication(
  given: AppliedGrant,
  last: Pick<CreditGrantApplication, 'period_end'>,
): PlannedApplication | null {
  if (given.grant.cadence === 'ONETIME' || !last.period_end) return null;
  const from = toInstant(last.period_end);
  const { period, whole } = computeGrantPeriod(given, from);
  const end = deriveGrantEnd(given);
  if (end !== null && period.end > end) return null;
  // Whole, unless the grid has moved since: what is left until its next instant has its share.
  const credits = computeCreditShare(computeWholeCredits(given), whole, from);
  return buildApplication(given, { ...period, credits, reason: 'recurring_credit_grant' });
}

/** Of several of an add-on each gives. */
function computeWholeCredits({ grant, association }: AppliedGrant): Decimal {
  return new Decimal(grant.credits).times(association?.quantity ?? 1);
}

/** Those of a plan and of an add-on lie on the grid of the subscription, those of its own on their own. */
function computeGrantPeriod({ grant, subscription }: AppliedGrant, start: Milliseconds) {
  const anchor = toInstant(grant.credit_grant_anchor ?? subscription.billing_anchor);
  const { timezone } = subscription;
  return toGrantPeriod({ period: grant.period!, period_count: grant.period_count!, anchor, timezone }, start);
}

/** When it ends: by itself, with the subscription, or with the add-on. */
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

/** What is done with what is due, by the state of its subscription. */
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

/** After how long what was put off, or has failed, is tried again: twice as long each time, up to eight hours. */
export function computeDeferMinutes(retry_count: number): number {
  return DEFER_MINUTES * 2 ** Math.min(retry_count, DOUBLED_MAX);
}

export type ApplicationOutcome =
  | { readonly action: 'apply'; readonly expires_at: Milliseconds | null }
  | { readonly action: 'defer'; readonly why: string }
  | { readonly action: 'skip'; readonly why: string }
  | { readonly action: 'cancel'; readonly why: string };

type ApplicationContext = { readonly status: SubscriptionStatus; readonly now: Milliseconds };

/** What becomes of one that is due. Where it is put off nothing follows yet; where it is cancelled nothing does. */
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

/** Why a grant gives nothing for a period that begins then; null where it does. */
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

/** What it is from then on when it was not applied: again after a while. */
export function deferApplication({ retry_count }: Pick<CreditGrantApplication, 'retry_count'>, now: Milliseconds) {
  return {
    retry_count: retry_count + 1,
    scheduled_for: formatMs(now + computeDeferMinutes(retry_count) * 60_000),
  };
}
