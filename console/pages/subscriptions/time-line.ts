/** Past and schedule of a subscription in one list: from its records, its schedules, its invoices and the audit log. */
import type { InvoiceRecord } from '../invoices/invoice.ts';
import {
  findNextInvoiceAt,
  type ScheduleRecord,
  type SubscribedLine,
  type SubscriptionRecord,
} from './subscription.ts';

export type TimeLineEntry = { readonly at: string; readonly key: string } & (
  | { readonly kind: 'created' | 'updated'; readonly actor: string | null; readonly fields: readonly string[] }
  | { readonly kind: 'started' | 'trial_ends' | 'ends' | 'cancelled' | 'phase' }
  | { readonly kind: 'invoice'; readonly invoice: InvoiceRecord }
  | { readonly kind: 'next_invoice'; readonly total: string | null; readonly currency: string }
  | {
      readonly kind: 'line';
      readonly line: string;
      readonly before: string | null;
      readonly after: string | null;
    }
  | { readonly kind: 'plan_changed'; readonly plan_name: string | null }
  | {
      readonly kind: 'scheduled';
      readonly schedule: ScheduleRecord;
      readonly target_plan_id: string | null;
    }
  | { readonly kind: 'undone'; readonly schedule_type: ScheduleRecord['schedule_type'] }
);

export type LoggedChange = {
  id: string;
  action: string;
  created_at: string;
  actor?: { name: string | null; email: string | null; id: string } | null;
  before?: Record<string, unknown> | null;
  after?: Record<string, unknown> | null;
};

type TimeLineInput = {
  subscription: SubscriptionRecord;
  schedules: readonly ScheduleRecord[];
  invoices: readonly InvoiceRecord[];
  changes: readonly LoggedChange[];
  /** The preview of the next invoice; null until it is known. */
  next: Pick<InvoiceRecord, 'total' | 'currency'> | null;
};

/** Fields that every period, and other entries of the time line, explain. */
const EXPLAINED = new Set([
  'version',
  'updated_at',
  'updated_by',
  'current_period_start',
  'current_period_end',
  'earlier_periods',
  'synced_price_sequence',
  'billing_anchor',
  'plan_id',
  'opens_at',
  'cancel_at',
  'cancelled_at',
  'cancel_at_period_end',
  'subscription_status',
]);

/** All entries, the latest first. */
export function buildTimeLine(input: TimeLineInput): TimeLineEntry[] {
  const { subscription } = input;
  return [
    ...listDates(subscription),
    ...listNextInvoice(input),
    ...input.invoices.map(
      (invoice): TimeLineEntry => ({
        kind: 'invoice',
        key: invoice.id,
        at: invoice.finalized_at ?? invoice.created_at,
        invoice,
      }),
    ),
    ...input.schedules.flatMap(listSchedule),
    ...listLineChanges(subscription),
    ...input.changes.flatMap(listLogged),
  ].sort((left, right) => new Date(right.at).getTime() - new Date(left.at).getTime());
}

function listDates({ start_date, trial_end, end_date, cancelled_at, phases }: SubscriptionRecord): TimeLineEntry[] {
  return [
    { kind: 'started', key: 'started', at: start_date },
    ...(trial_end ? [{ kind: 'trial_ends' as const, key: 'trial', at: trial_end }] : []),
    // The first phase begins with the subscription.
    ...(phases ?? []).slice(1).map(({ id, start_date: at }) => ({ kind: 'phase' as const, key: id, at })),
    ...(cancelled_at ? [{ kind: 'cancelled' as const, key: 'cancelled', at: cancelled_at }] : []),
    ...(end_date && end_date !== cancelled_at ? [{ kind: 'ends' as const, key: 'ends', at: end_date }] : []),
  ];
}

function listNextInvoice({ subscription, next }: TimeLineInput): TimeLineEntry[] {
  const at = findNextInvoiceAt(subscription);
  if (at === null) return [];
  return [{ kind: 'next_invoice', key: 'next', at, total: next?.total ?? null, currency: subscription.currency }];
}

function listSchedule(schedule: ScheduleRecord): TimeLineEntry[] {
  const { id, schedule_type, status, cancelled_at, scheduled_at, configuration } = schedule;
  const target = configuration?.['target_plan_id'];
  if (status === 'cancelled') return cancelled_at ? [{ kind: 'undone', key: id, at: cancelled_at, schedule_type }] : [];
  // An executed change shows itself in the lines and in the dates of the subscription.
  if (status === 'executed') return [];
  const target_plan_id = typeof target === 'string' ? target : null;
  return [{ kind: 'scheduled', key: id, at: scheduled_at, schedule, target_plan_id }];
}

/** Lines that begin or end after the start of the subscription. Lines of one price form one change of its quantity. */
function listLineChanges({
  line_items,
  start_date,
  plan_id,
  end_date,
  cancelled_at,
}: SubscriptionRecord): TimeLineEntry[] {
  const lines = line_items ?? [];
  const begun = lines.filter((line) => line.start_date > start_date);
  const planChanges = new Map<string, TimeLineEntry>();
  const entries = begun.flatMap((line): TimeLineEntry[] => {
    const previous = lines.find((each) => each.price_id === line.price_id && each.end_date === line.start_date);
    if (previous) return [toLineChange(line, line.start_date, previous.quantity, line.quantity)];
    if (line.entity_type === 'plan' && isNewPlan(line, lines)) {
      const name = line.plan_display_name ?? null;
      planChanges.set(line.start_date, {
        kind: 'plan_changed',
        key: `plan-${line.start_date}`,
        at: line.start_date,
        plan_name: name,
      });
      return [];
    }
    return [toLineChange(line, line.start_date, null, line.quantity)];
  });
  const ended = lines.filter(
    ({ end_date: end, entity_id, price_id }) =>
      end !== null &&
      end !== end_date &&
      end !== cancelled_at &&
      !planChanges.has(end) &&
      entity_id === plan_id &&
      !lines.some((each) => each.price_id === price_id && each.start_date === end),
  );
  return [
    ...entries,
    ...planChanges.values(),
    ...ended.map((line) => toLineChange(line, line.end_date!, line.quantity, null)),
  ];
}

/** Whether the lines before this one belong to another plan. */
function isNewPlan(line: SubscribedLine, lines: readonly SubscribedLine[]): boolean {
  return lines.some((each) => each.end_date === line.start_date && each.entity_id !== line.entity_id);
}

function toLineChange(
  { id, display_name, meter_display_name, price_type }: SubscribedLine,
  at: string,
  before: string | null,
  after: string | null,
): TimeLineEntry {
  const isCounted = price_type === 'FIXED';
  return {
    kind: 'line',
    key: `${id}-${at}`,
    at,
    line: display_name || meter_display_name || id,
    before: before !== null && !isCounted ? '' : before,
    after: after !== null && !isCounted ? '' : after,
  };
}

function listLogged({ id, action, created_at, actor, before, after }: LoggedChange): TimeLineEntry[] {
  const name = actor?.name || actor?.email || null;
  if (action === 'created') return [{ kind: 'created', key: id, at: created_at, actor: name, fields: [] }];
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  const fields = [...names].filter(
    (field) => !EXPLAINED.has(field) && JSON.stringify(before?.[field]) !== JSON.stringify(after?.[field]),
  );
  return fields.length === 0 ? [] : [{ kind: 'updated', key: id, at: created_at, actor: name, fields: fields.sort() }];
}
