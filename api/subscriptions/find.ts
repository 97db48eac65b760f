/** Lists and searches of subscriptions and of their line items, filter by filter. */
import { CustomerModel } from '../../storage/models/customer.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscription-line-item.ts';
import { fetchPage } from '../list.ts';
import type { Context } from '../route.ts';
import { partsOfLines, showLineItems, showSubscriptions } from './expand.ts';
import {
  lineItemGrammar,
  type SubscriptionFilter,
  type SubscriptionLineItemFilter,
  subscriptionGrammar,
} from './schema.ts';

export async function findSubscriptions(input: SubscriptionFilter, context: Context) {
  const query = SubscriptionModel.in(context.scope, context.services.postgres);
  byList(query, {
    id: input.subscription_ids,
    parent_subscription_id: input.parent_subscription_ids,
    customer_id: input.customer_ids,
    invoicing_customer_id: input.invoicing_customer_ids,
    subscription_status: input.subscription_status,
    subscription_type: input.subscription_type,
    billing_cadence: input.billing_cadence,
    billing_period: input.billing_period,
  });
  if (input.customer_id) query.where('customer_id', input.customer_id);
  if (input.external_customer_id)
    query.whereIn('customer_id', await customersCalled(input.external_customer_id, context));
  if (input.plan_id) query.where('plan_id', input.plan_id);
  byTime(query, input);
  const { items, pagination } = await fetchPage(query, input, subscriptionGrammar);
  const expand = [...(input.expand ?? [])];
  if (input.with_line_items) expand.push('subscription_line_items');
  if (input.with_coupon_associations) expand.push('coupon_associations');
  return { items: await showSubscriptions(items, expand, context), pagination };
}

export async function findLineItems(input: SubscriptionLineItemFilter, context: Context) {
  const query = SubscriptionLineItemModel.in(context.scope, context.services.postgres);
  byList(query, {
    id: input.subscription_line_item_ids,
    subscription_id: input.subscription_ids,
    customer_id: input.customer_ids,
    price_id: input.price_ids,
    meter_id: input.meter_ids,
    currency: input.currencies?.map((currency) => currency.toLowerCase()),
    billing_period: input.billing_periods,
    entity_id: input.entity_ids,
    addon_association_id: input.addon_association_ids,
  });
  if (input.entity_type) query.where('entity_type', input.entity_type);
  if (input.active_filter) {
    const at = input.current_period_start ?? context.now.toISOString();
    query.where((open) => open.whereNull('end_date').orWhere('end_date', '>', at));
  }
  const { items, pagination } = await fetchPage(query, input, lineItemGrammar);
  return { items: await showLineItems(items, partsOfLines(input.expand ?? []), context), pagination };
}

type Query = { whereIn(column: string, values: string[]): unknown };

/** A list that is given narrows; an empty one asks for nothing. */
export function byList(query: Query, lists: Record<string, string[] | undefined>): void {
  for (const [column, values] of Object.entries(lists)) if (values?.length) query.whereIn(column, values);
}

/** Archived customers too: their records keep their place in history. */
export async function customersCalled(external_id: string, { scope, services }: Context): Promise<string[]> {
  const customers = await CustomerModel.in(scope, services.postgres).select('id').where('external_id', external_id);
  return customers.map(({ id }) => id);
}

function byTime(query: ReturnType<typeof SubscriptionModel.in<SubscriptionModel>>, input: SubscriptionFilter): void {
  const { active_at, effective_date_for_update, trial_end_due_lte } = input;
  if (active_at) {
    query
      .where('start_date', '<=', active_at)
      .whereNot('subscription_status', 'draft')
      .where((open) => open.whereNull('end_date').orWhere('end_date', '>', active_at))
      .where((open) => open.whereNull('cancelled_at').orWhere('cancel_at', '>', active_at));
  }
  if (effective_date_for_update) {
    query.whereRaw('least(current_period_end, cancel_at, end_date) <= ?', [effective_date_for_update]);
  }
  if (trial_end_due_lte) query.where('subscription_status', 'trialing').where('trial_end', '<=', trial_end_due_lte);
}
