/**
 * Payments that only the provider of a connection can end: charges without an outcome, and void pages that it may still show. Until they
 * have ended, the connection cannot be archived, and their customers cannot be unlinked (docs/integrations/README.md).
 */
import { OPEN_CHECKOUTS } from '../../core/payments/checkout/record.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../storage/models/foundation/connection.ts';
import { CheckoutSessionModel } from '../../storage/models/payments/checkout-session.ts';
import { PaymentModel } from '../../storage/models/payments/payment.ts';

type PaymentOwner = {
  readonly connection: ConnectionModel;
  /** Default: all customers. */
  readonly customer_id?: string;
};
type UnendedPayment = { readonly payment_id: string; readonly why: string };

/**
 * Finds a charge without an outcome, or a page that can be paid. The caller has locked the connection, so that no charge begins meanwhile.
 */
export async function findOpenCharge(database: Database, owner: PaymentOwner): Promise<UnendedPayment | null> {
  const [charge] = await buildRequestedQuery(database, owner)
    .whereIn('payment_status', ['INITIATED', 'PROCESSING'])
    .select('id')
    .limit(1);
  if (!charge) return null;
  return { payment_id: charge.id, why: `the payment ${charge.id} has no outcome yet: wait for it, or void its page` };
}

export async function findUnclosedPage(database: Database, owner: PaymentOwner): Promise<UnendedPayment | null> {
  const [page] = await buildUnclosedPagesQuery(database, owner).limit(1);
  if (!page) return null;
  const reason = page.close_failures > 0 ? page.error_message : 'wait for it';
  return { payment_id: page.id, why: `the page of the payment ${page.id} is not closed yet: ${reason}` };
}

/** Finds a void page whose checkout waits for another payment of its invoice. */
export async function findUnendedCheckout(database: Database, owner: PaymentOwner): Promise<UnendedPayment | null> {
  const open = CheckoutSessionModel.in(owner.connection, database)
    .whereIn('checkout_status', [...OPEN_CHECKOUTS])
    .select('id');
  const [page] = await buildUnclosedPagesQuery(database, owner).whereIn('checkout_session_id', open).limit(1);
  if (!page) return null;
  const { id: payment_id, checkout_session_id } = page;
  return {
    payment_id,
    why: `the checkout ${checkout_session_id} of the payment ${payment_id} has not ended yet: wait for it`,
  };
}

/** Void pages that the provider may still show. */
export function buildUnclosedPagesQuery(database: Database, owner: PaymentOwner) {
  return buildRequestedQuery(database, owner)
    .where({ payment_status: 'VOIDED', payment_method_type: 'PAYMENT_LINK' })
    .whereNotNull('next_attempt_at');
}

/** Payments that were requested from the provider of the connection. */
function buildRequestedQuery(database: Database, { connection, customer_id }: PaymentOwner) {
  return PaymentModel.in(connection, database)
    .where({ status: 'published', ...(customer_id === undefined ? {} : { customer_id }) })
    .whereRaw('payment_gateway = ?', [connection.provider_type])
    .whereNotNull('gateway_tracking_id');
}
