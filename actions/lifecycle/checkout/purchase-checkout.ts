/** Checkout session of a purchase of credits (docs/rules/checkout.md). A wallet has at most one open session. */
import type { CheckoutParams } from '../../../core/catalog/customer/checkout-params.ts';
import { alreadyExists } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import type { WalletModel } from '../../../storage/models/credits/wallet.ts';
import type { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { addCheckoutSession, startCheckout } from './start-checkout.ts';

export async function checkNoWalletCheckout(transaction: Transaction, wallet: WalletModel): Promise<void> {
  const session = await CheckoutSessionModel.findOpen(wallet, { wallet_id: wallet.id }, transaction);
  if (session)
    throw alreadyExists('a checkout of this wallet is open: pay it, or archive its session', {
      field: 'checkout',
      checkout_session_id: session.id,
    });
}

type PurchaseCheckout = {
  readonly checkout: CheckoutParams;
  readonly wallet_transaction: WalletTransactionModel;
  readonly invoice_id: string | null;
  readonly is_invoice_retained?: boolean;
  readonly author: Author;
};

/** Adds the session of a purchase. `transaction` has locked the wallet, and has created or locked the invoice. */
export async function addPurchaseCheckout(
  transaction: Transaction,
  wallet: WalletModel,
  { checkout, wallet_transaction, invoice_id, is_invoice_retained = false, author }: PurchaseCheckout,
): Promise<CheckoutSessionModel> {
  const { id: wallet_id, customer_id } = wallet;
  const session = await addCheckoutSession(transaction, wallet, {
    checkout,
    action: 'wallet_topup',
    customer_id,
    wallet_id,
    is_invoice_retained,
    configuration: { wallet_topup_params: { wallet_id, wallet_transaction_id: wallet_transaction.id } },
    author,
  });
  const invoice = await InvoiceModel.fetch(wallet, invoice_id!, { database: transaction });
  return startCheckout(transaction, { session, invoice, saves_payment_method: false, author });
}

/** Finds the newest session of an invoice. */
export async function findCheckoutOfInvoice(
  database: Database,
  scope: Scope,
  checkout_invoice_id: string | null,
): Promise<CheckoutSessionModel | null> {
  if (checkout_invoice_id === null) return null;
  const [newest] = await CheckoutSessionModel.in(scope, database)
    .where({ checkout_invoice_id })
    .orderBy('id', 'desc')
    .limit(1);
  return newest ?? null;
}
