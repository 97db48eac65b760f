/**
 * Credits that are bought are paid before anything is used: what they pay for later is the revenue, and their purchase is none
 * (docs/rules/costs.md, "What is revenue").
 */
import type { Invoice } from '../invoice/record.ts';

/** As purchases of credits name what they are done once by. */
export const PURCHASE_KEY = 'topup/wallet_';

export function isPrepayment({
  billing_reason,
  idempotency_key,
}: Pick<Invoice, 'billing_reason' | 'idempotency_key'>): boolean {
  return billing_reason === 'WALLET_AUTO_TOPUP' || Boolean(idempotency_key?.startsWith(PURCHASE_KEY));
}
