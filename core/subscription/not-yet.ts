/**
 * What requests may name and this version does not do yet. A field that is used is refused by name, never accepted and
 * ignored: a commitment or a coupon that is not applied is a wrong invoice. Empty and zero values ask for nothing.
 */

import { Decimal } from '../decimal.ts';
import { notAllowed } from '../error.ts';
import { parseDecimal } from '../money.ts';
import type { CreateSubscription } from './record.ts';
import { extraLineItemShape, overrideLineItemShape } from './record.ts';

const OF_A_SUBSCRIPTION: readonly (keyof CreateSubscription)[] = [
  'trial_period_days',
  'trial_start',
  'trial_end',
  'auto_invoice_threshold',
  'commitment_amount',
  'commitment_duration',
  'overage_factor',
  'enable_true_up',
  'credit_grants',
  'tax_rate_overrides',
  'subscription_coupons',
  'coupons',
  'line_item_coupons',
  'line_item_commitments',
  'override_entitlements',
  'addons',
  'phases',
  'inheritance',
  'checkout',
  'parent_subscription_id',
];
const OF_AN_OVERRIDE: readonly (keyof typeof overrideLineItemShape.shape)[] = [
  'price_unit_amount',
  'price_unit_tiers',
  'commitment_time_buckets',
];
const OF_AN_EXTRA_LINE: readonly (keyof typeof extraLineItemShape.shape)[] = [
  'price',
  'subscription_phase_id',
  'commitment_amount',
  'commitment_quantity',
  'commitment_type',
  'commitment_overage_factor',
  'commitment_true_up_enabled',
  'commitment_windowed',
  'commitment_duration',
  'commitment_time_buckets',
];

export function refuseNotYet(request: CreateSubscription): void {
  refuseUsed(request, OF_A_SUBSCRIPTION);
  if (request.invoice_billing === 'invoice_to_parent') throw notYet('invoice_billing');
  for (const [index, override] of (request.override_line_items ?? []).entries()) {
    refuseUsed(override, OF_AN_OVERRIDE, `override_line_items[${index}].`);
  }
  for (const [index, line] of (request.line_items ?? []).entries()) {
    refuseUsed(line, OF_AN_EXTRA_LINE, `line_items[${index}].`);
  }
}

/** Refuses the first of the fields that asks for something. */
export function refuseUsed(record: object, fields: readonly string[], prefix = ''): void {
  const values = record as Record<string, unknown>;
  for (const field of fields) if (asksForSomething(values[field])) throw notYet(prefix + field);
}

function notYet(field: string): Error {
  return notAllowed(`${field} is not supported yet`, { field });
}

function asksForSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === false || value === 0) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === 'object') return Object.values(value).some(asksForSomething);
  if (typeof value === 'string' && parseDecimal(value) !== undefined) return !new Decimal(value).isZero();
  return true;
}
