/**
 * A credit grant: credits for each subscription to a plan or with an add-on, or for one subscription, once or per
 * period, with an expiry (docs/rules/credits.md). This file does not change wallets.
 */
import { z } from 'zod';
import { Decimal } from '../../foundation/decimal.ts';
import { invalid, notAllowed } from '../../foundation/error.ts';
import {
  anyCase,
  baseFields,
  decimalText,
  int32,
  metadata,
  orDefault,
  orNull,
  requiredName,
  timestampText,
} from '../../foundation/record.ts';
import { formatMs, toInstant } from '../../foundation/time/instant.ts';
import { RECURRING_PERIODS } from '../../foundation/time/period.ts';

/** Priority of credits that a request adds or a grant gives. */
export const creditPriority = orNull(int32.pipe(z.int32().min(0))).meta({
  description:
    'Order of use, an integer from 0; lower values are used first. Credits without a priority are used last.',
});

export const creditGrantScope = anyCase(['PLAN', 'SUBSCRIPTION', 'ADDON']);
const REFERENCES = { PLAN: 'plan_id', SUBSCRIPTION: 'subscription_id', ADDON: 'addon_id' } as const;

export const creditGrantFields = z.object({
  name: requiredName.meta({ description: 'Display name.' }),
  scope: creditGrantScope.meta({
    description:
      'Recipients of the credits. PLAN: each subscription to the plan. SUBSCRIPTION: this subscription. ADDON: each subscription with the add-on.',
  }),
  plan_id: orNull(z.string()).meta({
    description: 'Plan whose subscriptions get the credits. Required for scope PLAN, else refused.',
  }),
  subscription_id: orNull(z.string()).meta({
    description: 'Subscription that gets the credits. Required for scope SUBSCRIPTION, else refused.',
  }),
  addon_id: orNull(z.string()).meta({
    description: 'Add-on whose subscriptions get the credits. Required for scope ADDON, else refused.',
  }),
  credits: decimalText.meta({ description: 'Number of credits that are granted each time, greater than 0.' }),
  cadence: anyCase(['ONETIME', 'RECURRING']).meta({ description: 'Frequency: once, or in every period.' }),
  period: orNull(anyCase(RECURRING_PERIODS)).meta({
    description: 'Unit of the period. Required for RECURRING, refused for ONETIME.',
  }),
  period_count: orNull(int32).meta({
    description: 'Number of units in a period, greater than 0. Required for RECURRING, refused for ONETIME.',
  }),
  expiration_type: orDefault(anyCase(['NEVER', 'DURATION', 'BILLING_CYCLE']), 'NEVER').meta({
    description: 'Expiry of the credits: never, after a duration, or with the billing period. Default: NEVER.',
  }),
  expiration_duration: orNull(int32).meta({
    description: 'Number of units until expiry, greater than 0. Required for DURATION, else refused.',
  }),
  expiration_duration_unit: orNull(anyCase(['DAY', 'WEEK', 'MONTH', 'YEAR'])).meta({
    description: 'Unit of the duration. Required for DURATION, else refused.',
  }),
  priority: creditPriority,
  conversion_rate: orNull(decimalText).meta({ description: 'Money value of a credit, greater than 0. Default: 1.' }),
  topup_conversion_rate: orNull(decimalText).meta({
    description: 'Price of a bought credit, greater than 0. Default: the conversion rate.',
  }),
  start_date: orNull(timestampText).meta({
    description: 'Start of the grant. Required for scope SUBSCRIPTION, else refused.',
  }),
  end_date: orNull(timestampText).meta({
    description: 'End of the grant, for scope SUBSCRIPTION only. Default: no end.',
  }),
  credit_grant_anchor: orNull(timestampText).meta({
    description: 'Origin of the periods, for scope SUBSCRIPTION only, not before the start. Default: the start.',
  }),
  metadata,
});
type CreditGrantFields = z.output<typeof creditGrantFields>;

/** Grant in a request for a new subscription. Its scope is SUBSCRIPTION, and it begins with the subscription by default. */
export const ownCreditGrantFields = creditGrantFields.extend({
  scope: orDefault(creditGrantScope, 'SUBSCRIPTION').meta({
    description: 'Only SUBSCRIPTION is accepted. Default: SUBSCRIPTION.',
  }),
  subscription_id: orNull(z.string()).meta({ description: 'Refused, because the subscription has no id yet.' }),
  start_date: orNull(timestampText).meta({
    description: 'Start of the grant. Default: the start of the subscription.',
  }),
});
export type OwnCreditGrant = z.output<typeof ownCreditGrantFields>;

/** Validates the grant of a new subscription and adds its defaults. */
export function defineSubscriptionGrant(
  input: OwnCreditGrant,
  subscription: SubscriptionTerm & { readonly id: string },
): CreditGrantFields {
  if (input.scope !== 'SUBSCRIPTION') throw invalid('scope', 'must be SUBSCRIPTION');
  if (input.subscription_id !== null) throw invalid('subscription_id', 'is that of the subscription that is made');
  const start_date = input.start_date ?? subscription.start_date;
  const grant = defineCreditGrant({ ...input, start_date, subscription_id: subscription.id });
  checkWithinSubscription(grant, subscription);
  return grant;
}

export const creditGrantShape = creditGrantFields.extend({ id: z.string(), ...baseFields });
export type CreditGrant = z.output<typeof creditGrantShape>;

/** Validates a requested grant and adds its defaults. */
export function defineCreditGrant(input: CreditGrantFields): CreditGrantFields {
  checkReferences(input);
  checkPositive(input);
  checkCadence(input);
  checkExpiration(input);
  if (input.scope !== 'SUBSCRIPTION') {
    for (const field of ['start_date', 'end_date', 'credit_grant_anchor'] as const)
      if (input[field] !== null) throw invalid(field, `is not allowed for scope ${input.scope}`);
    return input;
  }
  if (input.start_date === null) throw invalid('start_date', 'is required for scope SUBSCRIPTION');
  const credit_grant_anchor = input.credit_grant_anchor ?? input.start_date;
  if (toInstant(credit_grant_anchor) < toInstant(input.start_date))
    throw invalid('credit_grant_anchor', 'must not lie before start_date');
  return { ...input, credit_grant_anchor };
}

function checkReferences(input: CreditGrantFields): void {
  for (const [scope, field] of Object.entries(REFERENCES)) {
    const isGiven = input[field] !== null;
    if (scope === input.scope && !isGiven) throw invalid(field, `is required for scope ${scope}`);
    if (scope !== input.scope && isGiven) throw invalid(field, `is not allowed for scope ${input.scope}`);
  }
}

function checkPositive(input: CreditGrantFields): void {
  for (const field of ['credits', 'conversion_rate', 'topup_conversion_rate'] as const)
    if (input[field] !== null && !new Decimal(input[field]).gt(0)) throw invalid(field, 'must be greater than 0');
}

function checkCadence(input: CreditGrantFields): void {
  for (const field of ['period', 'period_count'] as const) {
    if (input.cadence === 'RECURRING' && input[field] === null)
      throw invalid(field, 'is required for a RECURRING grant');
    if (input.cadence === 'ONETIME' && input[field] !== null)
      throw invalid(field, 'is not allowed for a ONETIME grant');
  }
  if (input.period_count !== null && input.period_count < 1) throw invalid('period_count', 'must be greater than 0');
}

function checkExpiration(input: CreditGrantFields): void {
  const { expiration_type, expiration_duration } = input;
  for (const field of ['expiration_duration', 'expiration_duration_unit'] as const) {
    if (expiration_type === 'DURATION' && input[field] === null)
      throw invalid(field, 'is required for expiration_type DURATION');
    if (expiration_type !== 'DURATION' && input[field] !== null)
      throw invalid(field, `is not allowed for expiration_type ${expiration_type}`);
  }
  if (expiration_duration !== null && expiration_duration < 1)
    throw invalid('expiration_duration', 'must be greater than 0');
}

type CreditGrantDates = Pick<CreditGrant, 'start_date' | 'end_date'>;
type SubscriptionTerm = { readonly start_date: string; readonly end_date?: string | null | undefined };

/** Checks that a grant of a subscription begins and ends within the subscription's active interval. */
export function checkWithinSubscription(
  { start_date, end_date }: CreditGrantDates,
  subscription: SubscriptionTerm,
): void {
  const from = toInstant(start_date!);
  const last = subscription.end_date ? toInstant(subscription.end_date) : Number.POSITIVE_INFINITY;
  if (from < toInstant(subscription.start_date) || from > last)
    throw invalid('start_date', 'must lie inside the subscription');
  if (end_date === null) return;
  if (toInstant(end_date) < from) throw invalid('end_date', 'must not lie before start_date');
  if (toInstant(end_date) > last) throw invalid('end_date', 'must lie inside the subscription');
}

export function checkCanBeGranted(subscription: { readonly id: string; readonly subscription_status: string }): void {
  if (subscription.subscription_status === 'cancelled')
    throw notAllowed(`subscription ${subscription.id} is cancelled: it gets no more credits`);
}

type CreditGrantRates = Pick<CreditGrant, 'conversion_rate' | 'topup_conversion_rate'>;

/**
 * Throws if the rates differ from those of the owner's other grants. All grants of a plan or add-on credit one wallet, which has one rate.
 */
export function checkSameRates(grant: CreditGrantRates, others: readonly CreditGrantRates[]): void {
  const [own] = others;
  if (own === undefined) return;
  if (!toConversionRate(grant).eq(toConversionRate(own)))
    throw invalid('conversion_rate', `must be ${toConversionRate(own).toFixed()}, as that of its other credit grants`);
  if (!toTopupRate(grant).eq(toTopupRate(own)))
    throw invalid('topup_conversion_rate', `must be ${toTopupRate(own).toFixed()}, as that of its other credit grants`);
}

const toConversionRate = ({ conversion_rate }: CreditGrantRates) => new Decimal(conversion_rate ?? 1);
const toTopupRate = (rates: CreditGrantRates) => new Decimal(rates.topup_conversion_rate ?? toConversionRate(rates));

/**
 * Ends a grant. A grant of a subscription ends at `from` and stays published until then. A grant of a plan or add-on has no dates and is
 * archived at once.
 */
export function planGrantArchive(
  grant: Pick<CreditGrant, 'scope' | 'start_date' | 'end_date'>,
  from: number,
  now: number,
) {
  if (grant.scope !== 'SUBSCRIPTION') {
    if (from > now) throw invalid('effective_date', `must not lie ahead for scope ${grant.scope}, which has no dates`);
    return { status: 'archived' as const };
  }
  const end = Math.max(from, toInstant(grant.start_date!));
  if (grant.end_date !== null && end > toInstant(grant.end_date))
    throw invalid('effective_date', `must not lie after the end of the grant at ${grant.end_date}`);
  const ended = { end_date: formatMs(end) };
  return from > now ? ended : { ...ended, status: 'archived' as const };
}
