/** Answer of a created or opened subscription, with its opening invoice and warnings. */
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import type { CheckoutSessionModel } from '../../../storage/models/payments/checkout-session.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import type { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { showCheckoutSession } from '../../foundation/checkout-session.ts';
import type { Context } from '../../http/route.ts';
import { loadLinesOfSubscriptions, showSubscription } from '../../subscriptions/expand.ts';
import { showWarnings } from '../../subscriptions/warnings.ts';

type CreatedSubscription = {
  readonly subscription: SubscriptionModel;
  readonly latest_invoice: InvoiceWithLines | null;
  readonly checkout_session?: CheckoutSessionModel | null;
  readonly line_items?: readonly SubscriptionLineItemModel[];
};

export async function showMade({ subscription, latest_invoice, ...made }: CreatedSubscription, context: Context) {
  const line_items = made.line_items ?? (await loadLinesOfSubscriptions([subscription], context));
  const shown = await showSubscription(subscription, context, { latest_invoice, line_items });
  const warnings = await showWarnings(subscription, line_items, context);
  const checkout_session = made.checkout_session ? await showCheckoutSession(made.checkout_session, context) : null;
  return { ...shown, checkout_session, warnings };
}
