/**
 * Ends a wallet (docs/rules/wallets.md, "The end of a wallet"). Either it is closed and its credits are written off, or it is converted to
 * a postpaid wallet. The conversion moves its lots with their priorities and expiries, in one ledger transaction.
 */

import { formatConsumed } from '../../../core/credits/wallet/movement.ts';
import { toOwnKey, toPartKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { compareLots } from '../../../core/rating/wallet/lots.ts';
import { toMoney } from '../../../core/rating/wallet/rates.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { type LedgerLine, post } from '../../../storage/models/credits/ledger.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { listLots, toLot, WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { loadHeldAfterExpiry, toWalletPool } from '../../../storage/models/reservations/reservation.ts';
import { emit } from '../../foundation/emit.ts';
import { checkCreditAlerts, deleteWalletAlertStates } from '../balance-alerts/credit-alerts.ts';
import { addWallet } from './add-wallet.ts';
import { checkActive, lockWallet } from './lock-wallet.ts';
import { type CreditMovement, type MovementInput, moveCredits, toWalletFields } from './move-credits.ts';
import { checkNothingPending } from './pending-credits.ts';

type CloseWalletInput = { readonly id: string; readonly author: Author };

export async function terminateWallet(
  stores: Stores,
  scope: Scope,
  { id, author }: CloseWalletInput,
): Promise<WalletModel> {
  return stores.postgres.transaction(async (transaction) => {
    const wallet = await lockWallet(transaction, scope, id);
    if (wallet.wallet_status === 'closed') throw notAllowed('the wallet is closed already', { wallet_id: id });
    await checkNothingPending(transaction, wallet);
    await checkNoReservations(transaction, wallet, author.now);
    const lots = (await listLots(wallet, transaction)).map(toLot).sort(compareLots);
    const owed = new Decimal(wallet.credits_owed);
    const parts = lots.map((lot) => ({ lot_id: lot.id, credits: lot.available }));
    const writeOff = buildWriteOff(id, author);
    const debt: CreditMovement = {
      ...writeOff,
      movement: { kind: 'credit', credits: owed },
      idempotency_key: toOwnKey('terminate', id, 'owed'),
    };
    const entries: CreditMovement[] = [
      ...(parts.length === 0 ? [] : [{ ...writeOff, movement: { kind: 'take' as const, parts } }]),
      ...(owed.isZero() ? [] : [debt]),
    ];
    let left = wallet;
    for (const entry of entries) left = (await moveCredits(transaction, left, entry)).wallet;
    return closeWallet(transaction, left, author);
  });
}

/** Checks that no credits are reserved: they may still be committed, so they prevent the closing. */
async function checkNoReservations(transaction: Transaction, wallet: WalletModel, now: Date): Promise<void> {
  const { held } = await loadHeldAfterExpiry(transaction, toWalletPool(wallet), now);
  if (!held.isZero())
    throw notAllowed('credits of the wallet are held', { wallet_id: wallet.id, held: held.toFixed() });
}

function buildWriteOff(id: string, author: Author): MovementInput {
  return {
    transaction_reason: 'WALLET_TERMINATION',
    reference_type: 'EXTERNAL',
    reference_id: id,
    idempotency_key: toOwnKey('terminate', id),
    description: 'The wallet was closed',
    metadata: null,
    author,
  };
}

async function closeWallet(transaction: Transaction, wallet: WalletModel, author: Author): Promise<WalletModel> {
  await deleteWalletAlertStates(transaction, wallet);
  const changes = { wallet_status: 'closed' as const, alert_state: 'ok' as const };
  const closed = await WalletModel.change(wallet, changes, { by: author, database: transaction });
  await emit(transaction, 'wallet.terminated', { record: closed, by: author });
  return closed;
}

type ConvertedWallet = { readonly original_wallet: WalletModel; readonly new_wallet: WalletModel };

export async function convertWallet(
  stores: Stores,
  scope: Scope,
  { id, author }: CloseWalletInput,
): Promise<ConvertedWallet> {
  return stores.postgres.transaction(async (transaction) => {
    const wallet = await lockWallet(transaction, scope, id);
    checkActive(wallet);
    if (wallet.wallet_type !== 'PRE_PAID') throw notAllowed('the wallet is not prepaid', { wallet_id: id });
    if (new Decimal(wallet.credits_owed).gt(0))
      throw notAllowed('the wallet owes credits: put them in first', { credits_owed: wallet.credits_owed });
    await checkNothingPending(transaction, wallet);
    await checkNoReservations(transaction, wallet, author.now);
    const { customer_id, currency, conversion_rate, topup_conversion_rate, price_unit, description, alert_settings } =
      wallet;
    const opened = await addWallet(transaction, scope, {
      customer_id,
      currency,
      conversion_rate,
      topup_conversion_rate,
      price_unit: price_unit ?? null,
      description,
      alert_settings: alert_settings ?? null,
      wallet_type: 'POST_PAID',
      metadata: { ...wallet.metadata, converted_from: id },
      author,
    });
    await moveLots(transaction, { from: wallet, to: opened, author });
    const emptied = await WalletModel.fetch(wallet, id, { database: transaction });
    const original_wallet = await closeWallet(transaction, emptied, author);
    const filled = await WalletModel.fetch(scope, opened.id, { database: transaction });
    return { original_wallet, new_wallet: await checkCreditAlerts(transaction, filled, author) };
  });
}

/** Moves each lot of the old wallet to a lot of the new one; no other account changes. */
async function moveLots(
  transaction: Transaction,
  { from, to, author }: { from: WalletModel; to: WalletModel; author: Author },
): Promise<void> {
  const stored = await listLots(from, transaction);
  if (stored.length === 0) return;
  const key = toOwnKey('convert', from.id);
  const reference = { reference_type: 'EXTERNAL', reference_id: to.id } as const;
  const made = { ...createdBy(author), transaction_status: 'completed', ...reference };
  const move: WalletMove = { from, to, key, made, now: author.now.getTime() };
  const parts = stored.map((lot) => ({ lot, credits: new Decimal(lot.credits_available) }));
  const options = { database: transaction };
  const out = await WalletTransactionModel.add(from, buildDebit(parts, move), options);
  const lots = await WalletTransactionModel.addAll(to, buildCredits(parts, move), options);
  await post(transaction, from, [
    {
      id: newId('ledger_transaction', move.now),
      idempotency_key: key,
      reason: 'WALLET_TERMINATION',
      ...reference,
      occurred_at: author.now.toISOString(),
      lines: parts.flatMap(({ lot, credits }, index): LedgerLine[] => {
        const filled = lots[index]!.id;
        return [
          {
            wallet_id: from.id,
            wallet_transaction_id: out.id,
            account: 'lot',
            lot_id: lot.id,
            credits: credits.negated(),
          },
          { wallet_id: to.id, wallet_transaction_id: filled, account: 'lot', lot_id: filled, credits },
        ];
      }),
    },
  ]);
  for (const record of [out, ...lots]) await emit(transaction, 'wallet.transaction.created', { record, by: author });
}

type MovedLot = { readonly lot: WalletTransactionModel; readonly credits: Decimal };
type WalletMove = {
  readonly from: WalletModel;
  readonly to: WalletModel;
  readonly key: ReturnType<typeof toOwnKey>;
  /** Fields that all wallet transactions of the conversion share. */
  readonly made: object;
  readonly now: number;
};

function buildDebit(parts: readonly MovedLot[], { from, key, made, now }: WalletMove) {
  const total = sumDecimals(parts.map(({ credits }) => credits));
  return {
    ...toWalletFields(from),
    ...made,
    id: newId('wallet_transaction', now),
    type: 'debit',
    ...toAmounts(from, { credits: total, before: total, after: ZERO }),
    transaction_reason: 'WALLET_TERMINATION',
    idempotency_key: key,
    description: 'The wallet became a postpaid one',
    metadata: formatConsumed(parts.map(({ lot, credits }) => ({ lot_id: lot.id, credits }))),
  };
}

/** Builds one credit for each lot, with the lot's reason, expiry and priority. */
function buildCredits(parts: readonly MovedLot[], { to, key, made, now }: WalletMove) {
  let before = ZERO;
  return parts.map(({ lot, credits }) => {
    const after = before.plus(credits);
    const amounts = toAmounts(to, { credits, before, after });
    before = after;
    return {
      ...toWalletFields(to),
      ...made,
      // Copies the age of the lot, because the order of use depends on it.
      created_at: lot.created_at,
      id: newId('wallet_transaction', now),
      type: 'credit',
      ...amounts,
      transaction_reason: lot.transaction_reason,
      parent_transaction_id: lot.id,
      idempotency_key: toPartKey(key, lot.id),
      description: lot.description,
      expiry_date: lot.expiry_date ?? null,
      priority: lot.priority ?? null,
      pays_after_tax: lot.pays_after_tax,
      metadata: lot.metadata ?? null,
    };
  });
}

function toAmounts(
  { conversion_rate }: WalletModel,
  { credits, before, after }: { credits: Decimal; before: Decimal; after: Decimal },
) {
  return {
    amount: toMoney(credits, conversion_rate).toFixed(),
    credit_amount: credits.toFixed(),
    credit_balance_before: before.toFixed(),
    credit_balance_after: after.toFixed(),
  };
}
