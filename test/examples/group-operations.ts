/** The operations of grouped_invoicing.* on core/subscriptions/hierarchy.ts. */
import { z } from 'zod';
import { checkGroupable, type HierarchyParent } from '../../core/subscriptions/hierarchy.ts';
import type { Result } from './compare.ts';

const MEMBER: HierarchyParent = {
  id: 'subs_child',
  subscription_type: 'STANDALONE',
  subscription_status: 'active',
  parent_subscription_id: null,
  billing_period: 'MONTHLY',
  billing_period_count: 1,
  billing_anchor: '2026-01-15T09:30:00Z',
  billing_cycle: 'anniversary',
  timezone: 'UTC',
  currency: 'usd',
  start_date: '2026-01-15T09:30:00Z',
  current_period_end: '2026-02-15T09:30:00Z',
  auto_invoice_threshold: null,
};

/** What differs of a child and a parent that go together otherwise. */
const CONDITIONS: Record<string, { child?: Partial<HierarchyParent>; parent?: Partial<HierarchyParent> }> = {
  none: {},
  parent_is_parent: { parent: { subscription_type: 'PARENT' } },
  both_trialing: { child: { subscription_status: 'trialing' }, parent: { subscription_status: 'trialing' } },
  child_not_standalone: { child: { subscription_type: 'DELEGATED_INVOICING' } },
  child_has_parent: { child: { subscription_type: 'grouped_invoicing', parent_subscription_id: 'subs_other' } },
  child_is_parent_itself: { child: { id: 'subs_parent' } },
  child_inactive: { child: { subscription_status: 'cancelled' } },
  child_draft: { child: { subscription_status: 'draft' } },
  child_has_threshold: { child: { auto_invoice_threshold: '5' } },
  child_starts_before: { child: { start_date: '2026-01-15T09:29:59Z' } },
  child_in_another_period: { child: { current_period_end: '2026-03-15T09:30:00Z' } },
  parent_inactive: { parent: { subscription_status: 'incomplete' } },
  parent_is_child: { parent: { subscription_type: 'INHERITED', parent_subscription_id: 'subs_other' } },
  billing_period_differs: { child: { billing_period: 'QUARTERLY' } },
  billing_period_count_differs: { child: { billing_period_count: 2 } },
  currency_differs: { child: { currency: 'eur' } },
  timezone_differs: { child: { timezone: 'Europe/Lisbon' } },
  anchor_day_or_time_differs: { child: { billing_anchor: '2026-01-16T09:30:00Z' } },
  anchor_time_differs: { child: { billing_anchor: '2026-01-15T09:31:00Z' } },
  anchor_month_differs: { child: { billing_anchor: '2025-11-15T09:30:00Z' } },
};

export function addToGroup(given: Result): Result {
  const { condition } = z.object({ condition: z.enum(Object.keys(CONDITIONS) as [string]) }).parse(given);
  const { child, parent } = CONDITIONS[condition]!;
  checkGroupable({ ...MEMBER, ...child }, { ...MEMBER, id: 'subs_parent', ...parent }, 'child_subscription_ids');
  return { accepted: true };
}
