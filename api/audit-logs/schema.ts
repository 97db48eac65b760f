/** What is asked of the audit log, and what it answers. */
import { z } from 'zod';
import { AUDIT_ACTIONS, AUDITED_TYPES, AuditEntry } from '../../core/audit/record.ts';
import { anyCase, timestampText, wholeNumber } from '../../core/record.ts';
import { listAnswer } from '../http/list.ts';

export const AuditFilter = z.object({
  entity_type: anyCase(AUDITED_TYPES)
    .optional()
    .meta({ description: 'Changes of records of this kind.', example: 'plan' }),
  entity_id: z.string().optional().meta({ description: 'Changes of the record with this id.' }),
  user_id: z
    .string()
    .optional()
    .meta({ description: 'What this user or service account has changed; `system` is the clock.' }),
  action: anyCase(AUDIT_ACTIONS).optional().meta({ description: 'Only what was done in this way.' }),
  start_time: timestampText.optional().meta({ description: 'Done at this instant or later.' }),
  end_time: timestampText.optional().meta({ description: 'Done before this instant or at it.' }),
  tenant_wide: z
    .preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())
    .default(false)
    .meta({
      description:
        'Whether to list changes of the tenant, its environments and users, which lie above the environments.',
    }),
  limit: wholeNumber
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'How many changes a page has at most.' }),
  offset: wholeNumber.pipe(z.int().min(0)).default(0).meta({ description: 'How many to leave out before the page.' }),
});

export const AuditAnswer = AuditEntry.meta({ id: 'AuditLogResponse' });
export const AuditListAnswer = listAnswer(AuditAnswer, 'ListAuditLogsResponse');
