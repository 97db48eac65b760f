/** Undoes the creation of a subscription whose opening invoice is not paid (docs/rules/payments.md, "Openings"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { undoRedemptions } from '../../rating/coupons/redeem.ts';
import { activateAfterLowered } from '../effects.ts';
import { voidLocked } from '../invoices/void-invoice.ts';
import { cancelWithin } from '../subscriptions/cancel-subscription.ts';

type UndoneOpening = {
  readonly id: string;
  readonly invoice_id: string;
  readonly reason: string;
  readonly author: Author;
};

/** Cancels the subscription, which remains as a record, voids its invoice and releases its coupons. */
export async function undoOpening(
  stores: Stores,
  transaction: Transaction,
  { scope, id, invoice_id, reason, author }: UndoneOpening & { readonly scope: Scope },
): Promise<void> {
  const request = {
    id,
    cancellation_type: 'immediate',
    cancel_at: null,
    invoice_policy: 'skip',
    proration_behavior: 'none',
    reason,
    author,
  } as const;
  await cancelWithin(stores, transaction, { scope, request });
  const locked = await lockInvoice(transaction, scope, invoice_id);
  const { lowered } = await voidLocked(stores, transaction, { ...locked, metadata: null, author });
  await activateAfterLowered(stores, transaction, { lowered, by: author });
  await undoRedemptions(id, { scope, transaction, author });
}
