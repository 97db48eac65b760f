/**
 * Creates a checkout session that a client requests directly: for a new subscription, or for a purchase of credits that is not paid yet.
 */
import { checkCheckoutParams } from '../../../core/catalog/customer/checkout-params.ts';
import { FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { CheckoutConfiguration, CreateCheckoutSession } from '../../../core/payments/checkout/record.ts';
import { checkPayable } from '../../../core/payments/request.ts';
import { createSubscriptionShape } from '../../../core/subscriptions/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import type { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { checkActive, lockWallet } from '../../credits/wallets/lock-wallet.ts';
import { lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { addPurchaseCheckout, checkNoWalletCheckout } from './purchase-checkout.ts';
import { openCheckoutPage } from './start-checkout.ts';
import { checkSameCheckout, findCheckoutByKey, subscribeOnce } from './subscribe-once.ts';

type CreateCheckoutInput = { readonly request: CreateCheckoutSession; readonly author: Author };

export async function createCheckout(
  stores: Stores,
  scope: Scope,
  { request, author }: CreateCheckoutInput,
): Promise<CheckoutSessionModel> {
  checkCheckoutParams(request);
  const { action } = request;
  if (action === 'modify_subscription' || action === 'add_addon')
    throw notAllowed(`action ${action} is not supported yet`, { field: 'action' });
  return action === 'create_subscription'
    ? subscribe(stores, scope, { request, author })
    : payPurchaseOnce(stores, scope, { request, author });
}

/** Returns the parameters of the requested action; refuses parameters of the other actions. */
function requireParams<Field extends keyof CheckoutConfiguration>(
  { configuration }: CreateCheckoutSession,
  field: Field,
): NonNullable<CheckoutConfiguration[Field]> {
  const params = configuration?.[field];
  if (!params) throw invalid(`configuration.${field}`, 'is required');
  const other = Object.entries(configuration ?? {}).find(([name, value]) => name !== field && value !== null);
  if (other) throw invalid(`configuration.${other[0]}`, 'does not go with the action');
  return params;
}

async function subscribe(
  stores: Stores,
  scope: Scope,
  { request, author }: CreateCheckoutInput,
): Promise<CheckoutSessionModel> {
  const { subscription_id, ...terms } = requireParams(request, 'create_subscription_params');
  const { customer_external_id: external_customer_id, action: _a, configuration: _c, ...checkout } = request;
  if (subscription_id)
    throw invalid('configuration.create_subscription_params.subscription_id', 'is set by the service');
  const subscription = createSubscriptionShape.parse({ ...terms, external_customer_id, checkout });
  const { checkout_session } = await subscribeOnce(stores, scope, subscription, author);
  return checkout_session!;
}

async function payPurchaseOnce(
  stores: Stores,
  scope: Scope,
  { request, author }: CreateCheckoutInput,
): Promise<CheckoutSessionModel> {
  const known = await findSamePurchase(stores, scope, request);
  if (known) return openCheckoutPage(stores, known, author);
  try {
    const add = (transaction: Transaction) => addSession(transaction, scope, { request, author });
    return await openCheckoutPage(stores, await retryTransaction(stores, add), author);
  } catch (error) {
    if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    const first = await findSamePurchase(stores, scope, request);
    if (!first) throw error;
    return openCheckoutPage(stores, first, author);
  }
}

async function findSamePurchase(
  { postgres }: Stores,
  scope: Scope,
  request: CreateCheckoutSession,
): Promise<CheckoutSessionModel | undefined> {
  const { idempotency_key, customer_external_id, action, payment_provider } = request;
  const wallet_topup_params = requireParams(request, 'wallet_topup_params');
  const known = await findCheckoutByKey(postgres, scope, idempotency_key);
  if (!known) return undefined;
  const { id: customer_id } = await CustomerModel.fetchExternal(scope, customer_external_id, postgres);
  return checkSameCheckout(known, {
    customer_id,
    action,
    payment_provider,
    configuration: { wallet_topup_params },
  });
}

async function addSession(
  transaction: Transaction,
  scope: Scope,
  { request, author }: CreateCheckoutInput,
): Promise<CheckoutSessionModel> {
  const params = requireParams(request, 'wallet_topup_params');
  const { customer_external_id: _e, action: _a, configuration: _c, ...checkout } = request;
  const customer = await CustomerModel.fetchExternal(scope, request.customer_external_id, transaction);
  const wallet_transaction = await findPurchase(transaction, scope, params);
  const { invoice } = await lockInvoice(transaction, scope, wallet_transaction.reference_id!);
  checkPayable(invoice);
  const wallet = await lockWallet(transaction, scope, params.wallet_id);
  if (wallet.customer_id !== customer.id)
    throw invalid('customer_external_id', `is not the customer of wallet ${wallet.id}`);
  checkActive(wallet);
  await checkNoWalletCheckout(transaction, wallet);
  return addPurchaseCheckout(transaction, wallet, {
    checkout,
    wallet_transaction,
    invoice_id: invoice.id,
    is_invoice_retained: true,
    author,
  });
}

/** Finds the pending purchase that the request names, or the only one of the wallet. */
async function findPurchase(
  transaction: Transaction,
  scope: Scope,
  { wallet_id, wallet_transaction_id: id }: NonNullable<CheckoutConfiguration['wallet_topup_params']>,
): Promise<WalletTransactionModel> {
  const wallet = await WalletModel.fetch(scope, wallet_id, { database: transaction });
  const pending = await WalletTransactionModel.in(wallet, transaction).where({
    wallet_id,
    transaction_status: 'pending',
    transaction_reason: 'PURCHASED_CREDIT_INVOICED',
    ...(id ? { id } : {}),
  });
  const [only, another] = pending;
  const field = 'configuration.wallet_topup_params.wallet_transaction_id';
  if (!only) throw invalid(field, 'names no purchase of the wallet that waits for its payment');
  if (another) throw invalid(field, 'is required: several purchases of the wallet wait for their payment');
  return only;
}
