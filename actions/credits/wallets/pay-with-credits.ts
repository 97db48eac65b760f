/**
 * Pays an invoice with a postpaid wallet (docs/rules/payments.md, "Making a payment", CREDITS). The wallet pays no more than its balance
 * and than its share of the invoice.
 */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { derivePaidTypes } from '../../../core/credits/wallet/real-time.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { buildStateError, type FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { computeLineNet } from '../../../core/rating/adjustment-fields.ts';
import { isPaidType } from '../../../core/rating/prepaid.ts';
import { computePayableMoney, toCredits } from '../../../core/rating/wallet/rates.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { lockWalletInOrder } from './lock-wallet.ts';
import { moveCredits } from './move-credits.ts';
import { isPurchase } from './pending-credits.ts';
import { computeReference, loadUnreservedCredits } from './prepaid-wallets.ts';

/** Returns the requested wallet or the customer's postpaid wallet; throws if it cannot pay the amount. */
export async function findPayingWallet(
  database: Database,
  invoice: Invoice,
  { wallet_id, amount, now }: { wallet_id: string | null; amount: string; now: Date },
): Promise<WalletModel> {
  const wallet = wallet_id
    ? await loadRequestedWallet(database, invoice, wallet_id)
    : await findPostpaidWallet(database, invoice);
  if (!wallet)
    throw invalid('payment_method_id', `the customer has no postpaid wallet in ${invoice.currency} that is active`);
  const refusal = toRefusal(await computePayable(database, invoice, { wallet, now }), amount);
  if (refusal) throw refusal;
  return wallet;
}

async function loadRequestedWallet(database: Database, invoice: Invoice, id: string): Promise<WalletModel> {
  const wallet = await WalletModel.fetch(invoice, id, { database });
  const { customer_id, currency } = invoice;
  if (wallet.customer_id !== customer_id) throw invalid('payment_method_id', 'is not a wallet of who is invoiced');
  if (wallet.currency !== currency) throw invalid('payment_method_id', `the wallet is in ${wallet.currency}`);
  if (wallet.wallet_type !== 'POST_PAID')
    throw invalid('payment_method_id', 'a prepaid wallet lowers invoices when they become final, and pays none');
  if (wallet.wallet_status !== 'active')
    throw buildStateError('payment_method_id', `the wallet is ${wallet.wallet_status}`);
  return wallet;
}

async function findPostpaidWallet(database: Database, invoice: Invoice): Promise<WalletModel | undefined> {
  const { customer_id, currency } = invoice;
  const [wallet] = await WalletModel.in(invoice, database).where({
    customer_id,
    currency,
    wallet_type: 'POST_PAID',
    wallet_status: 'active',
    status: 'published',
  });
  return wallet;
}

function toRefusal(most: Decimal, amount: string): FarthingError | null {
  if (most.gte(amount)) return null;
  return notAllowed('the wallet cannot pay so much of this invoice', { field: 'amount', payable: most.toFixed() });
}

async function computePayable(
  database: Database,
  invoice: Invoice,
  { wallet, now }: { wallet: WalletModel; now: Date },
): Promise<Decimal> {
  if (await isPurchase(database, invoice)) return new Decimal(0);
  const usable = await loadUnreservedCredits(database, wallet, { at_ms: computeReference(invoice, now), now });
  const money = computePayableMoney(usable, wallet.conversion_rate, invoice.currency);
  return Decimal.min(money, await computeShare(database, invoice, wallet), invoice.amount_remaining);
}

/** Computes the share of the lines whose price types the wallet pays, with their taxes, less the credits already used for the invoice. */
async function computeShare(database: Database, invoice: Invoice, wallet: WalletModel): Promise<Decimal> {
  const types = derivePaidTypes(wallet.config, wallet.wallet_type);
  if (types.includes('ALL')) return new Decimal(invoice.amount_remaining);
  const lines = await InvoiceLineItemModel.in(invoice, database).where({ invoice_id: invoice.id });
  const nets = lines
    .filter(({ price_type }) => isPaidType(types, price_type ?? null))
    .map((line) => computeLineNet(line).plus(line.tax_amount));
  return Decimal.max(0, sumDecimals(nets).minus(await sumPaidWithCredits(database, invoice)));
}

async function sumPaidWithCredits(database: Database, invoice: Invoice): Promise<Decimal> {
  const paid = await PaymentModel.in(invoice, database)
    .where({ destination_id: invoice.id, payment_method_type: 'CREDITS', status: 'published' })
    .whereIn('payment_status', [...RECEIVED]);
  return sumDecimals(paid.map(({ amount, refunded_amount }) => new Decimal(amount).minus(refunded_amount)));
}

export type CoveredByCredits = { readonly wallet: WalletModel; readonly amount: Decimal };

/** Loads the amount that the customer's postpaid wallet can pay of the invoice; null if it can pay nothing. */
export async function loadCoveredByCredits(
  database: Database,
  invoice: Invoice,
  now: Date,
): Promise<CoveredByCredits | null> {
  return computeCovered(database, invoice, { wallet: await findPostpaidWallet(database, invoice), now });
}

/** Locks the wallet for a payment in this transaction and returns the amount that it can pay; null if it can pay nothing. */
export async function lockCoveredByCredits(
  transaction: Transaction,
  invoice: Invoice,
  now: Date,
): Promise<CoveredByCredits | null> {
  const found = await findPostpaidWallet(transaction, invoice);
  if (!found) return null;
  const wallet = await lockWalletInOrder(transaction, invoice, found);
  return wallet.wallet_status === 'active' ? computeCovered(transaction, invoice, { wallet, now }) : null;
}

async function computeCovered(
  database: Database,
  invoice: Invoice,
  { wallet, now }: { wallet: WalletModel | undefined; now: Date },
): Promise<CoveredByCredits | null> {
  if (!wallet) return null;
  const amount = await computePayable(database, invoice, { wallet, now });
  return amount.gt(0) ? { wallet, amount } : null;
}

/** Takes the credits of a payment, once. `transaction` holds the locks of the invoice and of the wallet, which can pay the amount. */
export async function debitPayment(
  transaction: Transaction,
  { payment, invoice, author }: { payment: PaymentModel; invoice: Invoice; author: Author },
): Promise<void> {
  const wallet = await WalletModel.fetch(payment, payment.payment_method_id, { database: transaction });
  const amount = new Decimal(payment.amount);
  await moveCredits(transaction, wallet, {
    movement: {
      kind: 'spend',
      credits: toCredits(amount, wallet.conversion_rate),
      amount,
      at_ms: computeReference(invoice, author.now),
    },
    transaction_reason: 'INVOICE_PAYMENT',
    reference_type: 'INVOICE',
    reference_id: invoice.id,
    idempotency_key: toOwnKey('payment', payment.id),
    description: `Payment of invoice ${invoice.invoice_number ?? invoice.id}`,
    metadata: { payment_id: payment.id },
    author,
  });
}
