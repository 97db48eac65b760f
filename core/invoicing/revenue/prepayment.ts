/**
 * A purchase of credits is not revenue: it is paid before anything is used. The usage that the credits pay for later is the revenue
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
