/**
 * Credits bought with an invoice (docs/rules/wallets.md, "Top-ups"). They are recorded as pending with the invoice, arrive when it is paid,
 * and fail when it is voided. They arrive once: a pending transaction is completed under the locks of invoice and wallet, and the ledger
 * accepts its key once.
 */

import { computeExpiryWhenPaid } from '../../../core/credits/wallet/late-payment.ts';
import { computeMovement } from '../../../core/credits/wallet/movement.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { type FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { toMoney } from '../../../core/rating/wallet/rates.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { post } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { type ChangeAuthor, emit } from '../../foundation/emit.ts';
import { checkCreditAlerts } from '../balance-alerts/credit-alerts.ts';
import { lockWallet } from './lock-wallet.ts';
import { buildLedgerEntry, type CreditMovement, loadHolding, toLaterInstant, toWalletFields } from './move-credits.ts';

export async function addPending(
  transaction: Transaction,
  wallet: WalletModel,
  entries: readonly CreditMovement[],
): Promise<WalletTransactionModel[]> {
  const added: WalletTransactionModel[] = [];
  for (const { movement, author, expiry_date = null, priority = null, ...fields } of entries) {
    const credits = 'credits' in movement ? movement.credits : new Decimal(0);
    const record = {
      ...toWalletFields(wallet),
      ...fields,
      ...createdBy(author),
      id: newId('wallet_transaction', author.now.getTime()),
      type: 'credit',
      amount: toMoney(credits, wallet.conversion_rate).toFixed(),
      credit_amount: credits.toFixed(),
      credit_balance_before: wallet.credit_balance,
      credit_balance_after: wallet.credit_balance,
      transaction_status: 'pending',
      parent_transaction_id: added[0]?.id ?? null,
      expiry_date,
      priority,
    };
    const conflict = 'this idempotency_key was used for another transaction';
    const one = await WalletTransactionModel.add(wallet, record, { database: transaction, conflict });
    await emit(transaction, 'wallet.transaction.created', { record: one, by: author });
    added.push(one);
  }
  return added;
}

type PurchaseOutcome = { readonly invoice: Invoice; readonly by: ChangeAuthor };

/** Completes the credits bought with an invoice that is fully paid. This transaction has locked the invoice. */
export async function completePurchase(transaction: Transaction, { invoice, by }: PurchaseOutcome): Promise<void> {
  for (const pending of await lockPending(transaction, invoice)) {
    const wallet = await lockWallet(transaction, invoice, pending.wallet_id);
    const before = await loadHolding(transaction, wallet);
    const expiry_ms = computeExpiry(pending, by.now);
    const decided = computeMovement(before, {
      kind: 'credit',
      id: pending.id,
      transaction_reason: pending.transaction_reason,
      credits: new Decimal(pending.credit_amount),
      priority: pending.priority ?? null,
      expiry_ms,
      created_ms: toInstant(pending.created_at),
      pays_after_tax: pending.pays_after_tax,
    });
    const { credit_balance_before, credit_balance_after } = decided.record;
    const changes = {
      transaction_status: 'completed' as const,
      credit_balance_before,
      credit_balance_after,
      expiry_date: expiry_ms === null ? null : formatMs(expiry_ms),
    };
    const completed = await WalletTransactionModel.change(pending, changes, { by, database: transaction });
    const author = { user_id: '', ...toLaterInstant(wallet.updated_at, by) };
    await post(transaction, wallet, [buildLedgerEntry(wallet, completed, { entry: { ...pending, author }, decided })]);
    const record = await WalletTransactionModel.fetch(wallet, pending.id, { database: transaction });
    await emit(transaction, 'wallet.transaction.updated', { record, by });
    await checkCreditAlerts(transaction, await lockWallet(transaction, invoice, pending.wallet_id), by);
  }
}

function computeExpiry({ created_at, expiry_date }: WalletTransactionModel, now: Date): Milliseconds | null {
  const expiry_ms = expiry_date ? toInstant(expiry_date) : null;
  return computeExpiryWhenPaid({ ordered_ms: toInstant(created_at), expiry_ms }, now.getTime());
}

/** Fails the credits bought with an invoice that was voided. */
export async function failPurchase(transaction: Transaction, { invoice, by }: PurchaseOutcome): Promise<void> {
  for (const pending of await lockPending(transaction, invoice)) {
    const changes = { transaction_status: 'failed' as const };
    const record = await WalletTransactionModel.change(pending, changes, { by, database: transaction });
    await emit(transaction, 'wallet.transaction.updated', { record, by });
  }
}

async function lockPending(transaction: Transaction, invoice: Invoice): Promise<WalletTransactionModel[]> {
  return WalletTransactionModel.in(invoice, transaction)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, transaction_status: 'pending' })
    .orderBy(['created_at', 'id'])
    .forUpdate();
}

/** Checks whether the invoice buys credits. Such an invoice is not paid with credits and has no credit notes. */
export async function isPurchase(
  database: Database,
  invoice: Pick<Invoice, 'id' | 'tenant_id' | 'environment_id'>,
): Promise<boolean> {
  const [bought] = await WalletTransactionModel.in(invoice, database)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, transaction_reason: 'PURCHASED_CREDIT_INVOICED' })
    .limit(1);
  return bought !== undefined;
}

/** Throws if the purchased credits are in the wallet already, because a refund of their price would make them free. */
export async function checkNotBought(database: Database, invoice: Invoice): Promise<void> {
  const bought = await findPurchase(database, invoice);
  if (bought) throw buildPurchasedError(bought);
}

/** Loads the largest refund of an invoice whose credits have arrived: the overpaid amount. Null if no credits have arrived. */
export async function loadRefundLimit(database: Database, invoice: Invoice): Promise<Decimal | null> {
  const bought = await findPurchase(database, invoice);
  if (!bought) return null;
  const over = new Decimal(invoice.amount_paid).minus(invoice.amount_due);
  if (over.lte(0)) throw buildPurchasedError(bought);
  return over;
}

/** Refuses a credit note for a purchase of credits: it would reduce the price, and all credits would still arrive. */
export async function checkNotForCredits(database: Database, invoice: Invoice): Promise<void> {
  await checkNotBought(database, invoice);
  if (await isPurchase(database, invoice))
    throw notAllowed('an invoice for credits has no credit notes: void it, and they do not come', {
      invoice_id: invoice.id,
    });
}

async function findPurchase(database: Database, invoice: Invoice): Promise<WalletTransactionModel | undefined> {
  const [bought] = await WalletTransactionModel.in(invoice, database)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, transaction_reason: 'PURCHASED_CREDIT_INVOICED' })
    .where('transaction_status', 'completed')
    .limit(1);
  return bought;
}

function buildPurchasedError({ id }: WalletTransactionModel): FarthingError {
  return notAllowed('the credits that this invoice is for are in a wallet already: its money cannot go there, too', {
    wallet_transaction_id: id,
  });
}

/** Refuses to close a wallet while credits for it may still be paid. */
export async function checkNothingPending(transaction: Transaction, wallet: WalletModel): Promise<void> {
  const [pending] = await WalletTransactionModel.in(wallet, transaction)
    .where({ wallet_id: wallet.id, transaction_status: 'pending' })
    .limit(1);
  if (pending)
    throw notAllowed('credits of this wallet are to be paid still: void their invoice first', {
      wallet_transaction_id: pending.id,
      invoice_id: pending.reference_id,
    });
}
