/** Kinds of what needs a person (docs/rules/revenue.md, "What needs attention"), each with the permission to see it. */
import type { PermissionEntity } from '../foundation/access/role.ts';

export const ATTENTION_KINDS = {
  payment_failed: 'invoice',
  invoice_overdue: 'invoice',
  invoice_draft_waiting: 'invoice',
  events_not_counted: 'event',
  dead_letters: 'event',
  alert_in_alarm: 'alert_settings',
  task_failed: 'task',
  webhook_failing: 'webhook',
} as const satisfies Record<string, PermissionEntity>;

export type AttentionKind = keyof typeof ATTENTION_KINDS;
