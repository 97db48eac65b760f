/**
 * Returns the credits that paid for an invoice (docs/rules/wallets.md, "Given back"). Credits return to the lots from which they were
 * taken, the last used first. Other payments, and credits whose lot no longer exists, become a new credit of the same kind. Credits that a
 * payment took from a postpaid wallet return to it only by a refund of that payment.
 */

import { toPartKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import type { LotPart } from '../../../core/rating/wallet/lots.ts';
import { toCredits } from '../../../core/rating/wallet/rates.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { LedgerPostingModel } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { creditWallet } from './credit-wallet.ts';
import { lockWallet } from './lock-wallet.ts';
import { type MovementInput, moveCredits } from './move-credits.ts';

type CreditReturn = MovementInput & { readonly amount: Decimal };

/**
 * A return of credits. `prepaid` is the part that credits paid before taxes; `rest` is the part paid in any other way,
 * including its tax.
 */
type SplitCreditReturn = MovementInput & { readonly prepaid: Decimal; readonly rest: Decimal };

/** Returns credits once per key. `transaction` has locked the invoice. */
export async function returnCredits(
  transaction: Transaction,
  invoice: Invoice,
  { prepaid, rest, ...saying }: SplitCreditReturn,
): Promise<void> {
  if (prepaid.isZero() && rest.isZero()) return;
  await WalletModel.lockPrepaidWallets(invoice, [invoice.customer_id], transaction);
  const debits = await listDebits(transaction, invoice);
  const lots = await returnToLots(transaction, debits.filter(isBeforeTax), { ...saying, amount: prepaid });
  await creditPrepaid(transaction, invoice, { ...saying, amount: lots });
  const money = await returnToLots(transaction, debits.filter(isAfterTax), { ...saying, amount: rest });
  await creditPaid(transaction, invoice, { ...saying, amount: money });
}

/**
 * Returns the prepaid credits that paid the charges which an invoice credits. They return to the lots that paid the invoices in `charged`,
 * in this order. The remainder becomes a new prepaid credit.
 */
export async function returnPrepaid(
  transaction: Transaction,
  { invoice, charged }: { invoice: Invoice; charged: readonly Invoice[] },
  credit: CreditReturn,
): Promise<void> {
  await WalletModel.lockPrepaidWallets(invoice, [invoice.customer_id], transaction);
  let { amount } = credit;
  for (const one of charged) {
    const debits = (await listDebits(transaction, one)).filter(isBeforeTax);
    amount = await returnToLots(transaction, debits, { ...credit, amount });
  }
  await creditPrepaid(transaction, invoice, { ...credit, amount });
}

/** Returns the credits of a payment with a postpaid wallet. The debit has one of `debit_keys`. */
export async function returnPaymentCredits(
  transaction: Transaction,
  invoice: Invoice,
  { debit_keys, ...giving }: CreditReturn & { readonly debit_keys: readonly string[] },
): Promise<void> {
  await WalletModel.lockPrepaidWallets(invoice, [invoice.customer_id], transaction);
  const debits = (await listDebits(transaction, invoice)).filter((one) => debit_keys.includes(one.idempotency_key));
  const amount = await returnToLots(transaction, debits, giving);
  await creditPaid(transaction, invoice, { ...giving, amount });
}

function isBeforeTax({ transaction_reason }: WalletTransactionModel): boolean {
  return transaction_reason === 'CREDIT_ADJUSTMENT';
}

function isAfterTax({ transaction_reason, pays_after_tax }: WalletTransactionModel): boolean {
  return transaction_reason === 'INVOICE_PAYMENT' && pays_after_tax;
}

/** Returns an amount to lots of the debits. The result is the remainder that no lot could receive. */
async function returnToLots(
  transaction: Transaction,
  debits: readonly WalletTransactionModel[],
  { amount, ...saying }: CreditReturn,
): Promise<Decimal> {
  let left = amount;
  for (const debit of debits) {
    if (left.isZero()) break;
    left = left.minus(await returnToLot(transaction, debit, { ...saying, amount: left }));
  }
  return left;
}

/** Creates a new credit for the amount that no lot could receive. */
async function creditPrepaid(transaction: Transaction, invoice: Invoice, credit: CreditReturn): Promise<void> {
  const idempotency_key = toPartKey(credit.idempotency_key, 'prepaid');
  await creditRemainder(transaction, invoice, { ...credit, idempotency_key, pays_after_tax: false });
}

async function creditPaid(transaction: Transaction, invoice: Invoice, credit: CreditReturn): Promise<void> {
  await creditRemainder(transaction, invoice, { ...credit, pays_after_tax: true });
}

async function creditRemainder(transaction: Transaction, invoice: Invoice, credit: CreditReturn): Promise<void> {
  const { customer_id, currency } = invoice;
  if (credit.amount.isZero()) return;
  await creditWallet(transaction, invoice, { ...credit, customer_id, currency });
}

/** Lists the debits made for the invoice, newest first. */
function listDebits(transaction: Transaction, invoice: Invoice): Promise<WalletTransactionModel[]> {
  return WalletTransactionModel.in(invoice, transaction)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, type: 'debit' })
    .whereIn('transaction_reason', ['CREDIT_ADJUSTMENT', 'INVOICE_PAYMENT'])
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ]) as unknown as Promise<WalletTransactionModel[]>;
}

/** Returns credits to one lot. The result is the returned amount; 0 if the wallet is closed. */
async function returnToLot(
  transaction: Transaction,
  debit: WalletTransactionModel,
  { amount, ...saying }: CreditReturn,
): Promise<Decimal> {
  const wallet = await lockWallet(transaction, debit, debit.wallet_id);
  if (wallet.wallet_status === 'closed') return ZERO;
  const before = await WalletTransactionModel.in(debit, transaction).where({
    parent_transaction_id: debit.id,
    type: 'credit',
  });
  const idempotency_key = toPartKey(saying.idempotency_key, debit.id);
  const done = before.find((one) => one.idempotency_key === idempotency_key);
  if (done) return new Decimal(done.amount);
  const open = new Decimal(debit.amount).minus(sumDecimals(before.map((one) => new Decimal(one.amount))));
  const given = Decimal.min(open, amount);
  if (given.lte(0)) return ZERO;
  const taken = await listTakenParts(transaction, debit, before);
  // The last return includes the rounding remainder.
  const credits = given.eq(open)
    ? sumDecimals(taken.map((part) => part.credits))
    : toCredits(given, wallet.conversion_rate);
  const parts = takeParts(taken, credits);
  if (parts.length === 0) return ZERO;
  await moveCredits(transaction, wallet, {
    ...saying,
    movement: { kind: 'put_back', parts, amount: given },
    idempotency_key,
    parent_transaction_id: debit.id,
    pays_after_tax: debit.pays_after_tax,
  });
  return given;
}

/** Lists the credits of each lot that are not yet returned, in the order in which they return. */
async function listTakenParts(
  transaction: Transaction,
  debit: WalletTransactionModel,
  before: readonly WalletTransactionModel[],
): Promise<LotPart[]> {
  const postings = await LedgerPostingModel.in(debit, transaction)
    .where({ account: 'lot' })
    .whereIn(
      'wallet_transaction_id',
      [debit, ...before].map(({ id }) => id),
    )
    .orderBy(['transaction_id', 'position']);
  const taken = new Map<string, Decimal>();
  for (const { lot_id, credits, wallet_transaction_id } of postings) {
    // A returned credit may have repaid an overdraft at once. That part counts as returned.
    if (wallet_transaction_id !== debit.id && new Decimal(credits).isNegative()) continue;
    taken.set(lot_id!, (taken.get(lot_id!) ?? ZERO).minus(credits));
  }
  const parts = [...taken].map(([lot_id, credits]) => ({ lot_id, credits }));
  return parts.filter(({ credits }) => credits.gt(0)).reverse();
}

function takeParts(parts: readonly LotPart[], credits: Decimal): LotPart[] {
  let left = credits;
  return parts.flatMap(({ lot_id, credits: most }) => {
    const part = Decimal.min(most, left);
    left = left.minus(part);
    return part.isZero() ? [] : [{ lot_id, credits: part }];
  });
}
