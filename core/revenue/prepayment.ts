/**
 * Credits that are bought are paid before anything is used: what they pay for later is the revenue, and their purchase is none
 * (docs/rules/costs.md, "What is revenue").
 */
import { isPurchaseKey } from '../invoice/own-key.ts';
import type { Invoice } from '../invoice/record.ts';

export function isPrepayment({
  billing_reason,
  idempotency_key,
}: Pick<Invoice, 'billing_reason' | 'idempotency_key'>): boolean {
  return (
    billing_reason === 'WALLET_AUTO_TOPUP' || (typeof idempotency_key === 'string' && isPurchaseKey(idempotency_key))
  );
}
