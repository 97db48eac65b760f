/** How a new subscription may be asked to belong to others (docs/rules/subscriptions.md, "Families"). */
import { z } from 'zod';
import { anyCase, orNull } from '../record.ts';

const ids = orNull(z.array(z.string().min(1)).max(1000));

/** Of a request for a subscription: whose part it is. */
export const parentFields = {
  invoice_billing: orNull(anyCase(['invoice_to_parent', 'invoice_to_self'])).meta({
    description:
      'With `parent_subscription_id`: invoice_to_parent has the parent’s customer pay; when absent it takes part in the parent’s subscription.',
  }),
  parent_subscription_id: orNull(z.string()).meta({
    description: 'The subscription that it takes part in, or, with invoice_to_parent, whose customer pays.',
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

/** What a child that is made with its group states; its currency, periods, start and clock are those of the parent. */
export function buildChildShape<Shape extends z.ZodRawShape>(terms: z.ZodObject<Shape>) {
  const child = (terms as z.ZodObject).pick(CHILD_FIELDS);
  return child as unknown as z.ZodObject<Pick<Shape, keyof typeof CHILD_FIELDS>>;
}

/** One kind of belonging together; the two ways to name the children of a group go together. `child`: what one states. */
export function buildInheritanceShape<Child extends z.ZodRawShape>(child: z.ZodObject<Child>) {
  const external_customer_id = z.string().min(1).meta({ description: 'The customer by the id that its events name.' });
  return z.object({
    external_customer_ids_to_inherit_subscription: ids.meta({
      description:
        'Customers, by the ids that their events name, whose usage is counted on this subscription as if they were its customer.',
    }),
    parent_subscription_id: orNull(z.string()).meta({
      description: 'The subscription in which this customer takes part: it counts their usage.',
    }),
    invoicing_customer_external_id: orNull(z.string()).meta({
      description: 'The customer who pays, by the id that their events name.',
    }),
    subscriptions_ids_for_grouped_invoicing: ids.meta({
      description:
        'Standalone subscriptions with the same periods, that are invoiced together with this one from now on.',
    }),
    grouped_invoicing_children_to_create: orNull(z.array(child.extend({ external_customer_id })).max(100)).meta({
      description: 'Subscriptions of other customers that are made with this one, and invoiced together with it.',
    }),
  });
}
