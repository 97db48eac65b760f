/**
 * Refuses request fields that this version does not support. Such a field is refused by name if it has content: a
 * commitment or a coupon that is accepted and ignored would make the invoice wrong. Empty and zero values count as
 * absent.
 */

import { Decimal } from '../foundation/decimal.ts';
import { invalid, notAllowed } from '../foundation/error.ts';
import { parseDecimal } from '../foundation/money.ts';
import type { CreateSubscription } from './record.ts';

export function refuseUnsupported(request: CreateSubscription): void {
  refuseInTerms(request);
  for (const [index, phase] of (request.phases ?? []).entries()) {
    refuseInTerms(phase, `phases[${index}].`);
  }
}

function refuseInTerms({ line_items }: Pick<CreateSubscription, 'line_items'>, prefix = ''): void {
  for (const [index, line] of (line_items ?? []).entries()) {
    if (line.subscription_phase_id)
      throw invalid(
        `${prefix}line_items[${index}].subscription_phase_id`,
        'is for a subscription that is there: a phase of a new one states its line_items itself',
      );
  }
}

export function refuseUsed(record: object, fields: readonly string[], prefix = ''): void {
  const values = record as Record<string, unknown>;
  for (const field of fields) if (hasContent(values[field])) throw notYet(prefix + field);
}

function notYet(field: string): Error {
  return notAllowed(`${field} is not supported yet`, { field });
}

/** Whether the value has content. Empty and zero values have none. */
export function hasContent(value: unknown): boolean {
  if (value === null || value === undefined || value === '' || value === false || value === 0) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === 'object') return Object.values(value).some(hasContent);
  if (typeof value === 'string' && parseDecimal(value) !== undefined) return !new Decimal(value).isZero();
  return true;
}
