/**
 * Gives back what was given for an invoice (docs/rules/wallets.md, "Given back"): prepaid credits to the lots from which they were taken, the
 * last that were used first; what was paid, with money or from a postpaid wallet, and what has no lot any more, as a prepaid credit of its
 * own. What a payment took from a postpaid wallet goes back there by a refund of that payment alone.
 */
import { Decimal, sumOf, ZERO } from '../../core/decimal.ts';
import type { Invoice } from '../../core/invoice/record.ts';
import type { Part } from '../../core/wallet/lots.ts';
import { keyOfPart } from '../../core/wallet/movement-key.ts';
import { creditsOf } from '../../core/wallet/rates.ts';
import { LedgerPostingModel } from '../../storage/models/ledger.ts';
import { WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import type { Transaction } from '../../storage/stores.ts';
import { creditWallet } from './credit-wallet.ts';
import { holdWallet } from './hold-wallet.ts';
import { moveCredits, type Saying } from './move-credits.ts';

export type GivingBack = Saying & { readonly amount: Decimal };
/** `debit_keys`: of the debit alone that has one of them, which may be of a postpaid wallet. */
type Asked = GivingBack & { readonly debit_keys?: readonly string[] };

/** Under one key once. `transaction` holds the invoice. */
export async function giveBackFor(
  transaction: Transaction,
  invoice: Invoice,
  { amount, debit_keys, ...saying }: Asked,
): Promise<void> {
  let left = amount;
  const debits = await debitsOf(transaction, invoice);
  await WalletModel.holdPrepaidOf(invoice, [invoice.customer_id], transaction);
  for (const debit of debits) {
    if (left.isZero()) break;
    const isMeant = debit_keys
      ? debit_keys.includes(debit.idempotency_key)
      : debit.transaction_reason === 'CREDIT_ADJUSTMENT';
    if (!isMeant) continue;
    left = left.minus(await putBack(transaction, debit, { ...saying, amount: left }));
  }
  if (left.isZero()) return;
  const { customer_id, currency } = invoice;
  await creditWallet(transaction, invoice, { ...saying, customer_id, currency, amount: left });
}

/** What was taken for the invoice, the last first. */
function debitsOf(transaction: Transaction, invoice: Invoice): Promise<WalletTransactionModel[]> {
  return WalletTransactionModel.in(invoice, transaction)
    .where({ reference_type: 'INVOICE', reference_id: invoice.id, type: 'debit' })
    .whereIn('transaction_reason', ['CREDIT_ADJUSTMENT', 'INVOICE_PAYMENT'])
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ]) as unknown as Promise<WalletTransactionModel[]>;
}

/** How much of the amount went back: nothing to a wallet that is closed. */
async function putBack(
  transaction: Transaction,
  debit: WalletTransactionModel,
  { amount, ...saying }: GivingBack,
): Promise<Decimal> {
  const wallet = await holdWallet(transaction, debit, debit.wallet_id);
  if (wallet.wallet_status === 'closed') return ZERO;
  const before = await WalletTransactionModel.in(debit, transaction).where({
    parent_transaction_id: debit.id,
    type: 'credit',
  });
  const idempotency_key = keyOfPart(saying.idempotency_key, debit.id);
  const done = before.find((one) => one.idempotency_key === idempotency_key);
  if (done) return new Decimal(done.amount);
  const open = new Decimal(debit.amount).minus(sumOf(before.map((one) => new Decimal(one.amount))));
  const given = Decimal.min(open, amount);
  if (given.lte(0)) return ZERO;
  const taken = await takenOf(transaction, debit, before);
  // The last of it takes what rounding has left.
  const credits = given.eq(open) ? sumOf(taken.map((part) => part.credits)) : creditsOf(given, wallet.conversion_rate);
  const parts = upTo(taken, credits);
  if (parts.length === 0) return ZERO;
  await moveCredits(transaction, wallet, {
    ...saying,
    movement: { kind: 'put_back', parts, amount: given },
    idempotency_key,
    parent_transaction_id: debit.id,
  });
  return given;
}

/** What is still taken of each lot, in the order in which it goes back. */
async function takenOf(
  transaction: Transaction,
  debit: WalletTransactionModel,
  before: readonly WalletTransactionModel[],
): Promise<Part[]> {
  const postings = await LedgerPostingModel.in(debit, transaction)
    .where({ account: 'lot' })
    .whereIn(
      'wallet_transaction_id',
      [debit, ...before].map(({ id }) => id),
    )
    .orderBy(['transaction_id', 'position']);
  const taken = new Map<string, Decimal>();
  for (const { lot_id, credits, wallet_transaction_id } of postings) {
    // What came back and paid at once what was owed has come back.
    if (wallet_transaction_id !== debit.id && new Decimal(credits).isNegative()) continue;
    taken.set(lot_id!, (taken.get(lot_id!) ?? ZERO).minus(credits));
  }
  const parts = [...taken].map(([lot_id, credits]) => ({ lot_id, credits }));
  return parts.filter(({ credits }) => credits.gt(0)).reverse();
}

function upTo(parts: readonly Part[], credits: Decimal): Part[] {
  let left = credits;
  return parts.flatMap(({ lot_id, credits: most }) => {
    const part = Decimal.min(most, left);
    left = left.minus(part);
    return part.isZero() ? [] : [{ lot_id, credits: part }];
  });
}
