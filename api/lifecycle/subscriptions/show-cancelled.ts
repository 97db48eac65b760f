/** Input and answer of a cancellation. */
import type { CancelledSubscription } from '../../../actions/lifecycle/subscriptions/cancel-subscription.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { formatUs, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { buildProrationDetail } from '../../../core/subscriptions/proration-detail.ts';
import { type Context, type DecodedInput, toAuthor } from '../../http/route.ts';
import type { CancelSubscription } from '../../subscriptions/schema.ts';

export function toCancelRequest(id: string, body: DecodedInput<typeof CancelSubscription>, context: Context) {
  return {
    id,
    cancellation_type: body.cancellation_type,
    cancel_at: body.cancel_at,
    invoice_policy:
      body.cancel_immediately_inovice_policy ?? body.cancel_immediately_invoice_policy ?? 'generate_invoice',
    proration_behavior: body.proration_behavior,
    reason: body.reason,
    author: toAuthor(context),
  };
}

export function showCancelled({ subscription, effective_date, credited }: CancelledSubscription) {
  const { id, subscription_status, timezone } = subscription;
  const isOver = subscription_status === 'cancelled';
  return {
    subscription_id: id,
    effective_date,
    status: subscription_status,
    proration_invoice: credited?.settled[0]?.invoice ?? null,
    proration_details: credited?.lines.map((line) => buildProrationDetail(line, timezone)) ?? [],
    total_credit_amount: sumDecimals(
      (credited?.settled ?? []).map(({ wallet_transaction }) => new Decimal(wallet_transaction?.amount ?? '0')),
    ).toFixed(),
    message: isOver
      ? 'the subscription is cancelled'
      : `the subscription will be cancelled at ${formatUs(toUs(toInstant(effective_date)))}`,
  };
}

export function showRequested(
  { cancellation_type, reason }: DecodedInput<typeof CancelSubscription>,
  { now }: Context,
) {
  return { cancellation_type, reason, processed_at: now.toISOString() };
}
