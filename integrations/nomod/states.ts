/**
 * States of Nomod (nomod.com/docs/api-reference/list-invoice, /list-link, /fetch-charges) as they are read here. Nomod does not list the
 * states of a charge. An unknown state is refused, because it may mean that money moved; a person has to decide.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import type { ReportedPayment } from '../../core/payments/provider-payments.ts';
import type { ProviderInvoice } from '../account.ts';
import type { PaymentOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { fromNomodAmount } from './amounts.ts';
import type { NomodCharge, NomodInvoice, NomodLink } from './records.ts';

const INVOICE_STATUSES: Readonly<Record<string, ProviderInvoice['invoice_status']>> = {
  scheduled: 'open',
  unpaid: 'open',
  overdue: 'open',
  paid: 'paid',
  cancelled: 'void',
};

const LINK_STATUSES: Readonly<Record<string, 'open' | 'closed'>> = { enabled: 'open', disabled: 'closed' };

const CHARGE_STATUSES: Readonly<Record<string, ReportedPayment['payment_status']>> = {
  pending: 'pending',
  authorised: 'pending',
  authorized: 'pending',
  paid: 'succeeded',
  partially_refunded: 'refunded',
  refunded: 'refunded',
  failed: 'failed',
  declined: 'failed',
  cancelled: 'failed',
  expired: 'failed',
  voided: 'failed',
};

export function findInvoiceStatus(invoice: NomodInvoice): ProviderInvoice['invoice_status'] {
  return findStatus(INVOICE_STATUSES, invoice);
}

export function isLinkOpen(link: NomodLink): boolean {
  return findStatus(LINK_STATUSES, link) === 'open';
}

function findStatus<Status>(
  statuses: Readonly<Record<string, Status>>,
  { id, status }: { readonly id: string; readonly status: string },
): Status {
  const known = Object.hasOwn(statuses, status) ? statuses[status] : undefined;
  if (known === undefined)
    throw new ProviderError('person', `${id} has the status ${status} at Nomod`, { is_of_record: true });
  return known;
}

/** Whether the charge brought money, which may have been refunded since. */
export function isPaid(charge: NomodCharge): boolean {
  return ['succeeded', 'refunded'].includes(findStatus(CHARGE_STATUSES, charge));
}

/** Sum of all refunds. */
export function readRefunded({ refund_total }: NomodCharge): string {
  return fromNomodAmount(refund_total ?? '0');
}

export function toReportedPayment(charge: NomodCharge): ReportedPayment {
  return {
    provider_payment_id: charge.id,
    payment_status: findStatus(CHARGE_STATUSES, charge),
    amount: fromNomodAmount(charge.total),
    currency: charge.currency.toLowerCase(),
    paid_at: isPaid(charge) ? new Date(charge.created).toISOString() : null,
    refunded_amount: readRefunded(charge),
    provider_tax: null,
  };
}

export function toChargeOutcome(charge: NomodCharge): PaymentOutcome {
  const gateway_payment_id = charge.id;
  switch (findStatus(CHARGE_STATUSES, charge)) {
    case 'succeeded':
    case 'refunded': {
      const refunded_amount = readRefunded(charge);
      const isRefunded = !new Decimal(refunded_amount).isZero();
      return { outcome: 'succeeded', gateway_payment_id, ...(isRefunded ? { refunded_amount } : {}) };
    }
    case 'failed':
      return { outcome: 'failed', gateway_payment_id, error: `${charge.status}: nothing was paid` };
    case 'pending':
      return { outcome: 'processing', gateway_payment_id, url: null, check_at: null };
  }
}
