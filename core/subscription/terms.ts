/**
 * Rules of a new subscription that its plan's prices decide. The days of a trial, where the request does not state them,
 * are those of the plan's recurring fixed prices, which must agree; they do not go with stated dates of a trial. A
 * threshold for invoices before the end of a period is zero or greater, and for plans of usage prices only.
 */

import { Decimal } from '../decimal.ts';
import { invalid } from '../error.ts';
import type { Price } from '../price/record.ts';
import { instantOf } from '../time/instant.ts';
import type { CreateSubscription } from './record.ts';

/** What can be said before the plan is known. */
export function checkTrialTerms(request: CreateSubscription): void {
  const { trial_period_days, trial_start, trial_end, start_date } = request;
  if (trial_period_days && (trial_start || trial_end)) {
    throw invalid('trial_period_days', 'cannot be combined with trial_start and trial_end');
  }
  if (Boolean(trial_start) !== Boolean(trial_end)) throw invalid('trial_start', 'comes together with trial_end');
  if (!trial_start || !trial_end) return;
  if (instantOf(trial_end) <= instantOf(trial_start)) throw invalid('trial_end', 'must be after trial_start');
  if (!start_date) return;
  const start = instantOf(start_date);
  if (instantOf(trial_start) > start) throw invalid('trial_start', 'must not be after start_date');
  if (instantOf(trial_end) < start) throw invalid('trial_end', 'must not be before start_date');
}

/** The days of trial: the request's, else those that the recurring fixed prices agree on; usage prices have no say. */
export function trialDays(request: Pick<CreateSubscription, 'trial_period_days'>, prices: readonly Price[]): number {
  if (request.trial_period_days !== null) return request.trial_period_days;
  const stated = prices
    .filter((price) => price.type === 'FIXED' && price.billing_period !== 'ONETIME')
    .map((price) => price.trial_period_days);
  const [first = 0, ...others] = stated;
  if (others.some((days) => days !== first)) {
    throw invalid('trial_period_days', "the plan's recurring fixed prices do not agree on it: state it", { stated });
  }
  return first;
}

export function checkThreshold(threshold: string | null, prices: readonly Price[]): void {
  if (threshold === null) return;
  const value = new Decimal(threshold);
  if (value.isNegative()) throw invalid('auto_invoice_threshold', 'must be zero or greater');
  if (value.gt(0) && prices.some((price) => price.type !== 'USAGE')) {
    throw invalid('auto_invoice_threshold', 'is for plans with usage prices only');
  }
}
