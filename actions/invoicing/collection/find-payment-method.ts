/** Finds the payment method and the gateway of a payment (docs/rules/payments.md, "What is charged"). */
import { Decimal, ZERO } from '../../../core/foundation/decimal.ts';
import { FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { canBePaidInPart, computeCollection } from '../../../core/payments/collection.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import { checkGateway } from '../../../core/payments/request.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentMethodModel } from '../../../storage/models/payments/payment-method.ts';
import type { CoveredByCredits } from '../../credits/wallets/pay-with-credits.ts';
import { canCall } from '../../foundation/connections/call-account.ts';
import { listGateways, listOwnGateways } from '../../foundation/connections/payment-gateways.ts';

type ChargeTarget = { readonly payment_gateway: PaymentGateway; readonly payment_method_id: string };

/** Target of an automatic payment, which also needs the type: a card or a bank account. */
type CollectionTarget = ChargeTarget & Pick<PaymentMethodModel, 'payment_method_type'>;

type PaymentMethodQuery = {
  readonly customer_id: string;
  /** Requested payment method, by its id here or at the provider; null for the default one. */
  readonly requested: string | null;
  readonly gateway: PaymentGateway | null;
};

/** Returns the requested payment method, or the default one of the customer. Throws an error for `payment_method_id` if there is none. */
export async function findPaymentMethod(
  database: Database,
  scope: Scope,
  query: PaymentMethodQuery,
): Promise<ChargeTarget> {
  return buildChargeTarget(await findStoredMethod(database, scope, query), query, { database, scope });
}

async function buildChargeTarget(
  storedMethod: PaymentMethodModel | undefined,
  query: PaymentMethodQuery,
  { database, scope }: { database: Database; scope: Scope },
): Promise<ChargeTarget> {
  const payment_method_id = storedMethod?.gateway_payment_method_id ?? query.requested;
  if (!payment_method_id) throw invalid('payment_method_id', 'is required: the customer has no default payment method');
  const gateway = query.gateway ?? storedMethod?.payment_gateway ?? null;
  return { payment_method_id, payment_gateway: await loadUsableGateway(database, scope, gateway) };
}

/** Returns the requested gateway or the setting's default. */
export async function loadUsableGateway(
  database: Database,
  scope: Scope,
  requested: PaymentGateway | null,
): Promise<PaymentGateway> {
  const gateway = requested ?? (await loadSetting(scope, 'payment_config', database)).default_gateway;
  const environment = await EnvironmentModel.fetch(scope.tenant_id, scope.environment_id, { database });
  const own = listOwnGateways();
  if (gateway && own[gateway]) return checkGateway(gateway, environment.type, own);
  const usable = checkGateway(gateway, environment.type, await listGateways(scope, database));
  if (!(await canCall({ postgres: database }, scope)))
    throw invalid('payment_gateway', `an environment with a test clock never calls ${usable}`);
  return usable;
}

async function findStoredMethod(
  database: Database,
  scope: Scope,
  { customer_id, requested }: PaymentMethodQuery,
): Promise<PaymentMethodModel | undefined> {
  const storedMethod = await PaymentMethodModel.listBy(
    scope,
    { column: 'customer_id', value: customer_id, where: { status: 'published', payment_method_status: 'ACTIVE' } },
    database,
  );
  if (requested === null) return storedMethod.find(({ is_default }) => is_default);
  return storedMethod.find(
    ({ id, gateway_payment_method_id }) => id === requested || gateway_payment_method_id === requested,
  );
}

/**
 * Returns the payment method that collects the subscription's invoices: its own or that of the invoiced customer. Otherwise returns the
 * obstacle: for example, the gateway may be the sandbox, which collects no real money.
 */
async function findCollectionMethod(
  database: Database,
  scope: Scope,
  { customer_id, subscription }: { customer_id: string; subscription: CollectedSubscription },
): Promise<{ readonly target: CollectionTarget } | { readonly target: null; readonly obstacle: FarthingError }> {
  const requested = subscription.gateway_payment_method_id || null;
  const query = { customer_id, requested, gateway: null };
  try {
    const storedMethod = await findStoredMethod(database, scope, query);
    const target = await buildChargeTarget(storedMethod, query, { database, scope });
    // A payment method that is not stored in this service has no known type and counts as a card.
    return { target: { ...target, payment_method_type: storedMethod?.payment_method_type ?? 'CARD' } };
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return { target: null, obstacle: error };
    throw error;
  }
}

/** Terms of an automatic payment: the charged payment method or postpaid wallet, and the amount. */
export type CollectionTerms = Pick<
  PaymentModel,
  'payment_gateway' | 'payment_method_id' | 'payment_method_type' | 'amount'
>;

type CollectionQuery = {
  readonly subscription: (CollectedSubscription & Pick<Subscription, 'payment_behavior'>) | null;
  /** Amount that a postpaid wallet can pay. */
  readonly covered: CoveredByCredits | null;
  readonly allows_partial?: boolean;
};

/** Returns the terms of an automatic payment of the invoice as of now, or the reason why nothing can be collected. */
export async function loadCollection(
  database: Database,
  invoice: InvoiceModel,
  { subscription, covered, allows_partial = canBePaidInPart(invoice, subscription) }: CollectionQuery,
): Promise<{ readonly collection: CollectionTerms } | { readonly collection: null; readonly obstacle: FarthingError }> {
  const { customer_id } = invoice;
  const found = await findCollectionMethod(database, invoice, { customer_id, subscription: subscription ?? {} });
  const collected = computeCollection({
    remaining: new Decimal(invoice.amount_remaining),
    covered: covered?.amount ?? ZERO,
    hasPaymentMethod: found.target !== null,
    allows_partial,
  });
  const amount = collected?.amount.toFixed() ?? '0';
  if (collected?.by === 'credits') return { collection: { ...toCreditsTarget(covered!), amount } };
  if (collected && found.target) return { collection: { ...found.target, amount } };
  return {
    collection: null,
    obstacle: found.target === null ? found.obstacle : notAllowed('nothing remains to be paid'),
  };
}

export function toCreditsTarget({ wallet }: CoveredByCredits): Omit<CollectionTerms, 'amount'> {
  return { payment_method_type: 'CREDITS', payment_method_id: wallet.id, payment_gateway: null };
}

type CollectedSubscription = Pick<Subscription, 'gateway_payment_method_id'>;
