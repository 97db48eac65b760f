/**
 * The keys of invoices that are made by themselves, and once (docs/rules/invoices.md, "Charged once"). Callers state keys of invoices, too, and none of
 * theirs is one of these: it would be taken for the period that it keeps from being billed, or for credits that were bought.
 */
import { formatMs, type Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';

type DraftKeyTerms = { readonly subscription_id: string; readonly period: Period; readonly reason: string };

/** By which a draft that is asked for again is known: one per subscription, period (to the minute) and billing reason. */
export function toDraftKey({ subscription_id, period, reason }: DraftKeyTerms): string {
  const minute = (instant: Milliseconds) => formatMs(instant).slice(0, 16);
  return [subscription_id, minute(period.start), minute(period.end), reason].join('/');
}

/** Of what a change of a subscription credits and charges; `change` says what it did. */
export function toChangeKey(subscription_id: string, change: string): string {
  return [subscription_id, 'SUBSCRIPTION_UPDATE', change].join('/');
}

const PURCHASE = 'topup/wallet_';

/** Of credits that are bought for a wallet under a key. */
export function toPurchaseKey(wallet_id: string, key: string): string {
  return `topup/${wallet_id}/${key}`;
}

export function isPurchaseKey(key: string): boolean {
  return key.startsWith(PURCHASE);
}

/** Begin as keys of ours do: with an id, so that no key of another kind is refused. */
export const RESERVED_INVOICE_KEYS = /^(topup\/wallet_|subs_[0-9A-Z]{26}\/)/;
