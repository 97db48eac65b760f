/**
 * Starts a checkout: one transaction creates the subscription or purchase, its session and the payment of the page. The page is opened
 * after the commit (docs/rules/checkout.md, "From the request to the page").
 */
import type { CheckoutParams } from '../../../core/catalog/customer/checkout-params.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import {
  type CheckoutAction,
  type CheckoutConfiguration,
  computePageEnd,
} from '../../../core/payments/checkout/record.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import { computeOutcomeCheckAt } from '../../../core/payments/schedule.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { emit } from '../../foundation/emit.ts';
import { loadUsableGateway } from '../../invoicing/collection/find-payment-method.ts';
import { processPayment } from '../payments/process-payment.ts';
import { markCompleted } from './complete-checkout.ts';

type NewCheckout = {
  readonly checkout: CheckoutParams;
  readonly action: CheckoutAction;
  readonly customer_id: string;
  readonly configuration: Partial<CheckoutConfiguration>;
  readonly author: Author;
} & Partial<Pick<CheckoutSessionModel, 'subscription_id' | 'wallet_id' | 'is_invoice_retained'>>;

/** Adds the session without its invoice. `startCheckout` adds the invoice, because it is created after the session. */
export async function addCheckoutSession(
  transaction: Transaction,
  scope: Scope,
  { checkout, configuration, author, ...target }: NewCheckout,
): Promise<CheckoutSessionModel> {
  const { payment_provider, payment_provider_config, metadata, ...addresses } = checkout;
  await checkProvider(transaction, scope, payment_provider);
  const stamp = createdBy(author);
  const record = {
    ...target,
    ...addresses,
    ...stamp,
    id: newId('checkout_session', author.now.getTime()),
    checkout_status: 'initiated' as const,
    payment_provider,
    payment_provider_config,
    configuration: { ...EMPTY_CONFIGURATION, ...configuration },
    metadata,
    expires_at: computePageEnd(stamp).toISOString(),
  };
  const conflict = 'a checkout session with this idempotency_key exists already, or its target has an open one';
  return CheckoutSessionModel.add(scope, record, { database: transaction, conflict });
}

const EMPTY_CONFIGURATION: CheckoutConfiguration = {
  create_subscription_params: null as never,
  wallet_topup_params: null as never,
  modify_subscription_params: null,
  add_addon_params: null,
};

async function checkProvider(transaction: Transaction, scope: Scope, payment_provider: string): Promise<void> {
  try {
    await loadUsableGateway(transaction, scope, payment_provider as PaymentGateway);
  } catch (error) {
    if (!(error instanceof FarthingError) || error.http_status_code >= 500) throw error;
    throw invalid('payment_provider', `cannot show a payment page: ${error.message}`, {
      ...error.details,
      field: 'payment_provider',
    });
  }
}

type StartedCheckout = {
  readonly session: CheckoutSessionModel;
  readonly invoice: Invoice | null;
  /** Whether the payment method that the customer enters on the page is saved for later invoices. */
  readonly saves_payment_method: boolean;
  readonly author: Author;
};

/** Adds the payment of the page. A session without an amount to pay is completed at once. `transaction` has locked the invoice. */
export async function startCheckout(
  transaction: Transaction,
  { session, invoice, saves_payment_method, author }: StartedCheckout,
): Promise<CheckoutSessionModel> {
  const checkout_invoice_id = invoice?.id ?? null;
  if (!invoice || new Decimal(invoice.amount_remaining).lte(0))
    return markCompleted(transaction, session, { checkout_invoice_id, by: author });
  const record = {
    ...createdBy(author),
    id: newId('payment', author.now.getTime()),
    idempotency_key: `page of ${session.id}`,
    customer_id: invoice.customer_id,
    destination_type: 'INVOICE',
    destination_id: invoice.id,
    invoice_number: invoice.invoice_number ?? null,
    payment_method_type: 'PAYMENT_LINK',
    payment_method_id: '',
    payment_gateway: session.payment_provider,
    amount: invoice.amount_remaining,
    currency: invoice.currency,
    payment_status: 'INITIATED',
    track_attempts: true,
    success_url: session.success_url,
    cancel_url: session.cancel_url ?? session.failure_url,
    save_card_and_make_default: saves_payment_method,
    // If this process stops after the commit, the scheduler opens the page.
    next_attempt_at: computeOutcomeCheckAt(author.now).toISOString(),
    checkout_session_id: session.id,
  };
  const conflict = 'the page of this session exists already';
  const payment = await PaymentModel.add(session, record, { database: transaction, conflict });
  await emit(transaction, 'payment.created', { record: payment, by: author });
  const changes = { checkout_invoice_id, checkout_payment_id: payment.id };
  return CheckoutSessionModel.change(session, changes, { by: author, database: transaction });
}

/** Opens the page of a session, unless it is open or the session has ended. Returns the current session. */
export async function openCheckoutPage(
  stores: Stores,
  { id, checkout_payment_id, ...scope }: CheckoutSessionModel,
  author: Author,
): Promise<CheckoutSessionModel> {
  const database = stores.postgres;
  const payment = checkout_payment_id ? await PaymentModel.fetch(scope, checkout_payment_id, { database }) : null;
  const isUntried = payment?.payment_status === 'INITIATED' && !payment.gateway_tracking_id;
  if (isUntried) await processPayment(stores, scope, { id: payment.id, by: author, isNew: true });
  const session = await CheckoutSessionModel.fetch(scope, id, { database });
  if (!isUntried || session.checkout_status !== 'failed') return session;
  throw notAllowed(`the payment page could not be opened: ${session.failure_reason}`, {
    field: 'payment_provider',
    checkout_session_id: id,
  });
}
