/**
 * The last invoice of a subscription may be negative (docs/rules/invoices.md, "Before the period is over"). No later invoice could offset
 * that amount. So, at finalization, it lowers the amounts that the subscription still owes; the remainder, which was paid, goes to the
 * prepaid wallet. The whole amount of a CREDIT invoice goes to the wallet ("Invoices written by hand").
 */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import type { BillingReason, Invoice } from '../../../core/invoicing/invoice/record.ts';
import { computeNetTotal } from '../../../core/rating/line-adjustments.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { creditWallet } from '../../credits/wallets/credit-wallet.ts';
import { toScope } from '../../rating/billable-items.ts';
import { giveCredit } from '../credit-notes/give-credit.ts';
import type { ReadyDraft } from './write-final.ts';

/**
 * Billing reasons of invoices whose negative amount is credited when they become final. The credits of a subscription change are settled
 * earlier, when the change is made (settle-change.ts).
 */
const OF_A_PERIOD: readonly BillingReason[] = ['SUBSCRIPTION_CYCLE', 'PRORATION'];

/** Computes the net amount of the invoice. If it is negative, the total of the invoice is 0. */
export function computeInvoiceNet(invoice: Pick<Invoice, AmountOfNet>): Decimal {
  return computeNetTotal(toAmounts(invoice));
}

type AmountOfNet = 'subtotal' | 'total_discount' | 'total_prepaid_credits_applied' | 'total_tax';

/** Computes the amount that the invoice returns to the customer; 0 if it returns nothing. */
export function computeRest(invoice: Pick<Invoice, 'billing_reason' | 'invoice_type' | AmountOfNet>): Decimal {
  const isGiven = invoice.invoice_type === 'CREDIT' || OF_A_PERIOD.includes(invoice.billing_reason);
  const rest = computeInvoiceNet(invoice).negated();
  return isGiven && rest.gt(0) ? rest : ZERO;
}

function toAmounts(invoice: Pick<Invoice, AmountOfNet>) {
  return {
    subtotal: new Decimal(invoice.subtotal),
    total_discount: new Decimal(invoice.total_discount),
    total_prepaid_credits_applied: new Decimal(invoice.total_prepaid_credits_applied),
    total_tax: new Decimal(invoice.total_tax),
  };
}

/**
 * Credits the negative amount of an invoice. Must be called once per invoice, in the transaction that finalizes it and has locked its
 * subscription. Returns the open invoices that the credit lowered.
 */
export async function creditRest(
  transaction: Transaction,
  ready: ReadyDraft,
  now: Date,
): Promise<readonly InvoiceModel[]> {
  const { subscription, line_items: lines } = ready;
  const invoice = { ...ready.invoice, ...ready.changes };
  const amount = computeRest(invoice);
  if (amount.isZero()) return [];
  const author = { user_id: '', now };
  if (invoice.invoice_type !== 'CREDIT' && subscription) {
    const description = 'More was invoiced than the usage costs';
    const leftOver = { invoice, lines, subscription, amount, key: 'rest', reason: 'BILLING_ERROR' } as const;
    return (await giveCredit(transaction, { ...leftOver, description, author })).lowered;
  }
  const { id, customer_id, currency, subscription_id } = invoice;
  await creditWallet(transaction, toScope(invoice), {
    customer_id,
    currency,
    amount,
    transaction_reason: 'CREDIT_NOTE',
    reference_type: 'INVOICE',
    reference_id: id,
    idempotency_key: toOwnKey('rest', id),
    description: describeCredit(invoice),
    metadata: { subscription_id: subscription_id ?? '' },
    pays_after_tax: true,
    author,
  });
  return [];
}

function describeCredit({ description, id }: Pick<Invoice, 'description' | 'id'>): string {
  return description || `Credit ${id}`;
}
