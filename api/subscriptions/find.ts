import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import {
  narrowToActiveAt,
  narrowToChangingBy,
  SubscriptionModel,
} from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { fetchPage } from '../http/list.ts';
import type { Context } from '../http/route.ts';
import { parseLineParts, showLineItems, showSubscriptions } from './expand.ts';
import {
  lineItemGrammar,
  type SubscriptionFilter,
  type SubscriptionLineItemFilter,
  subscriptionGrammar,
} from './schema.ts';

export async function findSubscriptions(input: SubscriptionFilter, context: Context) {
  const { scope, services } = context;
  const everything = narrowToActiveAt(SubscriptionModel.in(scope, services.postgres), input.active_at);
  const query = narrow(narrowToChangingBy(everything, input.effective_date_for_update), [
    ['id', input.subscription_ids],
    ['parent_subscription_id', input.parent_subscription_ids],
    ['customer_id', input.customer_ids],
    ['invoicing_customer_id', input.invoicing_customer_ids],
    ['subscription_status', input.subscription_status],
    ['subscription_type', input.subscription_type],
    ['billing_cadence', input.billing_cadence],
    ['billing_period', input.billing_period],
    ['customer_id', input.customer_id],
    ['customer_id', 'in', await CustomerModel.idsCalled(scope, input.external_customer_id, services.postgres)],
    ['plan_id', input.plan_id],
    ['subscription_status', input.trial_end_due_lte ? 'trialing' : undefined],
    ['trial_end', '<=', input.trial_end_due_lte],
  ]);
  const { items, pagination } = await fetchPage(query, input, subscriptionGrammar);
  const expand = [...(input.expand ?? [])];
  if (input.with_line_items) expand.push('subscription_line_items');
  if (input.with_coupon_associations) expand.push('coupon_associations');
  return { items: await showSubscriptions(items, expand, context), pagination };
}

export async function findLineItems(input: SubscriptionLineItemFilter, context: Context) {
  const query = narrow(SubscriptionLineItemModel.in(context.scope, context.services.postgres), [
    ['id', input.subscription_line_item_ids],
    ['subscription_id', input.subscription_ids],
    ['customer_id', input.customer_ids],
    ['price_id', input.price_ids],
    ['meter_id', input.meter_ids],
    ['currency', input.currencies?.map((currency) => currency.toLowerCase())],
    ['billing_period', input.billing_periods],
    ['entity_id', input.entity_ids],
    ['addon_association_id', input.addon_association_ids],
    ['entity_type', input.entity_type],
    ['end_date', 'open at', input.active_filter ? (input.current_period_start ?? context.now) : undefined],
  ]);
  const { items, pagination } = await fetchPage(query, input, lineItemGrammar);
  return { items: await showLineItems(items, parseLineParts(input.expand ?? []), context), pagination };
}
