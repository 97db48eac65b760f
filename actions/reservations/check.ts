/**
 * Checks whether a customer may use a number of units of a feature, or spend a number of credits, now; reserves them on request
 * (docs/rules/reservations.md).
 */

import type { HoldTerms } from '../../core/credits/reservations/decide.ts';
import { buildCommittedEvents, checkCanHold, checkCountsUnits } from '../../core/credits/reservations/event.ts';
import { checkReservationInput, type ReservationCheckInput } from '../../core/credits/reservations/request.ts';
import {
  type FeatureLimit,
  type FeatureRoom,
  findTightestLimit,
  showLimit,
} from '../../core/credits/reservations/room.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { invalid } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { SettingValue } from '../../core/platform/setting/record.ts';
import { KeyedBatchLoader } from '../../storage/concurrency/batch-loader.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import type { WalletModel } from '../../storage/models/credits/wallet.ts';
import { loadSetting } from '../../storage/models/foundation/setting.ts';
import type { ReservationModel } from '../../storage/models/reservations/reservation.ts';
import { listFeatureIdsByLookupKey } from '../rating/entitlements/check-named.ts';
import { createFeatureCounter, loadCompiledMeter } from './feature-counter.ts';
import { findRequestedWallet } from './find-requested-wallet.ts';
import type { CheckOutcome, ReservationOp } from './reservation-batch.ts';
import { checkMetered } from './room-of-feature.ts';
import { submitReservation } from './submit-reservation.ts';
import { createWalletCounter, type SpendableCredits } from './wallet-counter.ts';

type ReservationConfig = SettingValue<'reservation_config'>;
type ShownLimit = ReturnType<typeof showLimit>;

export type ReservationCheckResult = {
  readonly allowed: boolean;
  readonly reason: CheckOutcome<unknown>['verdict']['reason'];
  readonly customer_id: string;
  readonly feature_id: string | null;
  readonly wallet_id: string | null;
  readonly quantity: string;
  readonly limit: string | null;
  readonly is_soft_limit: boolean;
  readonly used: string | null;
  readonly held: string;
  readonly remaining: string | null;
  readonly limits: readonly ShownLimit[];
  readonly as_of: string | null;
  readonly reservation: ReservationModel | null;
};

type CheckReservationRequest = { readonly request: ReservationCheckInput; readonly author: Author };

export async function checkReservation(
  stores: Stores,
  scope: Scope,
  { request, author }: CheckReservationRequest,
): Promise<ReservationCheckResult> {
  checkReservationInput(request);
  const named = await loadSubjects(stores, scope, { request, author });
  const input = { request, author, ...named };
  return request.credits === null ? checkFeature(stores, scope, input) : checkCredits(stores, scope, input);
}

type CheckSubjects = {
  readonly customer: CustomerModel;
  readonly config: ReservationConfig;
  readonly feature: FeatureModel | null;
  readonly meter: CompiledMeter | null;
  readonly wallet: WalletModel | null;
};
type CheckSubjectsQuery = CheckReservationRequest & { readonly scope: Scope };

/** Loads the records that a check names. Concurrent checks that name the same records share one load. */
const SUBJECTS = new KeyedBatchLoader<Database, CheckSubjectsQuery, CheckSubjects>(async (database, queries) => {
  const named = await findSubjects(database, queries[0]!);
  return queries.map(() => named);
});

function loadSubjects(
  { postgres }: Stores,
  scope: Scope,
  { request, author }: CheckReservationRequest,
): Promise<CheckSubjects> {
  const { hold: _hold, quantity: _quantity, credits, idempotency_key: _key, ...names } = request;
  const { tenant_id, environment_id } = scope;
  const alike = [tenant_id, environment_id, credits === null, Object.values(names)];
  return SUBJECTS.load(postgres, { scope, request, author }, JSON.stringify(alike));
}

async function findSubjects(
  database: Database,
  { scope, request, author }: CheckSubjectsQuery,
): Promise<CheckSubjects> {
  const [customer, config] = await Promise.all([
    findCustomer(scope, request, database),
    loadSetting(scope, 'reservation_config', database),
  ]);
  if (request.credits !== null) {
    const wallet = await findRequestedWallet(customer, request, { scope, database, now: author.now });
    return { customer, config, feature: null, meter: null, wallet };
  }
  const feature = await findFeature(scope, request, { database, now: author.now });
  const meter = feature.type === 'metered' ? await loadCompiledMeter(scope, feature, database) : null;
  return { customer, config, feature, meter, wallet: null };
}

async function checkFeature(
  stores: Stores,
  scope: Scope,
  input: CheckReservationRequest & CheckSubjects,
): Promise<ReservationCheckResult> {
  const { request, author, customer, config, meter } = input;
  const feature = input.feature!;
  const quantity = new Decimal(request.quantity ?? '1');
  if (meter) {
    checkCountsUnits(meter, quantity);
    if (request.hold) checkHoldChargeable(meter, quantity, input);
  } else if (request.hold) checkMetered(feature);
  const counter = createFeatureCounter(stores, scope, { customer, feature, when_in_doubt: config.when_in_doubt });
  const outcome = await submitReservation(stores, counter, buildCheckOp(quantity, { request, author, config }));
  const { room } = outcome as CheckOutcome<FeatureRoom>;
  const limits = room?.kind === 'limited' ? room.limits : [];
  const as_of = room?.kind === 'limited' ? room.as_of : null;
  return {
    ...buildCheck(outcome as CheckOutcome<unknown>, { customer, quantity }),
    feature_id: feature.id,
    ...pickTightestLimit(limits, outcome as CheckOutcome<FeatureRoom>),
    as_of,
  };
}

/**
 * Checks that the reservation can be charged. If it expires, it may be charged as requested, so the meter has to accept its event before it
 * is reserved.
 */
function checkHoldChargeable(
  meter: CompiledMeter,
  quantity: Decimal,
  { request, customer, config, author }: CheckReservationRequest & CheckSubjects,
): void {
  const { on_expiry, properties } = request.hold!;
  checkCanHold(meter, quantity, properties);
  if ((on_expiry ?? config.on_expiry) !== 'charge') return;
  const { external_id: external_customer_id } = customer;
  const at = author.now.getTime();
  buildCommittedEvents(meter, {
    external_customer_id,
    quantity,
    properties: properties ?? {},
    at,
    field: 'hold.properties',
  });
}

async function checkCredits(
  stores: Stores,
  scope: Scope,
  input: CheckReservationRequest & CheckSubjects,
): Promise<ReservationCheckResult> {
  const { request, author, customer, config, wallet } = input;
  const quantity = new Decimal(request.credits!);
  if (!wallet) {
    const verdict = { allowed: false, reason: 'no_wallet', is_doubtful: false } as const;
    return buildCheck(
      { kind: 'answered', verdict, held: new Decimal('0'), room: null, reservation: null },
      { customer, quantity },
    );
  }
  const counter = createWalletCounter(stores, scope, { wallet, when_in_doubt: config.when_in_doubt });
  const op = buildCheckOp(quantity, { request, author, config });
  const outcome = (await submitReservation(stores, counter, op)) as CheckOutcome<SpendableCredits>;
  // Credits that are usable until the requested reservation ends, less all reserved credits, including those of this reservation.
  const until = op.now + (op.hold?.ttl_seconds ?? 0) * 1000;
  const remaining = outcome.room?.spendable(until)?.minus(outcome.held) ?? null;
  return {
    ...buildCheck(outcome, { customer, quantity }),
    wallet_id: wallet.id,
    remaining: remaining && Decimal.max('0', remaining).toFixed(),
    as_of: outcome.room?.as_of ?? null,
  };
}

function buildCheckOp(
  quantity: Decimal,
  { request, author, config }: CheckReservationRequest & { config: ReservationConfig },
) {
  const { hold, idempotency_key } = request;
  const terms: HoldTerms | null = hold && {
    ttl_seconds: hold.ttl_seconds ?? config.ttl_seconds,
    on_expiry: hold.on_expiry ?? config.on_expiry,
    properties: hold.properties,
    metadata: hold.metadata,
    idempotency_key,
  };
  return { kind: 'check', quantity, hold: terms, now: author.now.getTime(), author } as const satisfies ReservationOp;
}

function buildCheck(
  { verdict, held, reservation }: CheckOutcome<unknown>,
  { customer, quantity }: { customer: CustomerModel; quantity: Decimal },
): ReservationCheckResult {
  return {
    allowed: verdict.allowed,
    reason: verdict.reason,
    customer_id: customer.id,
    feature_id: null,
    wallet_id: null,
    quantity: quantity.toFixed(),
    limit: null,
    is_soft_limit: false,
    used: null,
    held: held.toFixed(),
    remaining: null,
    limits: [],
    as_of: null,
    reservation,
  };
}

/**
 * Returns the limit with the smallest remaining quantity, and all limits. `held` includes reservations of other customers that share the
 * limit.
 */
function pickTightestLimit(limits: readonly FeatureLimit[], { held }: CheckOutcome<FeatureRoom>) {
  const first = findTightestLimit(limits);
  if (!first) return {};
  const { limit, is_soft_limit, used, remaining } = showLimit(first, held);
  const all_held = held.plus(first.held_by_others).toFixed();
  return { limit, is_soft_limit, used, held: all_held, remaining, limits: limits.map((one) => showLimit(one, held)) };
}

/** Finds the customer by id, by external id, or by both if they agree. */
async function findCustomer(scope: Scope, query: ReservationCheckInput, database: Database): Promise<CustomerModel> {
  const { customer_id, external_customer_id } = query;
  if (customer_id === null && external_customer_id === null)
    throw invalid('customer_id', 'or external_customer_id is required');
  if (customer_id === null) return CustomerModel.fetchExternal(scope, external_customer_id!, database);
  const customer = await CustomerModel.fetchPublished(scope, customer_id, { database });
  if (external_customer_id !== null && customer.external_id !== external_customer_id)
    throw invalid('external_customer_id', `is not the external id of customer ${customer_id}`);
  return customer;
}

async function findFeature(
  scope: Scope,
  { feature_id, feature_lookup_key }: ReservationCheckInput,
  { database, now }: { database: Database; now: Date },
): Promise<FeatureModel> {
  const [id] =
    feature_id === null
      ? await listFeatureIdsByLookupKey([feature_lookup_key!], { scope, database, now })
      : [feature_id];
  return FeatureModel.fetchPublished(scope, id!, { database });
}
