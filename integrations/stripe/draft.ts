/** The draft of a pushed invoice at Stripe, and the checks before it is opened there (docs.stripe.com/api/invoices). */
import type { Stripe } from 'stripe';
import type { PushedInvoice } from '../account.ts';
import { ProviderError } from '../provider-error.ts';
import { fromMinorUnits } from './amounts.ts';
import { toUnixSeconds } from './lines.ts';

/** Minimum distance of a due date, so that it is still in the future when Stripe receives it. */
const DUE_SLACK_SECONDS = 300;

/** Builds a draft without Stripe's own taxes, discounts and loose items: the pushed lines are net and complete. */
export function toStripeDraft(invoice: PushedInvoice): Stripe.InvoiceCreateParams {
  return {
    customer: invoice.provider_customer_id,
    currency: invoice.currency,
    collection_method: 'send_invoice',
    ...toDueDate(invoice.due_date),
    auto_advance: false,
    automatic_tax: { enabled: false },
    discounts: '',
    pending_invoice_items_behavior: 'exclude',
    metadata: { farthing_invoice_id: invoice.invoice_id, farthing_invoice_number: invoice.invoice_number },
  };
}

/** Builds the due date. Stripe refuses one in the past. */
function toDueDate(due_date: string | null): { due_date: number } | { days_until_due: number } {
  const due = due_date === null ? 0 : toUnixSeconds(due_date);
  return due > Date.now() / 1_000 + DUE_SLACK_SECONDS ? { due_date: due } : { days_until_due: 0 };
}

export function checkTotal(
  there: Stripe.Invoice,
  { total, currency, invoice_id }: PushedInvoice,
  integer: number,
): void {
  if (there.total === integer && there.currency === currency) return;
  const found = `${fromMinorUnits(there.total, there.currency)} ${there.currency}`;
  throw new ProviderError(
    'person',
    `the total of ${invoice_id} is ${total} ${currency}, but ${found} at Stripe (${there.id})`,
  );
}

/** Checks the amount due: a balance of the customer at Stripe would change it although the total is right. */
export function checkAmountDue(
  draft: Stripe.Invoice,
  { total, currency, invoice_id }: PushedInvoice,
  integer: number,
): void {
  if (draft.amount_due === integer) return;
  const amount_due = fromMinorUnits(draft.amount_due, draft.currency);
  throw new ProviderError(
    'person',
    `${invoice_id} is over ${total} ${currency}, but with the customer's balance at Stripe ${amount_due} would be due`,
  );
}
