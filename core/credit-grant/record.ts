/**
 * A credit grant: credits that a plan gives to each of its subscriptions, or that one subscription gets, once or in every
 * period, and when they expire (docs/rules/credits.md). What they do to a wallet is not decided here.
 */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { invalid, notAllowed } from '../error.ts';
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
} from '../record.ts';
import { formatMs, toInstant } from '../time/instant.ts';
import { RECURRING_PERIODS } from '../time/period.ts';
import { creditPriority } from '../wallet/record.ts';

export const creditGrantScope = anyCase(['PLAN', 'SUBSCRIPTION', 'ADDON']);
const REFERENCES = { PLAN: 'plan_id', SUBSCRIPTION: 'subscription_id', ADDON: 'addon_id' } as const;

/** What a client states of a new credit grant, as it is stored. */
export const creditGrantFields = z.object({
  name: requiredName.meta({ description: 'What people call it.' }),
  scope: creditGrantScope.meta({
    description: 'PLAN: each subscription to the plan gets it; SUBSCRIPTION: this one does; ADDON: who has the add-on.',
  }),
  plan_id: orNull(z.string()).meta({ description: 'The plan, of scope PLAN.' }),
  subscription_id: orNull(z.string()).meta({ description: 'The subscription, of scope SUBSCRIPTION.' }),
  addon_id: orNull(z.string()).meta({ description: 'The add-on, of scope ADDON.' }),
  credits: decimalText.meta({ description: 'How many credits each time; greater than 0.' }),
  cadence: anyCase(['ONETIME', 'RECURRING']).meta({ description: 'Once, or in every period.' }),
  period: orNull(anyCase(RECURRING_PERIODS)).meta({ description: 'Of RECURRING: how long a period is.' }),
  period_count: orNull(int32).meta({ description: 'Of RECURRING: how many of these make a period; greater than 0.' }),
  expiration_type: orDefault(anyCase(['NEVER', 'DURATION', 'BILLING_CYCLE']), 'NEVER').meta({
    description: 'When the credits expire: not at all, after a duration, or with the billing period.',
  }),
  expiration_duration: orNull(int32).meta({ description: 'Of DURATION: after how many units; greater than 0.' }),
  expiration_duration_unit: orNull(anyCase(['DAY', 'WEEK', 'MONTH', 'YEAR'])).meta({
    description: 'Of DURATION: the unit.',
  }),
  priority: creditPriority,
  conversion_rate: orNull(decimalText).meta({ description: 'What a credit is in money; 1 when absent.' }),
  topup_conversion_rate: orNull(decimalText).meta({
    description: 'What a credit that is bought is in money; the conversion rate when absent.',
  }),
  start_date: orNull(timestampText).meta({ description: 'Of scope SUBSCRIPTION: from when on.' }),
  end_date: orNull(timestampText).meta({ description: 'Of scope SUBSCRIPTION: until when; open when absent.' }),
  credit_grant_anchor: orNull(timestampText).meta({
    description: 'Of scope SUBSCRIPTION: from where on periods are counted; the start when absent.',
  }),
  metadata,
});
type CreditGrantFields = z.output<typeof creditGrantFields>;

/** Of a subscription that is made with it: it is of scope SUBSCRIPTION, and begins with the subscription unless it says otherwise. */
export const ownCreditGrantFields = creditGrantFields.extend({
  scope: orDefault(creditGrantScope, 'SUBSCRIPTION').meta({ description: 'SUBSCRIPTION, also when absent.' }),
  subscription_id: orNull(z.string()).meta({ description: 'Nothing: the subscription has no id yet.' }),
  start_date: orNull(timestampText).meta({
    description: 'From when on; from the start of the subscription when absent.',
  }),
});
export type OwnCreditGrant = z.output<typeof ownCreditGrantFields>;

/** The grant of a new subscription, when its fields go together. */
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

/** The grant that a request asks for, when its fields go together. */
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

/** A grant of a subscription lies inside of it. */
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

/** All grants of one plan go to one wallet, which has one rate. */
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

/** From an instant on: a grant of a subscription ends then, and stays until then; a template is not used any more. */
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
