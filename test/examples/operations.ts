/**
 * The one table of what the worked examples can ask: operation → (given) => result. To add one: write the function in a
 * file beside this one, add its line here, and take its lines out of NOT_YET. A result may be a promise; what is thrown
 * as a validation error counts as `error_code` and `http_status`.
 */
import { type ErrorCode, HTTP_STATUS_BY_ERROR_CODE } from '../../core/foundation/error.ts';
import { stateOfAlert } from './alert-operations.ts';
import { usageWithEntitlement } from './allowance-operations.ts';
import { billingTimeline, classifyOnetime, composeInvoice, onetimeAmount } from './billing-operations.ts';
import {
  applyTwoAdds,
  calculateProration,
  cancelSubscription,
  capCredit,
  changePlan,
  classifyPlanChange,
} from './change-operations.ts';
import {
  applyOverPeriods,
  applyToLine,
  applyToQuantity,
  applyToSubscription,
  applyToWindows,
  trueUp,
} from './commitment-operations.ts';
import type { Result } from './compare.ts';
import { costFigures } from './cost-operations.ts';
import { attachCoupon } from './coupon-operations.ts';
import {
  calculateTax,
  computeInvoice,
  couponApplies,
  discountSingle,
  distributeDiscount,
} from './discount-operations.ts';
import { overageOfGrants, parallelGrants, windowOfGrant } from './entitlement-grant-operations.ts';
import { aggregateEntitlements, nextReset } from './entitlement-operations.ts';
import {
  applyGrant,
  createGrant,
  deferBackoff,
  firstPeriodOfGrant,
  grantAction,
  grantExpiry,
} from './grant-operations.ts';
import { ingestAndQuery, ingestRawBulk } from './ingestion-operations.ts';
import {
  aggregateUsage,
  createMeter,
  evaluateExpression,
  extractQuantity,
  meterMatches,
} from './metering-operations.ts';
import { modifySubscription } from './modify-operations.ts';
import {
  changePayment,
  createCreditNote,
  draftTwice,
  dueDateOf,
  numberInvoice,
  voidCreditNote,
  voidInvoice,
} from './note-operations.ts';
import { movePayment, payInvoice } from './payment-operations.ts';
import {
  calculateBuckets,
  calculateGroupedBuckets,
  calculatePrice,
  createPrice,
  createPriceUnit,
  fromFiat,
  roundAmount,
  subtotal,
  toFiat,
  validateTimeBuckets,
} from './pricing-operations.ts';
import {
  createSubscription,
  endTrial,
  endUnpaidTrial,
  settingsOfPayment,
  trialWindow,
} from './subscription-operations.ts';
import { scanThreshold, tierContinuity } from './threshold-operations.ts';
import { anchor, daysBetween, grantPeriodEnd, periodEnd, starts } from './time-operations.ts';
import {
  autoTopup,
  balanceInRealTime,
  bonus,
  breakdown,
  create,
  credit,
  debit,
  debitTwice,
  modify,
  payWithWallets,
  topUp,
} from './wallet-operations.ts';

export type Operation = (given: Result) => Result | Promise<Result>;

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'price.calculate': calculatePrice,
  'price.calculate_bucketed': calculateBuckets,
  'price.calculate_bucketed_grouped': calculateGroupedBuckets,
  'price.create': createPrice,
  'price_unit.create': createPriceUnit,
  'price_unit.from_fiat': fromFiat,
  'price_unit.to_fiat': toFiat,
  'commitment.validate_buckets': validateTimeBuckets,
  'billing.usage_with_entitlement': usageWithEntitlement,
  'threshold.scan': scanThreshold,
  'threshold.tier_continuity': tierContinuity,
  'commitment.apply': applyToLine,
  'commitment.apply_quantity': applyToQuantity,
  'commitment.windowed': applyToWindows,
  'commitment.subscription': applyToSubscription,
  'commitment.cumulative': applyOverPeriods,
  'commitment.true_up': trueUp,
  'money.round': roundAmount,
  'invoice.subtotal': subtotal,
  'coupon.attach': attachCoupon,
  'coupon.discount': discountSingle,
  'coupon.applies': couponApplies,
  'invoice.distribute_discount': distributeDiscount,
  'invoice.compute': computeInvoice,
  'tax.calculate': calculateTax,
  'credit_note.create': createCreditNote,
  'credit_note.void': voidCreditNote,
  'invoice.void': voidInvoice,
  'invoice.number': numberInvoice,
  'invoice.payment_transition': changePayment,
  'invoice.due_date': dueDateOf,
  'invoice.create_draft_twice': draftTwice,
  'billing.compose': composeInvoice,
  'billing.timeline': billingTimeline,
  'billing.classify_onetime': classifyOnetime,
  'billing.onetime_amount': onetimeAmount,
  'billing.next_period_end': periodEnd,
  'billing.calendar_anchor': anchor,
  'usage.window_starts': starts,
  'time.calendar_days': daysBetween,
  'credit_grant.period_end': grantPeriodEnd,
  'credit_grant.first_period': firstPeriodOfGrant,
  'credit_grant.expiry': grantExpiry,
  'credit_grant.apply': applyGrant,
  'credit_grant.create': createGrant,
  'credit_grant.action': grantAction,
  'credit_grant.defer_backoff': deferBackoff,
  'alert.state': stateOfAlert,
  'meter.create': createMeter,
  'meter.matches': meterMatches,
  'expression.eval': evaluateExpression,
  'meter.extract': extractQuantity,
  'usage.aggregate': aggregateUsage,
  'events.ingest_and_query': ingestAndQuery,
  'POST /events/raw/bulk': ingestRawBulk,
  'entitlement.aggregate': aggregateEntitlements,
  'entitlement.next_reset': nextReset,
  'entitlement.grant_window': windowOfGrant,
  'entitlement.grant_overage': overageOfGrants,
  'entitlement.parallel_grants': parallelGrants,
  'subscription.trial_window': trialWindow,
  'subscription.create': createSubscription,
  'subscription.payment_settings': settingsOfPayment,
  'trial.end': endTrial,
  'trial.end_payment': endUnpaidTrial,
  'proration.calculate': calculateProration,
  'proration.cap_credit': capCredit,
  'proration.apply_two_adds': applyTwoAdds,
  'subscription.modify': modifySubscription,
  'subscription.change_plan': changePlan,
  'subscription.cancel': cancelSubscription,
  'plan_change.classify': classifyPlanChange,
  'payment.transition': movePayment,
  'invoice.payment': payInvoice,
  'wallet.top_up': topUp,
  'wallet.credit': credit,
  'wallet.debit': debit,
  'wallet.debit_twice_same_idempotency_key': debitTwice,
  'wallet.realtime_balance': balanceInRealTime,
  'wallet.create': create,
  'invoice.pay_with_wallets': payWithWallets,
  'wallet.modify': modify,
  'wallet.bonus_credits': bonus,
  'wallet.breakdown': breakdown,
  'wallet.auto_topup': autoTopup,
  'cost.analytics': costFigures,
  'error.map': ({ code }) => ({ http_status: HTTP_STATUS_BY_ERROR_CODE[code as ErrorCode] }),
};

/** What others do and we do otherwise, so that there is nothing to map. */
const NOT_OURS: readonly string[] = [
  // Commitments of a line and of its subscription at once: refused when they are stated.
  'commitment.line_item: commitment.apply_split_charges',
  // A credit that lowers the lines of an opening invoice: a plan change keeps the subscription, and nets credits as lines of their own.
  'plan_change.opening_adjustment: plan_change.apply_opening_credit',
];

/** Areas and operations, or single rows of them, that nobody has mapped yet. The list only gets shorter. */
export const NOT_YET: readonly string[] = [...NOT_OURS];
