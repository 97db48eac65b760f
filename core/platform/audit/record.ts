/**
 * One change of one record: user, action, states before and after, time (docs/rules/records.md, "The audit log"). Secrets are redacted by
 * field name, in every table.
 */
import { z } from 'zod';
import { timestampText } from '../../foundation/record.ts';
import { AUDIT_ACTIONS } from './kinds.ts';

type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** User of changes that no request caused, such as those of scheduled jobs. */
export const SYSTEM_USER = 'system';

const state = z.record(z.string(), z.unknown()).nullable();

export const AuditEntry = z.object({
  id: z.string(),
  environment_id: z.string().meta({ description: 'Environment of the record; empty for a record of the tenant.' }),
  entity_type: z.string().meta({ description: 'Type of the record, such as plan, invoice or user.', example: 'plan' }),
  entity_id: z.string().meta({ description: 'Id of the record.' }),
  action: z.enum(AUDIT_ACTIONS).meta({ description: 'Kind of the change.' }),
  user_id: z
    .string()
    .meta({ description: 'User or service account that made the change; `system` for scheduled jobs.' }),
  secret_id: z.string().nullable().meta({ description: 'Id of the API key that was used; null if there was none.' }),
  request_id: z.string().nullable().meta({ description: 'X-Request-ID of the request; null if there was none.' }),
  before: state.meta({ description: 'Record before the change; null if it was created.' }),
  after: state.meta({ description: 'Record after the change; null if it was deleted permanently.' }),
  created_at: timestampText.meta({ description: 'Time of the change.' }),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

type AuditState = Readonly<Record<string, unknown>>;

/** The new status of the record decides the action. */
export function deriveAuditAction(before: AuditState | null, after: AuditState | null): AuditAction {
  if (after === null) return 'deleted';
  if (before === null) return 'created';
  if (before.status === after.status) return 'updated';
  if (after.status === 'archived') return 'archived';
  return after.status === 'deleted' ? 'deleted' : 'updated';
}

/** Fields such as `secret_id` do not match: the id of a key or endpoint is not secret. */
const SECRET = /hash|password|passphrase|token|api_?key|authorization|credential|private_key|cipher|(?:^|_)secrets?$/i;
const REDACTED = '[redacted]';

/** Matches the text of every record with a secret field, so that other records need no check of their fields. */
const MAY_BE_SECRET = /hash|password|passphrase|token|api_?key|authorization|credential|private_key|cipher|secret/i;

/** JSON of the record. A secret is replaced by a placeholder, so that its existence is visible but not its value. */
export function redactSecrets(record: unknown): string {
  const text = JSON.stringify(record);
  // Fast path: most records have no secret, and checking each field takes longer than one test of the whole text.
  if (!MAY_BE_SECRET.test(text)) return text;
  return JSON.stringify(record, (field, value) => {
    if (!SECRET.test(field) || value === null || value === undefined || typeof value === 'boolean') return value;
    return REDACTED;
  });
}
