/**
 * Decides checks, commits and releases of one pool in sequence; each decision uses the state after the previous one
 * (docs/rules/reservations.md, "How it ends"). A pool is a feature or a wallet of one customer. `decideVerdict` decides whether a quantity
 * fits into the limits of the feature, or into the credits of the wallet.
 */
import { type Decimal, ZERO } from '../../foundation/decimal.ts';
import { type FarthingError, notAllowed } from '../../foundation/error.ts';
import { formatMs, type Milliseconds, toInstant } from '../../foundation/time/instant.ts';
import type { PromisedCredits } from '../../rating/wallet/promises.ts';
import type { Reservation } from './record.ts';
import type { ReservationVerdict } from './room.ts';

/**
 * State of a pool. `used`: quantity committed since `decideVerdict` read its numbers, which therefore do not include
 * it.
 */
export type ReservationPoolState = {
  readonly held: Decimal;
  readonly held_count: number;
  readonly used: Decimal;
  /** Held credits with the end of each hold; for credits only. */
  readonly promised: readonly PromisedCredits[];
};
/**
 * Decides whether a quantity fits. `until`: instant until which it must remain usable. Null if the limits or credits are not loaded yet.
 */
export type DecideVerdict =
  | ((quantity: Decimal, state: ReservationPoolState, until: Milliseconds) => ReservationVerdict)
  | null;

/** Limit of open holds of one pool, so that finding, listing and ending them takes no noticeable time. */
const HELD_MAX = 10_000;

type DecisionInstant = { readonly now: Milliseconds };
export type HoldTerms = {
  readonly ttl_seconds: number;
  readonly on_expiry: Reservation['on_expiry'];
  readonly properties: Record<string, unknown> | null;
  readonly metadata: Record<string, string> | null;
  readonly idempotency_key: string | null;
};
export type ReservationCheck = DecisionInstant & {
  readonly kind: 'check';
  readonly quantity: Decimal;
  readonly hold: HoldTerms | null;
};
export type ReservationCommit = DecisionInstant & {
  readonly kind: 'commit';
  readonly id: string;
  readonly quantity: Decimal;
};
export type ReservationRelease = DecisionInstant & { readonly kind: 'release'; readonly id: string };
/**
 * The end of an expired hold. `is_charged` is false if the requested charge was impossible; the hold then just expires.
 */
export type ReservationExpiry = DecisionInstant & {
  readonly kind: 'expire';
  readonly id: string;
  readonly is_charged: boolean;
};

export type ReservationDecision = { readonly state: ReservationPoolState } & (
  | { readonly kind: 'answered'; readonly verdict: ReservationVerdict }
  /** The verdict allows the hold; `record` contains the fields of the new reservation. */
  | { readonly kind: 'hold'; readonly verdict: ReservationVerdict; readonly record: Record<string, unknown> }
  | { readonly kind: 'end'; readonly changes: ReservationEnding }
  | { readonly kind: 'as it is' }
  | { readonly kind: 'refused'; readonly error: FarthingError; readonly is_doubtful: boolean }
  | { readonly kind: 'needs room' }
);

export type ReservationEnding = {
  readonly reservation_status: Reservation['reservation_status'];
  readonly committed_quantity: string | null;
  readonly ended_at: string;
  readonly ended_by: Reservation['ended_by'];
};

export function decideCheck(
  { quantity, hold, now }: ReservationCheck,
  state: ReservationPoolState,
  decideVerdict: DecideVerdict,
): ReservationDecision {
  if (!decideVerdict) return { kind: 'needs room', state };
  const expires = now + (hold?.ttl_seconds ?? 0) * 1000;
  const verdict = decideVerdict(quantity, state, expires);
  if (!hold || !verdict.allowed) return { kind: 'answered', verdict, state };
  if (state.held_count >= HELD_MAX)
    return toRefusedDecision(
      state,
      notAllowed(`no more than ${HELD_MAX} reservations of it are held at a time`, { field: 'hold' }),
    );
  const { ttl_seconds: _, ...terms } = hold;
  const record = {
    ...terms,
    quantity: quantity.toFixed(),
    reason: verdict.reason,
    reservation_status: 'held',
    expires_at: formatMs(expires),
  };
  const promised = [...state.promised, { until: expires, credits: quantity }];
  const after = { ...state, held: state.held.plus(quantity), held_count: state.held_count + 1, promised };
  return { kind: 'hold', verdict, record, state: after };
}

/** Decides a commit. A held quantity can always be committed. Any excess, or all of it after expiry, must fit like a new hold. */
export function decideCommit(
  { quantity, now }: ReservationCommit,
  { of, quantity_held }: { of: Reservation; quantity_held: Decimal },
  { state, decideVerdict }: { state: ReservationPoolState; decideVerdict: DecideVerdict },
): ReservationDecision {
  const { reservation_status: status, committed_quantity } = of;
  if (status === 'committed') {
    if (quantity.eq(committed_quantity!)) return { kind: 'as it is', state };
    return toRefusedDecision(state, notAllowed('the reservation was committed already', toEndedDetails(of)));
  }
  if (status === 'released')
    return toRefusedDecision(state, notAllowed('the reservation was released', toEndedDetails(of)));
  const own = status === 'held' ? quantity_held : ZERO;
  const more = quantity.minus(own);
  if (more.gt(0)) {
    if (!decideVerdict) return { kind: 'needs room', state };
    const verdict = decideVerdict(more, state, now);
    if (!verdict.allowed)
      return toRefusedDecision(
        state,
        notAllowed(`${more.toFixed()} more than are held cannot be used: ${verdict.reason}`, {
          field: 'quantity',
          reason: verdict.reason,
        }),
        verdict.is_doubtful,
      );
  }
  const changes: ReservationEnding = {
    reservation_status: 'committed',
    committed_quantity: quantity.toFixed(),
    ended_at: formatMs(now),
    ended_by: 'commit',
  };
  const after = status === 'held' ? removeReservation(state, { of, quantity_held }) : state;
  return { kind: 'end', changes, state: { ...after, used: state.used.plus(quantity) } };
}

export function decideRelease(
  { now }: ReservationRelease,
  { of, quantity_held }: { of: Reservation; quantity_held: Decimal },
  state: ReservationPoolState,
): ReservationDecision {
  const { reservation_status: status } = of;
  // The reservation holds nothing, which is the requested result.
  if (status === 'released' || status === 'expired') return { kind: 'as it is', state };
  if (status === 'committed')
    return toRefusedDecision(state, notAllowed('the reservation was committed', toEndedDetails(of)));
  const changes: ReservationEnding = {
    reservation_status: 'released',
    committed_quantity: null,
    ended_at: formatMs(now),
    ended_by: 'release',
  };
  return { kind: 'end', changes, state: removeReservation(state, { of, quantity_held }) };
}

/**
 * Ends an expired hold with `on_expiry` = `charge`. An expired hold with `release` is released by the next transaction on its pool.
 */
export function decideExpiry(
  { now, is_charged }: ReservationExpiry,
  { of, quantity_held }: { of: Reservation; quantity_held: Decimal },
  state: ReservationPoolState,
): ReservationDecision {
  const { reservation_status, expires_at, on_expiry } = of;
  if (reservation_status !== 'held' || on_expiry !== 'charge' || toInstant(expires_at) > now)
    return { kind: 'as it is', state };
  const changes: ReservationEnding = {
    reservation_status: is_charged ? 'committed' : 'expired',
    committed_quantity: is_charged ? quantity_held.toFixed() : null,
    ended_at: expires_at,
    ended_by: 'expiry',
  };
  const used = is_charged ? state.used.plus(quantity_held) : state.used;
  return { kind: 'end', changes, state: { ...removeReservation(state, { of, quantity_held }), used } };
}

function removeReservation(
  state: ReservationPoolState,
  one: { of: Reservation; quantity_held: Decimal },
): ReservationPoolState {
  const { held, held_count, promised } = state;
  const ended = { until: toInstant(one.of.expires_at), credits: one.quantity_held.negated() };
  return {
    ...state,
    held: held.minus(one.quantity_held),
    held_count: held_count - 1,
    promised: [...promised, ended],
  };
}

function toRefusedDecision(
  state: ReservationPoolState,
  error: FarthingError,
  is_doubtful = false,
): ReservationDecision {
  return { kind: 'refused', error, is_doubtful, state };
}

function toEndedDetails({ reservation_status, committed_quantity, ended_at, ended_by }: Reservation) {
  return { reservation_status, committed_quantity, ended_at, ended_by };
}
