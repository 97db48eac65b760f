/**
 * Credits that are bought with an invoice: they are told when that is made, come when it is paid, and do not come when it is void
 * (docs/rules/wallets.md, "Top-ups"). They come once: under the locks on invoice and wallet a transaction that is pending is completed, and
 * the ledger takes its key once.
 */
import { Decimal } from '../../core/decimal.ts';
import { type FarthingError, notAllowed } from '../../core/error.ts';
import type { Invoice } from '../../core/invoice/record.ts';
import { createdBy } from '../../core/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../core/time/instant.ts';
import { computeExpiryWhenPaid } from '../../core/wallet/late-payment.ts';
import { computeMovement } from '../../core/wallet/movement.ts';
import { toMoney } from '../../core/wallet/rates.ts';
import { post } from '../../storage/models/ledger.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Transaction } from '../../storage/stores.ts';
import { checkCreditAlerts } from '../alerts/credit-alerts.ts';
import { emit, type SystemEventChange } from '../system-events/emit.ts';
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

type PurchaseOutcome = { readonly invoice: Invoice; readonly by: SystemEventChange['by'] };

/** Nothing of the invoice, which this transaction holds, remains to be paid: what was bought with it comes. */
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

/** The invoice is void: what was to be bought with it does not come. */
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

/** Whether the invoice is for credits: those are not paid with credits, and are not given back beside them. */
export async function isPurchase(
  database: Database,
  invoice: Pick<Invoice, 'id' | 'tenant_id' | 'environment_id'>,
): Promise<boolean> {
  const [bought] = await WalletTransactionModel.in(invoice, database)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, transaction_reason: 'PURCHASED_CREDIT_INVOICED' })
    .limit(1);
  return bought !== undefined;
}

/** What was bought is in the wallet: the money for it is not given back as well. */
export async function checkNotBought(database: Database, invoice: Invoice): Promise<void> {
  const bought = await findPurchase(database, invoice);
  if (bought) throw buildPurchasedError(bought);
}

/** What of the money of an invoice goes back at most, where its credits have come: what was paid too much. Null where none have. */
export async function loadRefundLimit(database: Database, invoice: Invoice): Promise<Decimal | null> {
  const bought = await findPurchase(database, invoice);
  if (!bought) return null;
  const over = new Decimal(invoice.amount_paid).minus(invoice.amount_due);
  if (over.lte(0)) throw buildPurchasedError(bought);
  return over;
}

/** What a note would take back was not bought: nobody asks for less of credits that are to come, and keeps all of them. */
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

/** A wallet is not closed while credits for it may still be paid. */
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
