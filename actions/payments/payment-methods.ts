/** Stores the payment methods of a customer; at most one is the default (docs/rules/payments.md, "What is charged"). */
import { notFound } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import type { PaymentGateway, PaymentMethodType, SavePaymentMethod } from '../../core/payments/record.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { PaymentMethodModel } from '../../storage/models/payments/payment-method.ts';
import { retryTransaction } from '../../storage/postgres/pool/deadlock-retry.ts';
import { loadUsableGateway } from '../invoicing/collection/find-payment-method.ts';

export async function savePaymentMethod(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { customer_id, request, author }: { customer_id: string; request: SavePaymentMethod; author: Author },
): Promise<PaymentMethodModel> {
  return retryTransaction({ postgres }, async (transaction) => {
    await CustomerModel.fetchPublished(scope, customer_id, { database: transaction });
    const payment_gateway = await loadUsableGateway(transaction, scope, request.payment_gateway);
    return storePaymentMethod(transaction, scope, { ...request, payment_gateway, customer_id, author });
  });
}

type PaymentMethodInput = {
  readonly customer_id: string;
  readonly payment_gateway: PaymentGateway;
  readonly gateway_payment_method_id: string;
  readonly payment_method_type: PaymentMethodType;
  readonly is_default: boolean;
  readonly author: Author;
};

/** Adds a payment method, or updates it if it is stored already. The customer's row lock serializes concurrent requests. */
export async function storePaymentMethod(
  transaction: Transaction,
  { tenant_id, environment_id }: Scope,
  { author, ...method }: PaymentMethodInput,
): Promise<PaymentMethodModel> {
  const scope = { tenant_id, environment_id };
  const by = { by: author, database: transaction };
  const customer = await CustomerModel.fetch(scope, method.customer_id, { database: transaction, lock: true });
  const all = await PaymentMethodModel.in(scope, transaction).where({
    customer_id: customer.id,
    status: 'published',
  });
  const isSame = (one: PaymentMethodModel) =>
    one.payment_gateway === method.payment_gateway &&
    one.gateway_payment_method_id === method.gateway_payment_method_id;
  if (method.is_default)
    for (const other of all.filter((one) => one.is_default && !isSame(one)))
      await PaymentMethodModel.change(other, { is_default: false }, by);
  const known = all.find(isSame);
  const active = { is_default: method.is_default, payment_method_status: 'ACTIVE' as const };
  if (known) return PaymentMethodModel.change(known, active, by);
  const record = { ...method, ...active, ...createdBy(author), id: newId('payment_method', author.now.getTime()) };
  return PaymentMethodModel.add(scope, record, { database: transaction });
}

export async function removePaymentMethod(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { customer_id, id, author }: { customer_id: string; id: string; author: Author },
): Promise<void> {
  await retryTransaction({ postgres }, async (transaction) => {
    const method = await PaymentMethodModel.fetchPublished(scope, id, { database: transaction, lock: true });
    if (method.customer_id !== customer_id) throw notFound('payment method', id);
    const changes = { status: 'archived' as const, is_default: false };
    await PaymentMethodModel.change(method, changes, { by: author, database: transaction });
  });
}
