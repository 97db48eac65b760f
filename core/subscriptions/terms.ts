/**
 * An invoice threshold is zero or greater. Only a standalone subscription without fixed prices may have one (docs/rules/invoices.md,
 * "Before the period is over").
 */

import type { Price } from '../catalog/price/record.ts';
import { Decimal } from '../foundation/decimal.ts';
import { invalid } from '../foundation/error.ts';
import type { Subscription } from './record.ts';

export function checkThreshold(
  threshold: string | null,
  prices: readonly Pick<Price, 'type'>[],
  subscription_type: Subscription['subscription_type'] = 'STANDALONE',
): void {
  if (threshold === null) return;
  const value = new Decimal(threshold);
  if (value.isNegative()) throw invalid('auto_invoice_threshold', 'must be zero or greater');
  if (value.isZero()) return;
  if (subscription_type !== 'STANDALONE')
    throw invalid('auto_invoice_threshold', `is for STANDALONE subscriptions, not for ${subscription_type}`);
  if (prices.some((price) => price.type !== 'USAGE'))
    throw invalid('auto_invoice_threshold', 'is for plans with usage prices only');
}

/** Zero and absent thresholds are stored as null. */
export function toStoredThreshold(threshold: string | null): string | null {
  return threshold === null || new Decimal(threshold).isZero() ? null : threshold;
}
