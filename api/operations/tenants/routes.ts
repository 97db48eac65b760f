/** The caller's own tenant. The id of another tenant is answered like a missing one. */

import { notFound } from '../../../core/foundation/error.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { TenantAnswer, UpdateTenant } from '../../foundation/tenants/schema.ts';
import { idParams, type Route, route, toAuthor } from '../../http/route.ts';

const tag = 'Tenants';

export const tenantRoutes: Route[] = [
  route({
    method: 'get',
    path: '/tenants/:id',
    operation_id: 'getTenantById',
    summary: 'Get the tenant',
    description: 'Returns the tenant of the API key. Any other id is answered with 404.',
    tag,
    access: 'tenant:read',
    params: idParams,
    success: 200,
    answer: TenantAnswer,
    handle: ({ params }, { principal, services }) => {
      if (params.id !== principal.tenant_id) throw notFound('tenant', params.id);
      return TenantModel.fetch(principal.tenant_id, params.id, { database: services.postgres });
    },
  }),
  route({
    method: 'put',
    path: '/tenants/update',
    operation_id: 'updateTenant',
    summary: 'Update the tenant',
    description:
      'Changes the tenant of the API key. Only sent fields change; a map replaces the previous one, and null clears it.',
    tag,
    access: 'tenant:write',
    findTarget: ({ principal }) => principal.tenant_id,
    body: UpdateTenant,
    success: 200,
    answer: TenantAnswer,
    handle: async ({ body }, context) => {
      const { tenant_id } = context.principal;
      const by = toAuthor(context);
      return context.services.postgres.transaction(async (transaction) => {
        const tenant = await TenantModel.fetch(tenant_id, tenant_id, { database: transaction, lock: true });
        const named = body.name === undefined ? {} : { is_named: true };
        return TenantModel.change(tenant, { ...body, ...named }, { by, database: transaction });
      });
    },
  }),
];
