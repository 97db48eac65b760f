/** Audit log: user, record and time of each change, newest first. Each change writes its entry; no route changes an entry. */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { deriveEntityName } from '../../../core/platform/audit/entity-name.ts';
import { SYSTEM_USER } from '../../../core/platform/audit/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { loadPage, NEWEST_FIRST, narrow } from '../../../storage/models/foundation/page.ts';
import { AuditEntryModel } from '../../../storage/models/operations/audit-entry.ts';
import { loadActors } from '../../foundation/actors.ts';
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
      'Returns the changes of the environment’s records, newest first, with author, record before and record after. Secrets are redacted. All conditions must hold.',
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
      const page = await loadPage(entries, { limit, offset, cursor, order: NEWEST_FIRST });
      return { ...page, items: await showEntries(page.items, scope, services.postgres) };
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
    handle: async ({ params }, context) => {
      const { scope, services } = context;
      const [entry] = await showEntries([await fetchEntry(params.id, context)], scope, services.postgres);
      return entry;
    },
  }),
];

async function showEntries(entries: readonly AuditEntryModel[], scope: Scope, database: Database) {
  const authors = entries.map(({ user_id }) => user_id);
  const actors = await loadActors(authors, { scope, system_id: SYSTEM_USER, database });
  return entries.map((entry) => ({
    ...entry,
    actor: actors.get(entry.user_id) ?? null,
    entity_name: deriveEntityName(entry),
  }));
}

async function fetchEntry(id: string, { scope, services }: Context): Promise<AuditEntryModel> {
  const database = services.postgres;
  const known = await AuditEntryModel.byId({ ...scope, environment_id: '' }, [id], database);
  return known.get(id) ?? AuditEntryModel.fetch(scope, id, { database });
}
