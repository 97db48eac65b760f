/** Creates a subscription at most once per idempotency key of its checkout (docs/rules/checkout.md, "Once per key"). */
import { alreadyExists, FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { findDifferingField } from '../../../core/payments/checkout/same-request.ts';
import type { CreateSubscription } from '../../../core/subscriptions/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadWithLines } from '../../invoicing/records/invoice-records.ts';
import { loadRequestedCustomer } from '../../subscriptions/load-requested-customer.ts';
import { createSubscription, type NewSubscription } from '../subscriptions/create-subscription.ts';
import { openCheckoutPage } from './start-checkout.ts';
import { toSubscriptionParams } from './subscription-checkout.ts';

/** The lines are absent if an earlier request created the subscription. */
type Subscribed = Omit<NewSubscription, 'line_items'> & Partial<Pick<NewSubscription, 'line_items'>>;

export async function subscribeOnce(
  stores: Stores,
  scope: Scope,
  request: CreateSubscription,
  author: Author,
): Promise<Subscribed> {
  const known = await findSameCheckout(stores, scope, request);
  if (known) return resumeCheckout(stores, known, author);
  try {
    return await createSubscription(stores, scope, request, author);
  } catch (error) {
    // A concurrent request with this key may have created the subscription.
    if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    const first = await findSameCheckout(stores, scope, request);
    if (!first) throw error;
    return resumeCheckout(stores, first, author);
  }
}

/**
 * Finds the session that has the key of the request. Throws if the earlier request with this key had other parameters.
 */
async function findSameCheckout(
  { postgres }: Stores,
  scope: Scope,
  request: CreateSubscription,
): Promise<CheckoutSessionModel | undefined> {
  const { checkout } = request;
  const session = checkout && (await findCheckoutByKey(postgres, scope, checkout.idempotency_key));
  if (!session) return undefined;
  const { id: customer_id } = await postgres.transaction((transaction) =>
    loadRequestedCustomer(scope, request, transaction),
  );
  const configuration = { create_subscription_params: toSubscriptionParams('', request) };
  const { payment_provider } = checkout;
  const requested = { customer_id, action: 'create_subscription', payment_provider, configuration } as const;
  return checkSameCheckout(session, requested);
}

export function checkSameCheckout(
  session: CheckoutSessionModel,
  requested: Parameters<typeof findDifferingField>[1],
): CheckoutSessionModel {
  const field = findDifferingField(session, requested);
  if (field === null) return session;
  throw alreadyExists(`the idempotency_key is that of a checkout session with another ${field}`, {
    field,
    id: session.id,
  });
}

export async function findCheckoutByKey(
  database: Stores['postgres'],
  scope: Scope,
  idempotency_key: string | null,
): Promise<CheckoutSessionModel | undefined> {
  if (!idempotency_key) return undefined;
  const [known] = await CheckoutSessionModel.in(scope, database).where({ idempotency_key });
  return known;
}

/** Continues an earlier request that may have stopped before its page was open. */
async function resumeCheckout(stores: Stores, known: CheckoutSessionModel, author: Author): Promise<Subscribed> {
  const checkout_session = await openCheckoutPage(stores, known, author);
  const database = stores.postgres;
  const { checkout_invoice_id: invoice_id } = known;
  const invoice = invoice_id ? await InvoiceModel.fetch(known, invoice_id, { database }) : null;
  return {
    subscription: await SubscriptionModel.fetch(known, known.subscription_id!, { database }),
    latest_invoice: invoice && (await loadWithLines(invoice, database)),
    checkout_session,
  };
}

/** Continues the creation of a subscription with a checkout, if it has one. */
export async function resumeSubscriptionCheckout(
  stores: Stores,
  scope: Scope,
  { subscription_id, author }: { subscription_id: string; author: Author },
): Promise<Subscribed | null> {
  const [known] = await CheckoutSessionModel.in(scope, stores.postgres).where({ subscription_id });
  return known ? resumeCheckout(stores, known, author) : null;
}
