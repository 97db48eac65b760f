/** Answer shape of payments, with attempts and refunds on request. */
import { groupBy } from '../../core/foundation/group-by.ts';
import type { PaymentModel } from '../../storage/models/payments/payment.ts';
import { PaymentAttemptModel } from '../../storage/models/payments/payment-attempt.ts';
import { PaymentRefundModel } from '../../storage/models/payments/payment-refund.ts';
import type { Context } from '../http/route.ts';

const EVERY_PART = ['attempts', 'refunds'];

export async function showPayments(
  payments: readonly PaymentModel[],
  expand: readonly string[],
  { scope, services }: Context,
) {
  const ids = payments.map(({ id }) => id);
  const attempts = expand.includes('attempts')
    ? await PaymentAttemptModel.in(scope, services.postgres).whereIn('payment_id', ids).orderBy('attempt_number')
    : null;
  const refunds = expand.includes('refunds')
    ? await PaymentRefundModel.in(scope, services.postgres).whereIn('payment_id', ids).orderBy(['created_at', 'id'])
    : null;
  const byPayment = <Part extends { payment_id: string }>(parts: Part[] | null) =>
    parts && groupBy(parts, ({ payment_id }) => payment_id);
  const [tried, given] = [byPayment(attempts), byPayment(refunds)];
  return payments.map((payment) => ({
    ...payment,
    attempts: tried && (tried.get(payment.id) ?? []),
    refunds: given && (given.get(payment.id) ?? []),
  }));
}

export async function showPayment(payment: PaymentModel, context: Context) {
  const [shown] = await showPayments([payment], EVERY_PART, context);
  return shown!;
}
