/** Saves payment methods of customers at a provider for later charges (docs/rules/payments.md, "Saved payment methods"). */
import { invalid, notAllowed } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Author } from '../../core/foundation/stamp.ts';
import type { PaymentGateway, StartCardSetup } from '../../core/payments/record.ts';
import type { ReadPaymentMethod, StartedCardSetup } from '../../integrations/account-payments.ts';
import type { Postgres } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import type { ConnectionModel } from '../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../storage/models/foundation/integration-mapping.ts';
import { PaymentMethodModel } from '../../storage/models/payments/payment-method.ts';
import { retryTransaction } from '../../storage/postgres/pool/deadlock-retry.ts';
import { type AccountCaller, findAccountCapability, toAnswerError } from '../foundation/connections/call-account.ts';
import { listOwnGateways } from '../foundation/connections/payment-gateways.ts';
import { ensureProviderCustomer } from '../foundation/connections/push-record.ts';
import { loadUsableGateway } from '../invoicing/collection/find-payment-method.ts';
import { type CallingStores, getPayments, openGateway } from './open-gateway.ts';
import { storePaymentMethod } from './payment-methods.ts';

type CardSetupInput = {
  readonly customer_id: string;
  readonly request: StartCardSetup;
  /** Idempotency key: a repeated request with it starts no second setup. */
  readonly key: string;
  readonly author: Author;
};

/** Starts a setup, in which the customer enters a payment method at the provider. */
export async function startCustomerSetup(
  stores: CallingStores,
  scope: Scope,
  { customer_id, request, key, author }: CardSetupInput,
): Promise<StartedCardSetup & { readonly provider: PaymentGateway }> {
  await CustomerModel.fetchPublished(scope, customer_id, { database: stores.postgres });
  const provider = await loadUsableGateway(stores.postgres, scope, request.provider);
  for (const field of ['metadata', 'customer_data'] as const)
    if (request[field] !== null) throw invalid(field, 'is not supported yet');
  if (listOwnGateways()[provider]) throw invalid('provider', `${provider} has no pages for cards: save its ids`);
  const { connection, call } = await openGateway(stores, scope, { gateway: provider, now: author.now });
  try {
    const target = { connection, call, author };
    const provider_customer_id = await ensureProviderCustomer(stores, scope, customer_id, target);
    const { success_url, cancel_url, set_default: sets_default } = request;
    const setup = { key, customer_id, success_url, cancel_url, sets_default, provider_customer_id };
    const started = await call(async (account) => {
      const payments = getPayments(account);
      if (!payments.startCardSetup) throw notAllowed(`${provider} saves no payment methods on request`);
      return await payments.startCardSetup(setup);
    });
    return { ...started, provider };
  } catch (error) {
    throw toAnswerError(error, connection);
  }
}

type PaymentMethodImport = {
  readonly connection: ConnectionModel;
  readonly call: AccountCaller;
  /** Id at the provider of a setup, of the page of a setup, or of the payment method itself. */
  readonly provider_entity_id: string;
  readonly author: Author;
};

/**
 * Saves the payment method of a setup, or archives one that was detached at the provider. Returns null if the setup has not ended, or if
 * the provider's customer is not linked to a customer of this service.
 */
export async function importSavedPaymentMethods(
  stores: Postgres,
  scope: Scope,
  { connection, call, provider_entity_id, author }: PaymentMethodImport,
): Promise<PaymentMethodModel | null> {
  const read = await call(async (account) => (await account.payments?.readPaymentMethod?.(provider_entity_id)) ?? null);
  if (read === null) return null;
  return await retryTransaction(stores, async (transaction) => {
    const payment_gateway = connection.provider_type as PaymentGateway;
    const gateway_payment_method_id = read.provider_payment_method_id;
    const known = await PaymentMethodModel.in(scope, transaction)
      .where({ payment_gateway, gateway_payment_method_id })
      .orderBy('id');
    if (read.provider_customer_id === null) return await archiveDetached(known, { author, transaction });
    const customer_id = await findMappedCustomer(transaction, connection, read);
    const own = known.filter((one) => one.customer_id === customer_id);
    // A payment method that was removed here is not saved again by a late or repeated webhook.
    if (customer_id === null || own.some(({ status }) => status !== 'published')) return null;
    return await storePaymentMethod(transaction, scope, {
      customer_id,
      payment_gateway,
      gateway_payment_method_id,
      payment_method_type: read.payment_method_type === 'ACH' ? 'ACH' : 'CARD',
      is_default: own.length === 0 ? read.sets_default : own[0]!.is_default,
      author,
    });
  });
}

async function archiveDetached(
  known: readonly PaymentMethodModel[],
  { author, transaction }: { author: Author; transaction: Postgres['postgres'] },
): Promise<PaymentMethodModel | null> {
  const published = known.find(({ status }) => status === 'published');
  if (!published) return null;
  const changes = { status: 'archived' as const, is_default: false };
  return await PaymentMethodModel.change(published, changes, { by: author, database: transaction });
}

/**
 * Finds the customer by its mapping, never by its email, which anybody can enter at the provider. A provider without customers was given the id
 * of this service.
 */
async function findMappedCustomer(
  database: Postgres['postgres'],
  connection: ConnectionModel,
  { provider_customer_id }: ReadPaymentMethod,
): Promise<string | null> {
  if (!findAccountCapability(connection).exchanges.includes('customer')) {
    const [own] = await CustomerModel.in(connection, database).where({ id: provider_customer_id });
    return own?.id ?? null;
  }
  const [mapping] = await IntegrationMappingModel.in(connection, database).where({
    connection_id: connection.id,
    entity_type: 'customer',
    provider_entity_id: provider_customer_id,
    mapping_state: 'made',
  });
  return mapping?.entity_id ?? null;
}
