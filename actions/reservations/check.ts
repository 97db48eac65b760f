/**
 * Whether a customer may use so many units of a feature, or spend so many credits, now; and holds them where that is asked for
 * (docs/rules/reservations.md).
 */
import { Decimal } from '../../core/decimal.ts';
import { invalid } from '../../core/error.ts';
import type { CompiledMeter } from '../../core/metering/compiled-meter.ts';
import type { HoldTerms } from '../../core/reservation/decide.ts';
import { buildCommittedEvents, checkCanHold, checkCountsUnits } from '../../core/reservation/event.ts';
import { checkReservationInput, type ReservationCheckInput } from '../../core/reservation/request.ts';
import { type FeatureLimit, type FeatureRoom, findTightestLimit, showLimit } from '../../core/reservation/room.ts';
import type { Scope } from '../../core/scope.ts';
import type { SettingValue } from '../../core/setting/record.ts';
import type { Author } from '../../core/stamp.ts';
import { CustomerModel } from '../../storage/models/customer.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import type { ReservationModel } from '../../storage/models/reservation.ts';
import { settingOf } from '../../storage/models/setting.ts';
import type { WalletModel } from '../../storage/models/wallet.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { TogetherByKey } from '../../storage/together.ts';
import { featuresCalled } from '../entitlements/check-named.ts';
import { askDesk } from './ask-desk.ts';
import { featureCounter, meterOf } from './feature-counter.ts';
import type { Op, Told } from './pool-desk.ts';
import { checkMetered } from './room-of-feature.ts';
import { walletAsked } from './wallet-asked.ts';
import { type Purse, walletCounter } from './wallet-counter.ts';

type Config = SettingValue<'reservation_config'>;
type ShownLimit = ReturnType<typeof showLimit>;

export type Checked = {
  readonly allowed: boolean;
  readonly reason: Told<unknown>['verdict']['reason'];
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

type Asking = { readonly request: ReservationCheckInput; readonly author: Author };

export async function check(stores: Stores, scope: Scope, { request, author }: Asking): Promise<Checked> {
  checkReservationInput(request);
  const named = await namedBy(stores, scope, { request, author });
  const asking = { request, author, ...named };
  return request.credits === null ? checkFeature(stores, scope, asking) : checkCredits(stores, scope, asking);
}

/** Who and what is asked about. */
type Named = {
  readonly customer: CustomerModel;
  readonly config: Config;
  readonly feature: FeatureModel | null;
  readonly meter: CompiledMeter | null;
  readonly wallet: WalletModel | null;
};
type Naming = Asking & { readonly scope: Scope };

/** Looked up once for all who ask the same at one time. */
const NAMED = new TogetherByKey<Database, Naming, Named>(async (database, asked) => {
  const named = await lookUp(database, asked[0]!);
  return asked.map(() => named);
});

function namedBy({ postgres }: Stores, scope: Scope, { request, author }: Asking): Promise<Named> {
  const { hold: _hold, quantity: _quantity, credits, idempotency_key: _key, ...names } = request;
  const { tenant_id, environment_id } = scope;
  const alike = [tenant_id, environment_id, credits === null, Object.values(names)];
  return NAMED.ask(postgres, { scope, request, author }, JSON.stringify(alike));
}

async function lookUp(database: Database, { scope, request, author }: Naming): Promise<Named> {
  const [customer, config] = await Promise.all([
    customerOf(scope, request, database),
    settingOf(scope, 'reservation_config', database),
  ]);
  if (request.credits !== null) {
    const wallet = await walletAsked(customer, request, { scope, database, now: author.now });
    return { customer, config, feature: null, meter: null, wallet };
  }
  const feature = await featureOf(scope, request, { database, now: author.now });
  const meter = feature.type === 'metered' ? await meterOf(scope, feature, database) : null;
  return { customer, config, feature, meter, wallet: null };
}

async function checkFeature(stores: Stores, scope: Scope, asking: Asking & Named): Promise<Checked> {
  const { request, author, customer, config, meter } = asking;
  const feature = asking.feature!;
  const quantity = new Decimal(request.quantity ?? '1');
  if (meter) {
    checkCountsUnits(meter, quantity);
    if (request.hold) checkHeld(meter, quantity, asking);
  } else if (request.hold) checkMetered(feature);
  const counter = featureCounter(stores, scope, { customer, feature, when_in_doubt: config.when_in_doubt });
  const told = await askDesk(stores, counter, opOf(quantity, { request, author, config }));
  const { looked } = told as Told<FeatureRoom>;
  const limits = looked?.kind === 'limited' ? looked.limits : [];
  const as_of = looked?.kind === 'limited' ? looked.as_of : null;
  return {
    ...said(told as Told<unknown>, { customer, quantity }),
    feature_id: feature.id,
    ...ofLimits(limits, told as Told<FeatureRoom>),
    as_of,
  };
}

/** What nobody ends is charged as it was asked for: whether the meter would count that is known before anything is held. */
function checkHeld(
  meter: CompiledMeter,
  quantity: Decimal,
  { request, customer, config, author }: Asking & Named,
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

async function checkCredits(stores: Stores, scope: Scope, asking: Asking & Named): Promise<Checked> {
  const { request, author, customer, config, wallet } = asking;
  const quantity = new Decimal(request.credits!);
  if (!wallet) {
    const verdict = { allowed: false, reason: 'no_wallet', is_doubtful: false } as const;
    return said(
      { kind: 'told', verdict, held: new Decimal('0'), looked: null, reservation: null },
      { customer, quantity },
    );
  }
  const counter = walletCounter(stores, scope, { wallet, when_in_doubt: config.when_in_doubt });
  const op = opOf(quantity, { request, author, config });
  const told = (await askDesk(stores, counter, op)) as Told<Purse>;
  // Of what lasts until the hold ends that is asked for; less what is held, by this one too.
  const until = op.now + (op.hold?.ttl_seconds ?? 0) * 1000;
  const remaining = told.looked?.spendable(until)?.minus(told.held) ?? null;
  return {
    ...said(told, { customer, quantity }),
    wallet_id: wallet.id,
    remaining: remaining && Decimal.max('0', remaining).toFixed(),
    as_of: told.looked?.as_of ?? null,
  };
}

function opOf(quantity: Decimal, { request, author, config }: Asking & { config: Config }) {
  const { hold, idempotency_key } = request;
  const terms: HoldTerms | null = hold && {
    ttl_seconds: hold.ttl_seconds ?? config.ttl_seconds,
    on_expiry: hold.on_expiry ?? config.on_expiry,
    properties: hold.properties,
    metadata: hold.metadata,
    idempotency_key,
  };
  return { kind: 'check', quantity, hold: terms, now: author.now.getTime(), author } as const satisfies Op;
}

function said(
  { verdict, held, reservation }: Told<unknown>,
  { customer, quantity }: { customer: CustomerModel; quantity: Decimal },
): Checked {
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

/** That of which the least is left, and all of them. `held` is also for those who share it. */
function ofLimits(limits: readonly FeatureLimit[], { held }: Told<FeatureRoom>) {
  const first = findTightestLimit(limits);
  if (!first) return {};
  const { limit, is_soft_limit, used, remaining } = showLimit(first, held);
  const all_held = held.plus(first.held_by_others).toFixed();
  return { limit, is_soft_limit, used, held: all_held, remaining, limits: limits.map((one) => showLimit(one, held)) };
}

/** By id, by external id, or by both when they agree. */
async function customerOf(scope: Scope, asked: ReservationCheckInput, database: Database): Promise<CustomerModel> {
  const { customer_id, external_customer_id } = asked;
  if (customer_id === null && external_customer_id === null)
    throw invalid('customer_id', 'or external_customer_id is required');
  if (customer_id === null) return CustomerModel.fetchExternal(scope, external_customer_id!, database);
  const customer = await CustomerModel.fetchPublished(scope, customer_id, { database });
  if (external_customer_id !== null && customer.external_id !== external_customer_id)
    throw invalid('external_customer_id', `is not the external id of customer ${customer_id}`);
  return customer;
}

async function featureOf(
  scope: Scope,
  { feature_id, feature_lookup_key }: ReservationCheckInput,
  { database, now }: { database: Database; now: Date },
): Promise<FeatureModel> {
  const [id] =
    feature_id === null ? await featuresCalled([feature_lookup_key!], { scope, database, now }) : [feature_id];
  return FeatureModel.fetchPublished(scope, id!, { database });
}
