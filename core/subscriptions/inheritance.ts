/** Fields with which a new subscription requests a relation to others (docs/rules/subscriptions.md, "Families"). */
import { z } from 'zod';
import { anyCase, orNull } from '../foundation/record.ts';

const ids = orNull(z.array(z.string().min(1)).max(1000));

export const parentFields = {
  invoice_billing: orNull(anyCase(['invoice_to_parent', 'invoice_to_self'])).meta({
    description:
      'Payer of the subscription. With invoice_to_parent the customer of `parent_subscription_id` pays; that field is then required. Without this field, the subscription takes part in the parent’s subscription. invoice_to_self with a parent is refused.',
  }),
  parent_subscription_id: orNull(z.string()).meta({
    description:
      'Id of the parent subscription. The new subscription takes part in it. With invoice_to_parent, its customer pays instead.',
  }),
};

const CHILD_FIELDS = {
  plan_id: true,
  trial_period_days: true,
  credit_grants: true,
  commitment_amount: true,
  commitment_duration: true,
  overage_factor: true,
  enable_true_up: true,
  tax_rate_overrides: true,
  subscription_coupons: true,
  coupons: true,
  line_item_coupons: true,
  line_item_commitments: true,
  override_line_items: true,
  override_entitlements: true,
  addons: true,
  line_items: true,
  phases: true,
} as const;

/** Fields of a child that is created with its group. Its currency, periods, start and timezone are those of the parent. */
export function buildChildShape<Shape extends z.ZodRawShape>(terms: z.ZodObject<Shape>) {
  const child = (terms as z.ZodObject).pick(CHILD_FIELDS);
  return child as unknown as z.ZodObject<Pick<Shape, keyof typeof CHILD_FIELDS>>;
}

/**
 * A request names one kind of relation. The two fields that name the children of a group may be combined. `child` is
 * the shape of one child.
 */
export function buildInheritanceShape<Child extends z.ZodRawShape>(child: z.ZodObject<Child>) {
  const external_customer_id = z.string().min(1).meta({ description: 'Customer, by the external id in its events.' });
  return z.object({
    external_customer_ids_to_inherit_subscription: ids.meta({
      description:
        'Customers, by external id, whose usage counts on this subscription as if they were its customer. At most 1,000.',
    }),
    parent_subscription_id: orNull(z.string()).meta({
      description: 'Subscription in which this customer takes part. It counts the customer’s usage.',
    }),
    invoicing_customer_external_id: orNull(z.string()).meta({
      description: 'Customer who pays, by external id.',
    }),
    subscriptions_ids_for_grouped_invoicing: ids.meta({
      description:
        'Standalone subscriptions with equal periods that are invoiced with this one from now on. At most 1,000.',
    }),
    grouped_invoicing_children_to_create: orNull(z.array(child.extend({ external_customer_id })).max(100)).meta({
      description: 'Subscriptions of other customers that are created with this one and invoiced with it. At most 100.',
    }),
  });
}
