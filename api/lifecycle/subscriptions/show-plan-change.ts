/** Answer shapes of plan changes. */

import { buildLinesPreview, showLineChanges } from '../../../actions/lifecycle/modify/changed-lines.ts';
import type { ChangedResources } from '../../../actions/lifecycle/modify/changed-resources.ts';
import type { AddonsOfChange } from '../../../actions/lifecycle/plan-change/addons.ts';
import type { ChangedPlan, PreviewedPlanChange } from '../../../actions/lifecycle/subscriptions/change-plan.ts';
import type { EntityBehaviour } from '../../../core/catalog/addon/policy.ts';
import type { Plan } from '../../../core/catalog/plan/record.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import { MAX_FRACTION_DIGITS } from '../../../core/foundation/money.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import type { InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { buildProrationSummary } from '../../../core/subscriptions/plan-change-summary.ts';
import type { Subscription } from '../../../core/subscriptions/record.ts';
import type { Context } from '../../http/route.ts';
import { showSubscription } from '../../subscriptions/expand.ts';

type PlanChangeMetadata = { metadata: Record<string, string> | null };

export function showPreview(
  { before, plan, at, shared_meters }: PreviewedPlanChange,
  { metadata }: PlanChangeMetadata,
) {
  const after: Subscription = { ...before, ...plan.changes };
  const [made] = buildLinesPreview(plan.lines).invoices;
  return {
    subscription_id: before.id,
    current_plan: summary(plan.from),
    target_plan: summary(plan.to),
    change_type: plan.change_type,
    proration_details: prorations({ before, plan, at }),
    next_invoice_preview: made ? showInvoicePreview(made.invoice) : null,
    effective_date: formatMs(at),
    new_billing_cycle: {
      ...after,
      period_start: after.current_period_start,
      period_end: after.current_period_end,
    },
    warnings: [...planChangeWarnings(plan), ...shared_meters],
    metadata,
  };
}

export function showChangedPlan(changed: ChangedPlan, { metadata }: PlanChangeMetadata) {
  const { before, subscription, plan, applied } = changed;
  return {
    ...scheduled(changed),
    old_subscription: { ...before, status: before.subscription_status },
    new_subscription: { ...subscription, status: subscription.subscription_status },
    change_type: plan.change_type,
    invoice: applied?.settled?.invoice ?? null,
    proration_applied: applied ? prorations(changed) : null,
    effective_date: formatMs(changed.at),
    warnings: [...planChangeWarnings(plan), ...changed.shared_meters],
    metadata,
  };
}

export async function showPreviewV2(previewed: PreviewedPlanChange, request: PlanChangeMetadata, context: Context) {
  const changed_resources = buildLinesPreview(previewed.plan.lines);
  const subscription = await showSubscription(previewed.before, context);
  return { ...partsV2(previewed, { ...request, changed_resources, is_scheduled: false }), subscription };
}

/** Builds the answer without the subscription, which the routes add: a repeated request adds the current one to the stored answer. */
export function showChangedPlanV2(changed: ChangedPlan, request: PlanChangeMetadata) {
  const { applied } = changed;
  const nothing: ChangedResources = { line_items: [], subscriptions: [], invoices: [] };
  const changed_resources = applied ? showLineChanges(applied) : nothing;
  return partsV2(changed, { ...request, ...scheduled(changed), changed_resources });
}

function partsV2(
  { plan, at, shared_meters }: Pick<PreviewedPlanChange, 'plan' | 'at' | 'shared_meters'>,
  shown: PlanChangeMetadata & { changed_resources: ChangedResources; is_scheduled: boolean },
) {
  return {
    ...shown,
    change_type: plan.change_type,
    effective_at: formatMs(at),
    from_plan: summary(plan.from),
    to_plan: summary(plan.to),
    entity_changes: entityChanges(plan),
    warnings: [...planChangeWarnings(plan), ...shared_meters],
  };
}

function entityChanges({ carried, addons }: PreviewedPlanChange['plan']) {
  const lines = carried.map(({ id, line_item }) => ({
    entity_type: line_item.entity_type,
    reference_id: id,
    entity_id: line_item.entity_id,
    behaviour: 'carry' as const,
  }));
  const associations = (held: AddonsOfChange['carried'], behaviour: EntityBehaviour) =>
    held.map(({ id, addon_id }) => ({
      entity_type: 'addon' as const,
      reference_id: id,
      entity_id: addon_id,
      behaviour,
    }));
  return [...lines, ...associations(addons.carried, 'carry'), ...associations(addons.dropped, 'drop')];
}

function scheduled({ schedule }: ChangedPlan) {
  return {
    is_scheduled: schedule !== null,
    schedule_id: schedule?.id ?? null,
    scheduled_at: schedule?.scheduled_at ?? null,
  };
}

function summary({ id, name, lookup_key, description }: Plan) {
  return { id, name, lookup_key, description };
}

function prorations({ before, plan, at }: Omit<PreviewedPlanChange, 'shared_meters'>) {
  const lines = plan.lines.settlement?.lines;
  if (!lines) return null;
  const current = { start: toInstant(before.current_period_start), end: toInstant(before.current_period_end) };
  return buildProrationSummary(lines, { at, current, currency: before.currency, timezone: before.timezone });
}

function showInvoicePreview({ subtotal, total, total_tax, currency, line_items, due_date }: InvoiceWithLines) {
  return {
    subtotal,
    tax_amount: total_tax,
    total,
    currency,
    due_date,
    line_items: line_items.map(({ display_name, amount, quantity, period_start, period_end, computed_from }) => ({
      description: display_name,
      amount,
      quantity,
      unit_price: unitPrice(amount, quantity),
      period_start,
      period_end,
      is_proration: Boolean(computed_from?.proration),
    })),
  };
}

function unitPrice(amount: string, quantity: string): string {
  const units = new Decimal(quantity);
  return units.isZero() ? '0' : new Decimal(amount).dividedBy(units).toDecimalPlaces(MAX_FRACTION_DIGITS).toFixed();
}

function planChangeWarnings({ closing }: PreviewedPlanChange['plan']): string[] {
  return closing ? ['a new billing period begins with the change; the arrears of the running one are invoiced'] : [];
}
