/**
 * Lists which prepaid wallets pay an invoice, in which order, and how much they can pay (docs/rules/wallets.md, "Credits on invoices").
 * They are the wallets of the invoiced customer in the invoice's currency. A preview reads them without a lock. Finalization locks them and
 * takes the credits in the same transaction.
 */

import { toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { derivePaidTypes } from '../../../core/credits/wallet/real-time.ts';
import { type Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { computeBalanceBeforeTax, type PrepaidWallet } from '../../../core/rating/prepaid.ts';
import type { LotKind } from '../../../core/rating/wallet/lots.ts';
import { computeFreeCredits, listExpiries } from '../../../core/rating/wallet/promises.ts';
import { toCredits } from '../../../core/rating/wallet/rates.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { listLots, toLot } from '../../../storage/models/credits/wallet-transaction.ts';
import { prepareQuery } from '../../../storage/models/foundation/prepared.ts';
import { loadPromised, toWalletPool } from '../../../storage/models/reservations/reservation.ts';
import { moveCredits } from './move-credits.ts';
import { isPurchase } from './pending-credits.ts';

/** A prepaid wallet that may pay an invoice: its stored record, and the credits from which core computes the payment. */
export type PayingWallet = { readonly wallet: WalletModel; readonly prepaid: PrepaidWallet };

type PrepaidPayer = { readonly customer_id: string; readonly currency: string };

/**
 * Locks the wallets of all payers in one statement, in a fixed order that prevents deadlocks. Empty wallets are locked too: a purchase of
 * credits locks its wallet before the invoice counter, and finalization does the same.
 */
export async function lockPrepaidWallets(
  transaction: Transaction,
  scope: Scope,
  payers: readonly PrepaidPayer[],
): Promise<WalletModel[]> {
  const ids = [...new Set(payers.map(({ customer_id }) => customer_id))];
  return WalletModel.lockPrepaidWallets(scope, ids, transaction);
}

/** Reads the wallets for a preview, without a lock. */
export async function listPreviewWallets(
  database: Database,
  scope: Scope,
  { at_ms, ...payer }: PrepaidPayer & { at_ms: Milliseconds },
): Promise<PrepaidWallet[]> {
  const query = WalletModel.buildPrepaidQuery(scope, [payer.customer_id], database);
  const found = (await prepareQuery(query)) as WalletModel[];
  return (await rankWallets(database, found, { ...payer, at_ms, now: new Date(at_ms) })).map(({ prepaid }) => prepaid);
}

/** Returns the wallets of one invoice at their current balances. An invoice that buys credits is not paid with them. */
export async function listPayingWallets(
  transaction: Transaction,
  invoice: Invoice,
  { locked, now }: { locked: readonly WalletModel[]; now: Date },
): Promise<PayingWallet[]> {
  const ids = locked.filter(({ customer_id }) => customer_id === invoice.customer_id).map(({ id }) => id);
  if (ids.length === 0 || invoice.invoice_type === 'CREDIT') return [];
  if (invoice.invoice_type === 'ONE_OFF' && (await isPurchase(transaction, invoice))) return [];
  const wallets = [...(await WalletModel.byId(invoice, ids, transaction)).values()];
  return rankWallets(transaction, wallets, { ...invoice, at_ms: computeReference(invoice, now), now });
}

/**
 * Returns the instant at which credits must be unexpired to pay the invoice: the end of its period, or now if that is
 * earlier.
 */
export function computeReference({ period_end }: Pick<Invoice, 'period_end'>, now: Date): Milliseconds {
  return period_end ? Math.min(toInstant(period_end), now.getTime()) : now.getTime();
}

async function rankWallets(
  database: Database,
  wallets: readonly WalletModel[],
  { currency, at_ms, now }: { currency: string; at_ms: Milliseconds; now: Date },
): Promise<PayingWallet[]> {
  const found: (PayingWallet & { readonly rank: number; readonly balance: Decimal })[] = [];
  for (const wallet of wallets.filter((one) => one.currency === currency)) {
    const { conversion_rate } = wallet;
    const price_types = derivePaidTypes(wallet.config, wallet.wallet_type);
    const prepaid = { price_types, conversion_rate, at_ms, ...(await loadUnreservedLots(database, wallet, now)) };
    const balance = computeBalanceBeforeTax(prepaid, currency);
    found.push({ wallet, prepaid, rank: computeRank(price_types), balance });
  }
  return found.sort(
    (a, b) => a.rank - b.rank || b.balance.comparedTo(a.balance) || (a.wallet.id < b.wallet.id ? -1 : 1),
  );
}

/** Usable credits, less the reserved ones. */
export async function loadUnreservedCredits(
  database: Database,
  wallet: WalletModel,
  { at_ms, now }: { at_ms: Milliseconds; now: Date },
): Promise<Decimal> {
  const { lots, promised } = await loadUnreservedLots(database, wallet, now);
  return computeFreeCredits(lots, at_ms, promised);
}

async function loadUnreservedLots(
  database: Database,
  wallet: WalletModel,
  now: Date,
): Promise<Pick<PrepaidWallet, 'lots' | 'promised'>> {
  const lots = (await listLots(wallet, database)).map(toLot);
  return { lots, promised: await loadPromised(database, toWalletPool(wallet), { now, expiries: listExpiries(lots) }) };
}

/** Ranks a wallet by its price types: wallets for one price type pay before wallets for all types. */
function computeRank(types: readonly string[]): number {
  if (types.includes('ALL') || types.length > 1) return 2;
  return types.includes('USAGE') ? 0 : 1;
}

type PrepaidUse = {
  readonly wallets: readonly PayingWallet[];
  readonly prepaid_used: readonly Decimal[];
  readonly used_after_tax: readonly Decimal[];
  readonly author: Author;
};

/**
 * Takes the credits that an invoice uses before and after taxes, each once per invoice and wallet. `transaction` has locked the wallets.
 */
export async function debitPrepaid(
  transaction: Transaction,
  invoice: Invoice,
  { wallets, prepaid_used, used_after_tax, author }: PrepaidUse,
): Promise<void> {
  for (const [index, paying] of wallets.entries()) {
    const before = { amount: prepaid_used[index] ?? ZERO, of_kind: 'before_tax' as const, author };
    const wallet = await debitKind(transaction, invoice, { ...before, wallet: paying.wallet });
    const amount = used_after_tax[index] ?? ZERO;
    await debitKind(transaction, invoice, { wallet, amount, of_kind: 'after_tax', author });
  }
}

type PrepaidDebit = {
  readonly wallet: WalletModel;
  readonly amount: Decimal;
  readonly of_kind: LotKind;
  readonly author: Author;
};

async function debitKind(
  transaction: Transaction,
  invoice: Invoice,
  { wallet, amount, of_kind, author }: PrepaidDebit,
): Promise<WalletModel> {
  if (amount.isZero()) return wallet;
  const pays_after_tax = of_kind === 'after_tax';
  const moved = await moveCredits(transaction, wallet, {
    movement: {
      kind: 'spend',
      credits: toCredits(amount, wallet.conversion_rate),
      amount,
      at_ms: computeReference(invoice, author.now),
      of_kind,
    },
    transaction_reason: pays_after_tax ? 'INVOICE_PAYMENT' : 'CREDIT_ADJUSTMENT',
    reference_type: 'INVOICE',
    reference_id: invoice.id,
    idempotency_key: toOwnKey(pays_after_tax ? 'invoice_after_tax' : 'invoice', invoice.id, wallet.id),
    description: pays_after_tax ? 'Credits for what remains of an invoice' : 'Credits for an invoice',
    metadata: null,
    pays_after_tax,
    author,
  });
  return moved.wallet;
}
