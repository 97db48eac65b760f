/** Validates a payment of an invoice before anything is written (docs/rules/payments.md, "Making a payment"). */
import { Decimal } from '../foundation/decimal.ts';
import { invalid, notAllowed } from '../foundation/error.ts';
import { minorUnits } from '../foundation/money.ts';
import type { Invoice } from '../invoicing/invoice/record.ts';
import type { CreatePayment, Payment, PaymentGateway, PaymentMethodType } from './record.ts';

type PayableTerms = Pick<
  Invoice,
  'id' | 'invoice_status' | 'payment_status' | 'amount_remaining' | 'currency' | 'invoice_number'
>;

/** The invoice must be final, with a remaining amount, and without a payment in progress. */
export function checkPayable(invoice: PayableTerms): void {
  const { id, invoice_status, payment_status, amount_remaining } = invoice;
  const about = { invoice_id: id, invoice_status, payment_status };
  if (invoice_status !== 'FINALIZED')
    throw notAllowed(`an invoice that is ${invoice_status} cannot be paid`, { field: 'destination_id', ...about });
  if (new Decimal(amount_remaining).lte(0))
    throw notAllowed('nothing of this invoice remains to be paid', { field: 'destination_id', ...about });
  if (payment_status === 'PROCESSING')
    throw notAllowed('this invoice is being paid: wait until that payment has ended', {
      field: 'destination_id',
      ...about,
    });
}

/** A charge is at most the remaining amount; OFFLINE money may exceed it. */
export function checkAmount(
  { amount, currency, method }: { amount: string; currency: string; method: PaymentMethodType },
  invoice: PayableTerms,
): void {
  if (currency.toLowerCase() !== invoice.currency)
    throw invalid('currency', `is ${currency.toLowerCase()}, the invoice is in ${invoice.currency}`);
  const value = new Decimal(amount);
  if (value.lte(0)) throw invalid('amount', 'must be more than 0');
  if (value.decimalPlaces() > minorUnits(invoice.currency))
    throw invalid('amount', `has more decimals than ${invoice.currency}`);
  if (method !== 'OFFLINE' && value.gt(invoice.amount_remaining))
    throw invalid('amount', `is more than what remains to be paid, ${invoice.amount_remaining}`);
}

/** Returns the payment method. OFFLINE and CREDITS payments must not have the fields of a charge at a provider. */
export function parsePaymentMethod(request: CreatePayment): PaymentMethodType {
  const { payment_method_type: method } = request;
  if (method === 'UPI')
    throw invalid('payment_method_type', `${method} is not supported yet`, {
      allowed: ['OFFLINE', 'CREDITS', 'CARD', 'ACH', 'PAYMENT_LINK'],
    });
  if (request.gateway_options !== null) throw invalid('gateway_options', 'is not supported yet');
  if (method !== 'OFFLINE' && method !== 'CREDITS') {
    if (method === 'PAYMENT_LINK' && request.payment_method_id)
      throw invalid('payment_method_id', 'is chosen by the customer who opens the link');
    return method;
  }
  const ofCharges = ['payment_gateway', 'success_url', 'cancel_url', 'save_card_and_make_default'] as const;
  // An OFFLINE payment has no payment method. A CREDITS payment names its wallet in `payment_method_id`.
  const strange = method === 'OFFLINE' ? (['payment_method_id', ...ofCharges] as const) : ofCharges;
  for (const field of strange) if (request[field]) throw invalid(field, `does not go with ${method}`);
  return method;
}

export type GatewayTerms = {
  readonly moves_money: boolean;
  /** Whether the gateway needs no connection, or has one in this environment. */
  readonly is_connected: boolean;
};

/**
 * Returns the gateway if it is implemented, connected and allowed. A production environment refuses a gateway that
 * moves no money.
 */
export function checkGateway(
  gateway: PaymentGateway | null | undefined,
  environment_type: 'development' | 'production',
  implemented: Readonly<Record<string, GatewayTerms>>,
): PaymentGateway {
  const allowed = Object.keys(implemented).filter((name) => implemented[name]!.is_connected);
  if (!gateway)
    throw invalid(
      'payment_gateway',
      'is required: neither the payment method nor the setting payment_config names one',
      { allowed },
    );
  const terms = implemented[gateway];
  if (!terms) throw invalid('payment_gateway', `${gateway} is not there yet`, { allowed });
  if (!terms.is_connected)
    throw invalid('payment_gateway', `this environment has no connection to ${gateway}: create it first`, { allowed });
  if (!terms.moves_money && environment_type === 'production')
    throw invalid('payment_gateway', `${gateway} moves no money: it is for environments of the type development alone`);
  return gateway;
}

/** Returns the first field that differs from the payment with this key; null if the requests are equal. */
export function findDifferingField(payment: Payment, request: CreatePayment): string | null {
  const requested = {
    destination_id: request.destination_id,
    payment_method_type: request.payment_method_type,
    currency: request.currency.toLowerCase(),
  };
  for (const [field, value] of Object.entries(requested))
    if (payment[field as keyof typeof requested] !== value) return field;
  // An omitted field was derived by the service, so it cannot differ.
  const { payment_method_id, payment_gateway } = request;
  if (payment_method_id && payment.payment_method_id !== payment_method_id) return 'payment_method_id';
  if (payment_gateway && payment.payment_gateway !== payment_gateway) return 'payment_gateway';
  return new Decimal(payment.amount).eq(request.amount) ? null : 'amount';
}
