/**
 * Relations between subscriptions (docs/rules/subscriptions.md, "Families"). A parent counts the usage of the customers
 * who inherit from it. A group is billed on the invoice of its parent. A delegated subscription is paid by another
 * customer. A subscription has one of these relations at most.
 */
import { Decimal } from '../foundation/decimal.ts';
import { buildStateError, invalid } from '../foundation/error.ts';
import { toInstant } from '../foundation/time/instant.ts';
import { toLocalMs } from '../foundation/time/zone.ts';
import type { CreateSubscription, Subscription } from './record.ts';

export type SubscriptionHierarchy =
  | { readonly kind: 'alone' }
  /** The subscription takes part in a parent's subscription, which counts its usage. */
  | { readonly kind: 'inherited'; readonly parent_subscription_id: string; readonly field: string }
  /** Another customer pays: the one with this external id, or the customer of the parent subscription. */
  | { readonly kind: 'delegated'; readonly invoicing_customer_external_id: string }
  | { readonly kind: 'delegated'; readonly parent_subscription_id: string }
  | { readonly kind: 'parent'; readonly external_customer_ids: readonly string[] }
  | { readonly kind: 'group'; readonly subscription_ids: readonly string[]; readonly children: readonly GroupChild[] };

export type GroupChild = NonNullable<
  NonNullable<CreateSubscription['inheritance']>['grouped_invoicing_children_to_create']
>[number];

const INHERITANCE_FIELDS = [
  'parent_subscription_id',
  'external_customer_ids_to_inherit_subscription',
  'invoicing_customer_external_id',
  'subscriptions_ids_for_grouped_invoicing',
  'grouped_invoicing_children_to_create',
] as const;

/** Derives the relation that a create request names. A request with more than one relation is refused. */
export function parseHierarchy(
  request: Pick<CreateSubscription, 'inheritance' | 'parent_subscription_id' | 'invoice_billing'>,
): SubscriptionHierarchy {
  checkOneKind(request);
  const { inheritance, parent_subscription_id, invoice_billing } = request;
  if (parent_subscription_id && invoice_billing === 'invoice_to_parent')
    return { kind: 'delegated', parent_subscription_id };
  if (invoice_billing === 'invoice_to_parent')
    throw invalid('parent_subscription_id', 'is required: who is the parent?');
  if (parent_subscription_id && invoice_billing === 'invoice_to_self')
    throw invalid('invoice_billing', 'is invoice_to_parent where there is a parent_subscription_id, or left out');
  if (parent_subscription_id) return { kind: 'inherited', parent_subscription_id, field: 'parent_subscription_id' };
  return inheritance ? parseInheritance(inheritance) : { kind: 'alone' };
}

function parseInheritance(inheritance: NonNullable<CreateSubscription['inheritance']>): SubscriptionHierarchy {
  const parent_subscription_id = inheritance.parent_subscription_id;
  if (parent_subscription_id)
    return { kind: 'inherited', parent_subscription_id, field: 'inheritance.parent_subscription_id' };
  const { invoicing_customer_external_id } = inheritance;
  if (invoicing_customer_external_id) return { kind: 'delegated', invoicing_customer_external_id };
  const external_customer_ids = inheritance.external_customer_ids_to_inherit_subscription ?? [];
  if (external_customer_ids.length > 0) {
    checkDistinct('inheritance.external_customer_ids_to_inherit_subscription', external_customer_ids);
    return { kind: 'parent', external_customer_ids };
  }
  const subscription_ids = inheritance.subscriptions_ids_for_grouped_invoicing ?? [];
  const children = inheritance.grouped_invoicing_children_to_create ?? [];
  if (subscription_ids.length + children.length === 0) return { kind: 'alone' };
  checkDistinct('inheritance.subscriptions_ids_for_grouped_invoicing', subscription_ids);
  return { kind: 'group', subscription_ids, children };
}

/** Throws if the request names more than one relation. Only the two fields that name the children of a group may be combined. */
function checkOneKind({ inheritance, parent_subscription_id }: Parameters<typeof parseHierarchy>[0]): void {
  const named = INHERITANCE_FIELDS.filter((field) => {
    const value = inheritance?.[field];
    return Array.isArray(value) ? value.length > 0 : Boolean(value);
  }).map((field) => `inheritance.${field}`);
  if (parent_subscription_id) named.unshift('parent_subscription_id');
  const kinds = new Set(named.map((field) => (field.includes('grouped_invoicing') ? 'group' : field)));
  if (kinds.size > 1) throw invalid('inheritance', `asks for several kinds of hierarchy: ${named.join(', ')}`);
}

export function checkDistinct(field: string, values: readonly string[]): void {
  const twice = values.find((value, index) => values.indexOf(value) !== index);
  if (twice !== undefined) throw invalid(field, `names ${twice} twice`);
}

/** Throws if a subscription that is not standalone has an invoice threshold (docs/rules/subscriptions.md, "Families"). */
export function checkNoThreshold(threshold: string | null | undefined, kind: SubscriptionHierarchy['kind']): void {
  if (kind === 'alone' || !hasThreshold({ auto_invoice_threshold: threshold })) return;
  throw invalid('auto_invoice_threshold', 'is for standalone subscriptions only');
}

type HierarchyMember = Pick<
  Subscription,
  | 'id'
  | 'subscription_type'
  | 'subscription_status'
  | 'parent_subscription_id'
  | 'billing_period'
  | 'billing_period_count'
  | 'billing_anchor'
  | 'billing_cycle'
  | 'timezone'
  | 'currency'
  | 'start_date'
  | 'current_period_end'
  | 'auto_invoice_threshold'
>;
export type HierarchyParent = HierarchyMember;

const LIVE_STATUSES: readonly string[] = ['active', 'trialing'];

/** Throws if a parent of inherited subscriptions has a parent itself or an invoice threshold. */
export function checkCanHaveInherited(parent: HierarchyParent): void {
  checkParentType(parent);
  if (hasThreshold(parent))
    throw invalid('auto_invoice_threshold', `subscription ${parent.id} has one, and cannot have inherited children`);
}

function hasThreshold({ auto_invoice_threshold: threshold }: Pick<HierarchyMember, 'auto_invoice_threshold'>): boolean {
  return new Decimal(threshold || 0).gt(0);
}

/** Throws unless the subscription may join the invoice of a parent: both must be live, and their periods equal. */
export function checkGroupable(child: HierarchyMember, parent: HierarchyParent, field: string): void {
  checkParentType(parent);
  if (!LIVE_STATUSES.includes(parent.subscription_status))
    throw buildStateError('parent_subscription_id', `subscription ${parent.id} is ${parent.subscription_status}`);
  if (hasThreshold(parent))
    throw invalid('auto_invoice_threshold', `subscription ${parent.id} has one, and cannot have a group`);
  const refused = (why: string) => invalid(field, `subscription ${child.id} ${why}`);
  if (child.id === parent.id) throw refused('is the parent itself');
  if (child.subscription_type !== 'STANDALONE' || child.parent_subscription_id)
    throw refused(`is ${child.subscription_type} and not STANDALONE`);
  if (!LIVE_STATUSES.includes(child.subscription_status))
    throw buildStateError(field, `subscription ${child.id} is ${child.subscription_status}`);
  if (hasThreshold(child)) throw refused('has an auto_invoice_threshold');
  for (const term of ['currency', 'billing_period', 'billing_period_count', 'timezone'] as const)
    if (child[term] !== parent[term])
      throw refused(`has the ${term} ${child[term]}, and the parent has ${parent[term]}`);
  checkSamePeriods(child, parent, refused);
}

/** Throws unless a child that is created with its parent has an equal first period. They differ if only one has a trial. */
export function checkSamePeriod(child: HierarchyMember, parent: HierarchyParent): void {
  if (toInstant(child.current_period_end) === toInstant(parent.current_period_end)) return;
  throw invalid('inheritance.grouped_invoicing_children_to_create', 'has another first period than its parent', {
    current_period_end: parent.current_period_end,
  });
}

function checkSamePeriods(child: HierarchyMember, parent: HierarchyParent, refused: (why: string) => Error): void {
  if (formatAnchor(child) !== formatAnchor(parent))
    throw refused('has another day or time of billing_anchor than the parent');
  if (toInstant(child.start_date) < toInstant(parent.start_date)) throw refused('starts before the parent');
  if (toInstant(child.current_period_end) !== toInstant(parent.current_period_end))
    throw refused('is in another period than the parent: try again when both are invoiced up to now');
}

/**
 * Formats the day of the month and the local time of the anchor, to compare the periods of two subscriptions. Weekly and daily periods have
 * no such day, so it is left out; the caller also compares the period ends.
 */
function formatAnchor({ billing_anchor, billing_period, timezone }: HierarchyMember): string {
  const localTime = new Date(toLocalMs(timezone, toInstant(billing_anchor))).toISOString();
  const isOfMonths = billing_period !== 'WEEKLY' && billing_period !== 'DAILY';
  return localTime.slice(isOfMonths ? '2026-01-'.length : '2026-01-01T'.length);
}

function checkParentType(parent: HierarchyParent): void {
  if (parent.subscription_type === 'STANDALONE' || parent.subscription_type === 'PARENT') return;
  throw invalid('parent_subscription_id', `subscription ${parent.id} is ${parent.subscription_type} itself`);
}
