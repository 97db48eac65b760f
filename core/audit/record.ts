/**
 * One change of one record: who, what, before, after, when (docs/rules/records.md, "The audit log"). What is secret never
 * stands in it, whatever table it comes from: that goes by the name of the field.
 */
import { z } from 'zod';
import { timestampText } from '../record.ts';

export const AUDIT_ACTIONS = ['created', 'updated', 'archived', 'deleted'] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** Who changes what nobody asked for: the clock. */
export const SYSTEM_USER = 'system';

/** What kinds of records are told; test/storage/models/audited.test.ts holds the list against the models. */
export const AUDITED_TYPES = [
  'addon',
  'addon_association',
  'alert_setting',
  'api_key',
  'connection',
  'cost_sheet',
  'coupon',
  'coupon_association',
  'credit_grant',
  'credit_note',
  'customer',
  'entitlement',
  'environment',
  'feature',
  'group',
  'invoice',
  'meter',
  'payment',
  'payment_method',
  'payment_refund',
  'plan',
  'price',
  'price_unit',
  'scheduled_task',
  'setting',
  'subscription',
  'subscription_line_item',
  'subscription_phase',
  'subscription_schedule',
  'tax_association',
  'tax_rate',
  'tenant',
  'user',
  'wallet',
  'wallet_transaction',
  'webhook_endpoint',
] as const;

const state = z.record(z.string(), z.unknown()).nullable();

export const AuditEntry = z.object({
  id: z.string(),
  environment_id: z.string().meta({ description: 'Empty for what lies above the environments.' }),
  entity_type: z.string().meta({ description: 'What kind of record it is: plan, invoice, user.', example: 'plan' }),
  entity_id: z.string().meta({ description: 'The id of the record.' }),
  action: z.enum(AUDIT_ACTIONS).meta({ description: 'What was done to it.' }),
  user_id: z.string().meta({ description: 'Who did it: a user or a service account, or `system` for the clock.' }),
  secret_id: z.string().nullable().meta({ description: 'The id of the API key it was done with.' }),
  request_id: z.string().nullable().meta({ description: 'The X-Request-ID of the request that did it.' }),
  before: state.meta({ description: 'The record as it was; null when it was made.' }),
  after: state.meta({ description: 'The record as it was then; null when it was deleted for good.' }),
  created_at: timestampText.meta({ description: 'When it was done.' }),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

type AuditState = Readonly<Record<string, unknown>>;

/** By the status that the record has got. */
export function deriveAuditAction(before: AuditState | null, after: AuditState | null): AuditAction {
  if (after === null) return 'deleted';
  if (before === null) return 'created';
  if (before.status === after.status) return 'updated';
  if (after.status === 'archived') return 'archived';
  return after.status === 'deleted' ? 'deleted' : 'updated';
}

/** A key's or endpoint's id is none. */
const SECRET = /hash|password|passphrase|token|api_?key|authorization|credential|private_key|cipher|(?:^|_)secrets?$/i;
const REDACTED = '[redacted]';

/** In the text of a record without any of these no field is named so. */
const MAY_BE_SECRET = /hash|password|passphrase|token|api_?key|authorization|credential|private_key|cipher|secret/i;

/** The record as JSON. A secret is there by name, so that it can be told that there is one, but not which. */
export function redactSecrets(record: unknown): string {
  const text = JSON.stringify(record);
  // Most have none, and each field by itself takes longer than all of them at once.
  if (!MAY_BE_SECRET.test(text)) return text;
  return JSON.stringify(record, (field, value) => {
    if (!SECRET.test(field) || value === null || value === undefined || typeof value === 'boolean') return value;
    return REDACTED;
  });
}
