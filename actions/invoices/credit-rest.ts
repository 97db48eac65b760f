/**
 * What the last invoice of a subscription comes to below nothing goes to the prepaid wallet of who is invoiced, when the invoice
 * becomes final: no other comes behind it that could be lowered (docs/rules/invoices.md, "Before the period is over"). So does what
 * a CREDIT invoice credits ("Invoices written by hand").
 */
import { netOf } from '../../core/billing/settle-lines.ts';
import { Decimal, ZERO } from '../../core/decimal.ts';
import type { BillingReason, Invoice } from '../../core/invoice/record.ts';
import { ownKey } from '../../core/wallet/movement-key.ts';
import type { Transaction } from '../../storage/stores.ts';
import { scopeOf } from '../billing/billable-items.ts';
import { creditWallet } from '../wallets/credit-wallet.ts';

/** A change settles its own credits when it is made (settle-change.ts). */
const OF_A_PERIOD: readonly BillingReason[] = ['SUBSCRIPTION_CYCLE', 'PRORATION'];

type AmountOfNet = 'subtotal' | 'total_discount' | 'total_prepaid_credits_applied' | 'total_tax';

/** 0 where nothing is given back. */
export function restOf(invoice: Pick<Invoice, 'billing_reason' | 'invoice_type' | AmountOfNet>): Decimal {
  const isGiven = invoice.invoice_type === 'CREDIT' || OF_A_PERIOD.includes(invoice.billing_reason);
  const rest = netOf(amountsOf(invoice)).negated();
  return isGiven && rest.gt(0) ? rest : ZERO;
}

function amountsOf(invoice: Pick<Invoice, AmountOfNet>) {
  return {
    subtotal: new Decimal(invoice.subtotal),
    total_discount: new Decimal(invoice.total_discount),
    total_prepaid_credits_applied: new Decimal(invoice.total_prepaid_credits_applied),
    total_tax: new Decimal(invoice.total_tax),
  };
}

/** In the transaction that makes it final: once for an invoice. */
export async function creditRest(transaction: Transaction, invoice: Invoice, now: Date): Promise<void> {
  const amount = restOf(invoice);
  if (amount.isZero()) return;
  const { id, customer_id, currency, subscription_id } = invoice;
  await creditWallet(transaction, scopeOf(invoice), {
    customer_id,
    currency,
    amount,
    transaction_reason: 'CREDIT_NOTE',
    reference_type: 'INVOICE',
    reference_id: id,
    idempotency_key: ownKey('rest', id),
    description: invoice.invoice_type === 'CREDIT' ? creditOf(invoice) : 'More was invoiced than the usage costs',
    metadata: { subscription_id: subscription_id ?? '' },
    pays_after_tax: true,
    author: { user_id: '', now },
  });
}

function creditOf({ description, id }: Invoice): string {
  return description || `Credit ${id}`;
}
