/** Imports the payment methods that a linked customer has at its provider (docs/rules/payments.md, "Saved payment methods"). */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import type { SavedPaymentMethod } from '../../../integrations/account-payments.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { PaymentMethodModel } from '../../../storage/models/payments/payment-method.ts';
import { setNextPull } from '../../../storage/queue/provider-events.ts';
import type { AccountCaller } from '../../foundation/connections/call-account.ts';
import { noteDifferences } from '../../lifecycle/payments/pull-invoice.ts';
import { storePaymentMethod } from '../../payments/payment-methods.ts';

export async function listMethods(
  call: AccountCaller,
  { provider_entity_id }: IntegrationMappingModel,
): Promise<readonly SavedPaymentMethod[]> {
  return await call(async (account) => (await account.payments?.listPaymentMethods?.(provider_entity_id!)) ?? []);
}

type MethodImport = {
  readonly mapping: IntegrationMappingModel;
  readonly methods: readonly SavedPaymentMethod[];
  readonly now: Date;
};

/** Saves the payment methods, unless the customer was unlinked or archived during the call. */
export async function applyMethods(
  transaction: Transaction,
  { mapping: seen, methods, now }: MethodImport,
): Promise<void> {
  const { tenant_id, environment_id, entity_id: customer_id } = seen;
  const scope = { tenant_id, environment_id };
  const customer = await CustomerModel.fetch(scope, customer_id, { database: transaction, lock: true });
  const mapping = await IntegrationMappingModel.fetch(scope, seen.id, { database: transaction, lock: true });
  if (mapping.mapping_state !== 'made') return;
  if (customer.status === 'published') await saveUnknown(transaction, scope, { mapping, methods, now });
  await setNextPull(transaction, seen, null);
  await noteDifferences(transaction, { mapping, differences: [], now });
}

/**
 * Saves the unknown payment methods. A method that was saved or removed here before is not changed. The provider's
 * default becomes the default here only if the customer has none.
 */
async function saveUnknown(
  transaction: Transaction,
  scope: Scope,
  { mapping, methods, now }: MethodImport,
): Promise<void> {
  const { entity_id: customer_id } = mapping;
  const payment_gateway = mapping.provider_type as PaymentGateway;
  const all = await PaymentMethodModel.in(scope, transaction).where({ customer_id });
  const known = new Set(
    all.flatMap((one) => (one.payment_gateway === payment_gateway ? one.gateway_payment_method_id : [])),
  );
  const hasDefault = all.some(({ status, is_default }) => status === 'published' && is_default);
  const author = { user_id: '', now };
  // The provider lists the newest payment method first; the oldest is stored first.
  for (const method of methods.toReversed()) {
    const gateway_payment_method_id = method.provider_payment_method_id;
    if (known.has(gateway_payment_method_id)) continue;
    await storePaymentMethod(transaction, scope, {
      customer_id,
      payment_gateway,
      gateway_payment_method_id,
      payment_method_type: method.payment_method_type === 'ACH' ? 'ACH' : 'CARD',
      is_default: method.is_default && !hasDefault,
      author,
    });
  }
}
