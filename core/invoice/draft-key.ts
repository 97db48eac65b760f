/** By which a draft that is asked for again is known (docs/rules/invoices.md, "Charged once"). */
import { formatMs, type Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { BillingReason } from './record.ts';

type Drafted = { readonly subscription_id: string; readonly period: Period; readonly reason: BillingReason };

/** One draft per subscription, period (to the minute) and billing reason. */
export function draftKey({ subscription_id, period, reason }: Drafted): string {
  const minute = (instant: Milliseconds) => formatMs(instant).slice(0, 16);
  return [subscription_id, minute(period.start), minute(period.end), reason].join('/');
}
