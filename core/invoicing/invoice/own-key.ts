/**
 * Idempotency keys of invoices that the service creates once (docs/rules/invoices.md, "Charged once"). A key of this form from a caller is
 * refused: its invoice would block the billing of a period, or be mistaken for a purchase of credits.
 */
import { formatMs, type Milliseconds } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';

type DraftKeyTerms = { readonly subscription_id: string; readonly period: Period; readonly reason: string };

/**
 * Key of a draft: one per subscription, period (to the minute) and billing reason. A repeated request finds the
 * existing draft.
 */
export function toDraftKey({ subscription_id, period, reason }: DraftKeyTerms): string {
  const minute = (instant: Milliseconds) => formatMs(instant).slice(0, 16);
  return [subscription_id, minute(period.start), minute(period.end), reason].join('/');
}

/** Key of the invoice with the credits and charges of a subscription change. `change` identifies the change. */
export function toChangeKey(subscription_id: string, change: string): string {
  return [subscription_id, 'SUBSCRIPTION_UPDATE', change].join('/');
}

const PURCHASE = 'topup/wallet_';

/** Key of a purchase of credits for a wallet; `key` is the caller's. */
export function toPurchaseKey(wallet_id: string, key: string): string {
  return `topup/${wallet_id}/${key}`;
}

export function isPurchaseKey(key: string): boolean {
  return key.startsWith(PURCHASE);
}

/** Matches the beginning of the service's own keys, including an id, so that other keys of callers are accepted. */
export const RESERVED_INVOICE_KEYS = /^(topup\/wallet_|subs_[0-9A-Z]{26}\/)/;
