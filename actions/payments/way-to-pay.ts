/** What a payment is charged to, and by whom (docs/rules/payments.md, "What is charged"). */
import { Decimal, ZERO } from '../../core/decimal.ts';
import { FarthingError, invalid, notAllowed } from '../../core/error.ts';
import { canBePaidInPart, computeCollection } from '../../core/payment/collection.ts';
import type { PaymentGateway } from '../../core/payment/record.ts';
import { checkGateway } from '../../core/payment/request.ts';
import type { Scope } from '../../core/scope.ts';
import type { Subscription } from '../../core/subscription/record.ts';
import { EnvironmentModel } from '../../storage/models/environment.ts';
import type { InvoiceModel } from '../../storage/models/invoice.ts';
import type { PaymentModel } from '../../storage/models/payment.ts';
import { PaymentMethodModel } from '../../storage/models/payment-method.ts';
import { settingOf } from '../../storage/models/setting.ts';
import type { Database } from '../../storage/stores.ts';
import type { Covered } from '../wallets/pay-with-credits.ts';

export type WayToPay = { readonly payment_gateway: PaymentGateway; readonly payment_method_id: string };

/** What is collected says how: a card, or a bank account. */
type WayToCollect = WayToPay & Pick<PaymentMethodModel, 'payment_method_type'>;

type Asked = {
  readonly customer_id: string;
  /** As it was stated: one that is kept of the customer, or what the provider calls it. */
  readonly stated: string | null;
  readonly gateway: PaymentGateway | null;
};

/** The one that is stated, or the default one of the customer; refused by the field where there is none. */
export async function wayToPay(database: Database, scope: Scope, asked: Asked): Promise<WayToPay> {
  return wayBy(await keptOf(database, scope, asked), asked, { database, scope });
}

async function wayBy(
  kept: PaymentMethodModel | undefined,
  asked: Asked,
  { database, scope }: { database: Database; scope: Scope },
): Promise<WayToPay> {
  const payment_method_id = kept?.gateway_payment_method_id ?? asked.stated;
  if (!payment_method_id) throw invalid('payment_method_id', 'is required: the customer has no default way to pay');
  const gateway = asked.gateway ?? kept?.payment_gateway ?? null;
  return { payment_method_id, payment_gateway: await usableGateway(database, scope, gateway) };
}

/** That which is stated, or the default of the setting. */
export async function usableGateway(
  database: Database,
  scope: Scope,
  stated: PaymentGateway | null,
): Promise<PaymentGateway> {
  const gateway = stated ?? (await settingOf(scope, 'payment_config', database)).default_gateway;
  const environment = await EnvironmentModel.fetch(scope.tenant_id, scope.environment_id, { database });
  return checkGateway(gateway, environment.type);
}

async function keptOf(
  database: Database,
  scope: Scope,
  { customer_id, stated }: Asked,
): Promise<PaymentMethodModel | undefined> {
  const kept = await PaymentMethodModel.listOf(
    scope,
    { column: 'customer_id', value: customer_id, where: { status: 'published', payment_method_status: 'ACTIVE' } },
    database,
  );
  if (stated === null) return kept.find(({ is_default }) => is_default);
  return kept.find(({ id, gateway_payment_method_id }) => id === stated || gateway_payment_method_id === stated);
}

/**
 * By which an invoice of the subscription is collected: its own, else that of who is invoiced; or why there is none. What was
 * usable once may be none any more: nothing is collected by the sandbox where money is meant.
 */
async function wayToCollect(
  database: Database,
  scope: Scope,
  { customer_id, subscription }: { customer_id: string; subscription: CollectedSubscription },
): Promise<{ readonly way: WayToCollect } | { readonly way: null; readonly obstacle: FarthingError }> {
  const stated = subscription.gateway_payment_method_id || null;
  const asked = { customer_id, stated, gateway: null };
  try {
    const kept = await keptOf(database, scope, asked);
    const way = await wayBy(kept, asked, { database, scope });
    // What only the provider knows is taken for a card.
    return { way: { ...way, payment_method_type: kept?.payment_method_type ?? 'CARD' } };
  } catch (error) {
    if (error instanceof FarthingError && error.http_status_code < 500) return { way: null, obstacle: error };
    throw error;
  }
}

/** How an invoice is collected: what is charged, or taken from a postpaid wallet, and how much of it. */
export type Collection = Pick<PaymentModel, 'payment_gateway' | 'payment_method_id' | 'payment_method_type' | 'amount'>;

type Collecting = {
  readonly subscription: (CollectedSubscription & Pick<Subscription, 'payment_behavior'>) | null;
  /** What a postpaid wallet can pay of it. */
  readonly covered: Covered | null;
  readonly inPart?: boolean;
};

/** What is collected of an invoice now; or why nothing is. */
export async function collectionOf(
  database: Database,
  invoice: InvoiceModel,
  { subscription, covered, inPart = canBePaidInPart(invoice, subscription) }: Collecting,
): Promise<{ readonly collection: Collection } | { readonly collection: null; readonly obstacle: FarthingError }> {
  const { customer_id } = invoice;
  const found = await wayToCollect(database, invoice, { customer_id, subscription: subscription ?? {} });
  const collected = computeCollection({
    remaining: new Decimal(invoice.amount_remaining),
    covered: covered?.amount ?? ZERO,
    hasPaymentMethod: found.way !== null,
    allowsPartial: inPart,
  });
  const amount = collected?.amount.toFixed() ?? '0';
  if (collected?.by === 'credits') return { collection: { ...withCredits(covered!), amount } };
  if (collected && found.way) return { collection: { ...found.way, amount } };
  return { collection: null, obstacle: found.way === null ? found.obstacle : notAllowed('nothing remains to be paid') };
}

export function withCredits({ wallet }: Covered): Omit<Collection, 'amount'> {
  return { payment_method_type: 'CREDITS', payment_method_id: wallet.id, payment_gateway: null };
}

type CollectedSubscription = Pick<Subscription, 'gateway_payment_method_id'>;
