/** Query and answers of the audit log. */
import { z } from 'zod';
import { anyCase, timestampText, wholeNumber } from '../../../core/foundation/record.ts';
import { AUDIT_ACTIONS, AUDITED_TYPES } from '../../../core/platform/audit/kinds.ts';
import { AuditEntry } from '../../../core/platform/audit/record.ts';
import { ActorAnswer } from '../../foundation/actors.ts';
import { listAnswer, listShape } from '../../http/list.ts';

export const AuditFilter = z.object({
  entity_type: anyCase(AUDITED_TYPES).optional().meta({ description: 'Type of the changed record.', example: 'plan' }),
  entity_id: z.string().optional().meta({ description: 'Id of the changed record.' }),
  user_id: z
    .string()
    .optional()
    .meta({ description: 'User or service account that made the change; `system` for scheduled jobs.' }),
  action: anyCase(AUDIT_ACTIONS).optional().meta({ description: 'Kind of the change.' }),
  start_time: timestampText.optional().meta({ description: 'Earliest instant of a change, inclusive.' }),
  end_time: timestampText.optional().meta({ description: 'Latest instant of a change, inclusive.' }),
  tenant_wide: z
    .preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())
    .default(false)
    .meta({
      description:
        'True to list the changes of the tenant, its environments and users instead of those in the environment. Default: false.',
    }),
  limit: wholeNumber
    .pipe(z.int().min(1).max(1000))
    .default(50)
    .meta({ description: 'Maximum number of changes per page, 1 to 1,000. Default: 50.' }),
  offset: wholeNumber
    .pipe(z.int().min(0))
    .default(0)
    .meta({ description: 'Number of changes to skip before the page. Default: 0.' }),
  cursor: listShape({}).shape.cursor,
});

export const AuditAnswer = AuditEntry.extend({
  actor: ActorAnswer.nullable().meta({
    description: 'Author of the change with its name; null if `user_id` is no user of the tenant.',
  }),
  entity_name: z.string().nullable().meta({
    description: 'Name, number or key of the record at the time of the change; null if it has none.',
  }),
}).meta({ id: 'AuditLogResponse' });
export const AuditListAnswer = listAnswer(AuditAnswer, 'ListAuditLogsResponse');
