/** Audit log: user, record and time of each change, newest first. Each change writes its entry; no route changes an entry. */
import { invalid } from '../../../core/foundation/error.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { loadPage, NEWEST_FIRST, narrow } from '../../../storage/models/foundation/page.ts';
import { AuditEntryModel } from '../../../storage/models/operations/audit-entry.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { AuditAnswer, AuditFilter, AuditListAnswer } from './schema.ts';

const tag = 'Audit log';
export const auditLogRoutes: Route[] = [
  route({
    method: 'get',
    path: '/audit-logs',
    operation_id: 'listAuditLogs',
    summary: 'List audit log entries',
    description:
      'Returns the changes of the environment’s records, newest first, with user, record before and record after. Secrets are redacted. All conditions must hold.',
    tag,
    access: 'audit_log:read',
    query: AuditFilter,
    success: 200,
    answer: AuditListAnswer,
    handle: async ({ query }, { scope, services }) => {
      const { limit, offset, cursor, start_time, end_time } = query;
      if (start_time && end_time && toInstant(end_time) < toInstant(start_time))
        throw invalid('end_time', 'must not be before start_time');
      const where = query.tenant_wide ? { ...scope, environment_id: '' } : scope;
      const entries = narrow(AuditEntryModel.in(where, services.postgres), [
        ['entity_type', query.entity_type],
        ['entity_id', query.entity_id],
        ['user_id', query.user_id],
        ['action', query.action],
        ['created_at', '>=', start_time],
        ['created_at', '<=', end_time],
      ]);
      return loadPage(entries, { limit, offset, cursor, order: NEWEST_FIRST });
    },
  }),
  route({
    method: 'get',
    path: '/audit-logs/:id',
    operation_id: 'getAuditLog',
    summary: 'Get an audit log entry',
    description: 'Returns a change in the environment, or of a record of the tenant, which belongs to no environment.',
    tag,
    access: 'audit_log:read',
    params: idParams,
    success: 200,
    answer: AuditAnswer,
    handle: async ({ params }, context) => fetchEntry(params.id, context),
  }),
];

async function fetchEntry(id: string, { scope, services }: Context): Promise<AuditEntryModel> {
  const database = services.postgres;
  const known = await AuditEntryModel.byId({ ...scope, environment_id: '' }, [id], database);
  return known.get(id) ?? AuditEntryModel.fetch(scope, id, { database });
}
