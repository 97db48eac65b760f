/** The caller's own tenant. Another tenant's id answers as one that does not exist. */

import { notFound } from '../../core/error.ts';
import { TenantModel } from '../../storage/models/tenant.ts';
import { idParams, type Route, route, toAuthor } from '../http/route.ts';
import { TenantAnswer, UpdateTenant } from './schema.ts';

const tag = 'Tenants';

export const tenantRoutes: Route[] = [
  route({
    method: 'get',
    path: '/tenants/:id',
    operation_id: 'getTenantById',
    summary: 'Get the tenant',
    description: 'The tenant of the API key; any other does not exist here.',
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
      'Changes the tenant of the API key. What is not sent stays; a map that is sent replaces the one before, and null clears it.',
    tag,
    access: 'tenant:write',
    body: UpdateTenant,
    success: 200,
    answer: TenantAnswer,
    handle: async ({ body }, context) => {
      const { tenant_id } = context.principal;
      const by = toAuthor(context);
      return context.services.postgres.transaction(async (transaction) => {
        const tenant = await TenantModel.fetch(tenant_id, tenant_id, { database: transaction, lock: true });
        return TenantModel.change(tenant, body, { by, database: transaction });
      });
    },
  }),
];
