/** Commits a reservation with the used quantity, or releases it (docs/rules/reservations.md, "How it ends"). */
import { isDeepStrictEqual } from 'node:util';
import { buildCommittedEvents, type CommittedEvents } from '../../core/credits/reservations/event.ts';
import type { ReservationCommitInput } from '../../core/credits/reservations/request.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { FarthingError, invalid, notAllowed } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds } from '../../core/foundation/time/instant.ts';
import { checkCredits } from '../../core/rating/wallet/rates.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { loadSetting } from '../../storage/models/foundation/setting.ts';
import { ReservationModel } from '../../storage/models/reservations/reservation.ts';
import { createFeatureCounter, loadCompiledMeter } from './feature-counter.ts';
import type { ReservationOp } from './reservation-batch.ts';
import { sendCommitted } from './send-committed.ts';
import { type ReservationCounter, submitReservation } from './submit-reservation.ts';
import { createWalletCounter } from './wallet-counter.ts';

type EndReservationInput = { readonly id: string; readonly author: Author };

/** Resolves when the result is durable: the events in the log or the debit in the ledger. */
export async function commitReservation(
  stores: Stores,
  scope: Scope,
  { id, request, author }: EndReservationInput & { request: ReservationCommitInput },
): Promise<ReservationModel> {
  const reservation = await loadCurrent(stores, scope, { id, author });
  const quantity = new Decimal(request.quantity ?? reservation.committed_quantity ?? reservation.quantity);
  if (quantity.isNegative()) throw invalid('quantity', 'must not be below 0');
  const now = author.now.getTime();
  const events = await loadCommittedEvents(stores, { reservation, quantity, properties: request.properties, at: now });
  const committed = await endReservation(stores, reservation, { kind: 'commit', id, quantity, events, now, author });
  if (committed.event_text !== events?.event_text)
    await checkSameCommit(stores, { reservation: committed, properties: request.properties });
  await sendCommitted(stores, committed);
  return ReservationModel.fetch(scope, id, { database: stores.postgres });
}

/**
 * Checks that a repeated commit has the properties of the stored event. The meter's field is not compared, because it contains the
 * quantity.
 */
async function checkSameCommit(
  { postgres }: Stores,
  { reservation, properties }: { reservation: ReservationModel; properties: Record<string, unknown> | null },
): Promise<void> {
  if (properties === null || reservation.event_text === null) return;
  const feature = await FeatureModel.fetch(reservation, reservation.feature_id!, { database: postgres });
  const { field } = await loadCompiledMeter(toScope(reservation), feature, postgres);
  const has = JSON.parse(reservation.event_text).properties as Record<string, unknown>;
  const other = Object.entries(properties).find(([key, value]) => key !== field && !isDeepStrictEqual(has[key], value));
  if (!other) return;
  const { reservation_status, ended_at, ended_by } = reservation;
  throw notAllowed('the reservation was committed already, with other properties', {
    field: `properties.${other[0]}`,
    reservation_status,
    ended_at,
    ended_by,
  });
}

export async function releaseReservation(
  stores: Stores,
  scope: Scope,
  { id, author }: EndReservationInput,
): Promise<ReservationModel> {
  const reservation = await loadCurrent(stores, scope, { id, author });
  return endReservation(stores, reservation, { kind: 'release', id, now: author.now.getTime(), author });
}

/**
 * Loads the reservation in its current state. An expired reservation that has to be charged at its expiry is charged first, even if the
 * expiry job has not run yet.
 */
async function loadCurrent(
  stores: Stores,
  scope: Scope,
  { id, author }: EndReservationInput,
): Promise<ReservationModel> {
  const reservation = await ReservationModel.fetch(scope, id, { database: stores.postgres });
  const { reservation_status, on_expiry, expires_at } = reservation;
  const isOver =
    reservation_status === 'held' && on_expiry === 'charge' && Date.parse(expires_at) <= author.now.getTime();
  if (!isOver) return reservation;
  await expireReservation(stores, scope, { id, author: { user_id: '', now: author.now } });
  return ReservationModel.fetch(scope, id, { database: stores.postgres });
}

/** An expired reservation. `refusal` is the reason for which it could not be charged. */
type ExpiredReservation = { readonly reservation: ReservationModel; readonly refusal: FarthingError | null };

/**
 * Releases or charges an expired reservation as of the instant of its expiry. If the meter changed and would no longer count the reserved
 * quantity, the reservation is released. The caller can still commit it with the missing properties.
 */
export async function expireReservation(
  stores: Stores,
  scope: Scope,
  { id, author }: EndReservationInput,
): Promise<ExpiredReservation> {
  const reservation = await ReservationModel.fetch(scope, id, { database: stores.postgres });
  // The expiry of one reservation releases all expired ones of its pool.
  if (reservation.reservation_status !== 'held') return { reservation, refusal: null };
  const { events, refusal } = await buildExpiryCharge(stores, reservation);
  const op = {
    kind: 'expire',
    id,
    events,
    refusal,
    is_charged: refusal === null,
    now: author.now.getTime(),
    author,
  } as const;
  const ended = await endReservation(stores, reservation, op);
  await sendCommitted(stores, ended);
  return { reservation: ended, refusal: ended.reservation_status === 'expired' ? refusal : null };
}

async function buildExpiryCharge(stores: Stores, reservation: ReservationModel) {
  const { expires_at, on_expiry } = reservation;
  if (on_expiry !== 'charge') return { events: null, refusal: null };
  const quantity = new Decimal(reservation.quantity);
  try {
    const events = await loadCommittedEvents(stores, {
      reservation,
      quantity,
      properties: null,
      at: Date.parse(expires_at),
    });
    return { events, refusal: null };
  } catch (error) {
    // A refusal is final, because a retry would be refused, too, and would block the customer meanwhile.
    if (error instanceof FarthingError && error.http_status_code < 500) return { events: null, refusal: error };
    throw error;
  }
}

async function endReservation(
  stores: Stores,
  reservation: ReservationModel,
  op: ReservationOp,
): Promise<ReservationModel> {
  const counter = await loadCounter(stores, reservation);
  const outcome = await submitReservation(stores, counter as ReservationCounter<unknown, unknown>, op);
  if (outcome.kind !== 'ended') throw new TypeError(`a reservation that ends is answered ${outcome.kind}`);
  return outcome.reservation;
}

async function loadCounter(stores: Stores, reservation: ReservationModel) {
  const { postgres } = stores;
  const { when_in_doubt } = await loadSetting(reservation, 'reservation_config', postgres);
  if (reservation.wallet_id !== null) {
    const wallet = await WalletModel.fetch(reservation, reservation.wallet_id, { database: postgres });
    return createWalletCounter(stores, toScope(reservation), { wallet, when_in_doubt });
  }
  const customer = await CustomerModel.fetch(reservation, reservation.customer_id, { database: postgres });
  const feature = await FeatureModel.fetch(reservation, reservation.feature_id!, { database: postgres });
  return createFeatureCounter(stores, toScope(reservation), { customer, feature, when_in_doubt });
}

function toScope({ tenant_id, environment_id }: ReservationModel): Scope {
  return { tenant_id, environment_id };
}

type CommitUsage = {
  readonly reservation: ReservationModel;
  readonly quantity: Decimal;
  readonly properties: Record<string, unknown> | null;
  readonly at: Milliseconds;
};

/** Builds the events of a commit; null if the reservation holds credits of a wallet, or is already committed. */
async function loadCommittedEvents(
  { postgres }: Stores,
  { reservation, quantity, properties, at }: CommitUsage,
): Promise<(CommittedEvents & { at: string }) | null> {
  const scope = toScope(reservation);
  // The events of a committed reservation are stored and do not depend on the current meter.
  if (reservation.reservation_status === 'committed') return null;
  if (reservation.wallet_id !== null) {
    if (properties !== null) throw invalid('properties', 'are of an event: credits become none');
    if (!quantity.isZero()) checkCredits('quantity', quantity);
    return null;
  }
  const feature = await FeatureModel.fetch(scope, reservation.feature_id!, { database: postgres });
  const [meter, customer] = await Promise.all([
    loadCompiledMeter(scope, feature, postgres),
    CustomerModel.fetch(scope, reservation.customer_id, { database: postgres }),
  ]);
  const events = buildCommittedEvents(meter, {
    external_customer_id: customer.external_id,
    quantity,
    properties: { ...reservation.properties, ...properties },
    at,
  });
  return { ...events, at: formatMs(at) };
}
