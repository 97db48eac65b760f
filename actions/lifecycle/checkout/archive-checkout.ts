/** Archives a checkout session; one that can still be paid is ended first (docs/rules/checkout.md, "Without a payment"). */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import { resumePayment } from '../payments/process-payment.ts';
import { endCheckout } from './end-checkout.ts';

export async function archiveCheckout(
  stores: Stores,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  const database = stores.postgres;
  const seen = await CheckoutSessionModel.fetchPublished(scope, id, { database });
  const ended = await endCheckout(stores, scope, {
    id,
    status: 'archived',
    checkout_status: 'expired',
    failure_reason: 'it was closed by a request',
    cancelled_at: author.now.toISOString(),
    author,
  });
  if (ended === 'is_paid_now')
    throw notAllowed('the invoice of this session is being paid: wait until that payment has ended');
  if (ended === 'was_over') return archiveEnded(stores, scope, { id, author });
  // Closes the page at its provider, or refunds the money if the page was paid in the meantime.
  await resumePayment(stores, scope, { id: seen.checkout_payment_id!, by: author });
}

async function archiveEnded(
  { postgres: database }: Stores,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  const { checkout_status } = await CheckoutSessionModel.fetchPublished(scope, id, { database });
  if (checkout_status === 'completed')
    throw notAllowed('this session is completed: cancel what it paid for, or refund its payment', { checkout_status });
  const changes = { id, changes: { status: 'archived' as const } };
  await CheckoutSessionModel.changePublished(scope, changes, { by: author, database });
}
