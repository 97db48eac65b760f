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

type ChargeTarget = { readonly payment_gateway: PaymentGateway; readonly payment_method_id: string };

/** A collection also needs the type: a card or a bank account. */
type CollectionTarget = ChargeTarget & Pick<PaymentMethodModel, 'payment_method_type'>;

type PaymentMethodQuery = {
  readonly customer_id: string;
  /** Id of a stored payment method or the provider's id of it. */
  readonly requested: string | null;
  readonly gateway: PaymentGateway | null;
};

/** Returns the requested payment method or the customer's default one; the error names the field. */
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
  if (!payment_method_id) throw invalid('payment_method_id', 'is required: the customer has no default way to pay');
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
  return checkGateway(gateway, environment.type);
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
 * Returns the payment method that collects the subscription's invoices: its own or the invoiced customer's, or the obstacle. A gateway that
 * was usable may no longer be: the sandbox does not collect real money.
 */
async function findCollectionMethod(
  database: Database,
  scope: Scope,
  { customer_id, subscription }: { customer_id: string; subscription: CollectedSubscription },
): Promise<{ readonly way: CollectionTarget } | { readonly way: null; readonly obstacle: FarthingError }> {
  const requested = subscription.gateway_payment_method_id || null;
  const query = { customer_id, requested, gateway: null };
  try {
    const storedMethod = await findStoredMethod(database, scope, query);
    const way = await buildChargeTarget(storedMethod, query, { database, scope });
    // A method that only the provider knows counts as a card.
    return { way: { ...way, payment_method_type: storedMethod?.payment_method_type ?? 'CARD' } };
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return { way: null, obstacle: error };
    throw error;
  }
}

/** Collection of an invoice: the charged payment method or postpaid wallet, and the amount. */
export type Collection = Pick<PaymentModel, 'payment_gateway' | 'payment_method_id' | 'payment_method_type' | 'amount'>;

type CollectionQuery = {
  readonly subscription: (CollectedSubscription & Pick<Subscription, 'payment_behavior'>) | null;
  /** Amount that a postpaid wallet can pay. */
  readonly covered: CoveredByCredits | null;
  readonly inPart?: boolean;
};

/** Returns the collection of an invoice as of now, or the obstacle. */
export async function loadCollection(
  database: Database,
  invoice: InvoiceModel,
  { subscription, covered, inPart = canBePaidInPart(invoice, subscription) }: CollectionQuery,
): Promise<{ readonly collection: Collection } | { readonly collection: null; readonly obstacle: FarthingError }> {
  const { customer_id } = invoice;
  const found = await findCollectionMethod(database, invoice, { customer_id, subscription: subscription ?? {} });
  const collected = computeCollection({
    remaining: new Decimal(invoice.amount_remaining),
    covered: covered?.amount ?? ZERO,
    hasPaymentMethod: found.way !== null,
    allowsPartial: inPart,
  });
  const amount = collected?.amount.toFixed() ?? '0';
  if (collected?.by === 'credits') return { collection: { ...toCreditsTarget(covered!), amount } };
  if (collected && found.way) return { collection: { ...found.way, amount } };
  return { collection: null, obstacle: found.way === null ? found.obstacle : notAllowed('nothing remains to be paid') };
}

export function toCreditsTarget({ wallet }: CoveredByCredits): Omit<Collection, 'amount'> {
  return { payment_method_type: 'CREDITS', payment_method_id: wallet.id, payment_gateway: null };
}

type CollectedSubscription = Pick<Subscription, 'gateway_payment_method_id'>;
