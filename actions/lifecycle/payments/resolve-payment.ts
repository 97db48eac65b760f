/**
 * Decisions of a person about payments and refunds whose outcome cannot be queried: the account at the provider no longer exists, or the
 * provider does not report the outcome of this payment (docs/rules/payments.md, "Manual updates"). The reason is stored with the payment,
 * and so in the audit log.
 */
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { hasPaymentPage } from '../../../core/payments/applied-amount.ts';
import type { UpdatePayment } from '../../../core/payments/record.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { listAccountConnections } from '../../foundation/connections/find-connections.ts';
import { listOwnGateways } from '../../foundation/connections/payment-gateways.ts';
import { type LockedPayment, lockPayment } from '../../payments/lock-payment.ts';
import { listRefunds } from './book-refund.ts';
import { endRefund } from './refund-payment.ts';

type ResolutionRequest = { readonly request: UpdatePayment; readonly author: Author };

/** Whether only the provider knows the outcome of the payment. */
export function isDecidedByProvider(payment: PaymentModel): boolean {
  return payment.payment_status === 'PROCESSING' || (hasPaymentPage(payment) && payment.payment_status === 'INITIATED');
}

/**
 * Stores the reason for a person's decision. Refuses it while the provider can be queried, unless the last query showed that only a person
 * can resolve the payment.
 */
export async function storeReason(
  transaction: Transaction,
  payment: PaymentModel,
  { request: { reason, payment_status, pending_refunds }, author }: ResolutionRequest,
): Promise<PaymentModel> {
  const isDecision = pending_refunds || (payment_status && isDecidedByProvider(payment));
  if (!reason && pending_refunds) throw invalid('reason', 'is required with pending_refunds');
  if (!reason) return payment;
  if (!isDecision)
    throw invalid(
      'reason',
      'goes with pending_refunds, or with the payment_status of a payment whose provider decides it',
    );
  const connections = await listAccountConnections(payment, transaction);
  const connection = connections.find(({ provider_type }) => provider_type === payment.payment_gateway);
  const { payment_gateway: gateway } = payment;
  const isUnknowable = isDecidedByProvider(payment) && payment.query_failure && !pending_refunds;
  if ((gateway && listOwnGateways()[gateway]) || (connection?.connection_state === 'active' && !isUnknowable))
    throw notAllowed(`${gateway} can still tell the outcome: wait for it`, { field: 'reason' });
  const gateway_metadata = { ...payment.gateway_metadata, resolved_by_hand: reason };
  return PaymentModel.change(payment, { gateway_metadata }, { by: author, database: transaction });
}

export async function resolvePendingRefunds(
  stores: Stores,
  transaction: Transaction,
  { payment: { id, ...scope }, request: { pending_refunds, reason }, author: by }: LockedPayment & ResolutionRequest,
): Promise<PaymentModel> {
  const locked = await lockPayment(transaction, scope, id);
  const pending = (await listRefunds(locked.payment, transaction)).filter((one) => one.refund_status === 'pending');
  if (pending.length === 0) throw invalid('pending_refunds', 'the payment has no pending refund');
  for (const refund of pending) {
    const current = await lockPayment(transaction, scope, id);
    const outcome =
      pending_refunds === 'succeeded'
        ? { outcome: 'succeeded' as const, gateway_refund_id: refund.gateway_refund_id ?? '' }
        : { outcome: 'failed' as const, error: reason! };
    await endRefund(stores, transaction, { ...current, refund, outcome, by });
  }
  return PaymentModel.fetch(scope, id, { database: transaction });
}
