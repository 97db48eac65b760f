/**
 * Counts the reserved and the spendable credits of a wallet (docs/rules/reservations.md, "Credits"). Spendable are the credits usable until
 * the reservation ends, less unpaid usage and less reserved credits. It locks the wallet's row, as every movement of credits does.
 */

import type { DecideVerdict } from '../../core/credits/reservations/decide.ts';
import { computeSpendable, deriveCreditsVerdict } from '../../core/credits/reservations/room.ts';
import type { WalletHolding } from '../../core/credits/wallet/movement.ts';
import { toOwnKey } from '../../core/credits/wallet/movement-key.ts';
import { Decimal, ZERO } from '../../core/foundation/decimal.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import { deductFromLots, sumUsableCredits, takeFromLots } from '../../core/rating/wallet/lots.ts';
import { canKeepPromises, listExpiries } from '../../core/rating/wallet/promises.ts';
import { toCredits } from '../../core/rating/wallet/rates.ts';
import { isUnavailable } from '../../storage/foundation/failure.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { loadPromised, toWalletPool } from '../../storage/models/reservations/reservation.ts';
import { lockWallet } from '../credits/wallets/lock-wallet.ts';
import { type CreditMovement, loadHolding, moveAll } from '../credits/wallets/move-credits.ts';
import { loadCurrentRealTimeBalance } from '../lifecycle/wallets/real-time-balance.ts';
import type { EndedReservation } from './reservation-batch.ts';
import type { ReservationCounter } from './submit-reservation.ts';

/** Unpaid usage in credits; null if usage could not be read. */
type UnpaidCredits = { readonly unpaid: Decimal | null; readonly as_of: string };
/** Credits that are spendable until an instant, before reservations; null if that is not known. */
export type SpendableCredits = { spendable(until: Milliseconds): Decimal | null; readonly as_of: string };
type WalletCounterInput = { readonly wallet: WalletModel; readonly when_in_doubt: 'deny' | 'allow' };

export function createWalletCounter(
  stores: Stores,
  scope: Scope,
  { wallet, when_in_doubt }: WalletCounterInput,
): ReservationCounter<UnpaidCredits, SpendableCredits> {
  const { id } = wallet;
  const pool = toWalletPool(wallet);
  return {
    pool,
    gather: (now) => loadUnpaid(stores, wallet, now),
    createPool: (gathered) => ({
      pool,
      subject: { wallet_id: id },
      lock: async (transaction) => void (await lockWallet(transaction, scope, id)),
      async readRoom(transaction, at) {
        if (gathered === null) return { computeVerdict: null, room: null };
        const now = await WalletModel.fetch(scope, id, { database: transaction });
        const holding = await loadHolding(transaction, now);
        const { unpaid, as_of } = gathered;
        const left = (until: number, taken: Decimal) =>
          computeSpendableUntil(holding, { unpaid: unpaid ?? ZERO, until, taken });
        const expiries = listExpiries(holding.lots);
        const promised = await loadPromised(transaction, pool, { now: at, expiries });
        const computeVerdict: DecideVerdict = (quantity, state, until) =>
          deriveCreditsVerdict({
            is_active: now.wallet_status === 'active',
            left: unpaid === null ? null : left(until, state.held.plus(state.used)),
            keepsPromises: canKeepPromises(
              deductFromLots(holding.lots, takeFromLots(holding.lots, state.used, at.getTime()).parts),
              [...state.promised, { until, credits: quantity }],
            ),
            quantity,
            when_in_doubt,
          });
        return {
          computeVerdict,
          promised,
          room: { spendable: (until) => unpaid && left(until, ZERO), as_of },
        };
      },
      postCommits: (transaction, commits) => debitCommits(transaction, scope, { id, commits }),
    }),
  };
}

function computeSpendableUntil(
  holding: WalletHolding,
  at: { unpaid: Decimal; until: number; taken: Decimal },
): Decimal {
  const usable = sumUsableCredits(holding.lots, at.until);
  return computeSpendable({ usable, owed: holding.owed, unpaid: at.unpaid, held: at.taken });
}

async function loadUnpaid(stores: Stores, wallet: WalletModel, now: Date): Promise<UnpaidCredits> {
  const as_of = now.toISOString();
  try {
    const { current_period_usage, unpaid_invoices_amount } = await loadCurrentRealTimeBalance(stores, wallet, now);
    const amount = new Decimal(current_period_usage).plus(unpaid_invoices_amount);
    return { unpaid: toCredits(Decimal.max(ZERO, amount), wallet.conversion_rate), as_of };
  } catch (error) {
    if (isUnavailable(error)) return { unpaid: null, as_of };
    throw error;
  }
}

/** Debits the committed credits even if the balance no longer covers them; the uncovered amount becomes overdraft. */
async function debitCommits(
  transaction: Transaction,
  scope: Scope,
  { id, commits }: { id: string; commits: readonly EndedReservation[] },
): Promise<ReadonlyMap<string, string>> {
  const spent = commits.filter(({ changes }) => !new Decimal(changes.committed_quantity!).isZero());
  if (spent.length === 0) return new Map();
  const wallet = await WalletModel.fetch(scope, id, { database: transaction });
  const entries = spent.map(
    ({ reservation, op, changes }): CreditMovement => ({
      movement: {
        kind: 'spend',
        credits: new Decimal(changes.committed_quantity!),
        // A charge at expiry uses the lots of that instant, whenever it is posted.
        at_ms: toInstant(changes.ended_at),
        allow_negative: true,
      },
      transaction_reason: 'MANUAL_BALANCE_DEBIT',
      reference_type: 'REQUEST',
      reference_id: reservation.id,
      idempotency_key: toOwnKey('reservation', reservation.id),
      description: 'Credits that were reserved',
      metadata: reservation.metadata ?? null,
      author: op.author,
    }),
  );
  const { moved } = await moveAll(transaction, wallet, entries);
  return new Map(
    moved.map((one, index) => {
      if (one instanceof Error) throw one;
      return [spent[index]!.reservation.id, one.transaction.id];
    }),
  );
}
