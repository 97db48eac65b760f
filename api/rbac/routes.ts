/** Roles: a list of ours, not of the tenant's. */
import { z } from 'zod';
import { findRole, ROLES } from '../../core/access/role.ts';
import { notFound } from '../../core/error.ts';
import { anyCase } from '../../core/record.ts';
import { USER_TYPES } from '../../storage/models/user.ts';
import { idParams, type Route, route } from '../http/route.ts';

const tag = 'Roles';

const RoleAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'For people.' }),
    description: z.string().meta({ description: 'Whom it is for.' }),
    permissions: z
      .record(z.string(), z.array(z.string()))
      .meta({ description: 'What may be done, by kind of record: `{"meter": ["read", "write"]}`.' }),
  })
  .meta({ id: 'Role' });

export const rbacRoutes: Route[] = [
  route({
    method: 'get',
    path: '/rbac/roles',
    operation_id: 'listRbacRoles',
    summary: 'List roles',
    description: 'Roles are given, and none can be added. `user_type` narrows them to those that such a user may have.',
    tag,
    access: 'user:read',
    query: z.object({
      user_type: anyCase(USER_TYPES)
        .optional()
        .meta({ description: 'Roles that such a user may have; all when absent.' }),
    }),
    success: 200,
    answer: z
      .object({ roles: z.array(RoleAnswer).meta({ description: 'All that meet the condition.' }) })
      .meta({ id: 'ListRolesResponse' }),
    handle: async ({ query }) => {
      const { user_type } = query;
      return { roles: ROLES.filter((role) => !user_type || role.user_types.includes(user_type)) };
    },
  }),
  route({
    method: 'get',
    path: '/rbac/roles/:id',
    operation_id: 'getRbacRole',
    summary: 'Get a role',
    description: 'With what it allows, by entity.',
    tag,
    access: 'user:read',
    params: idParams,
    success: 200,
    answer: z
      .object({ role: RoleAnswer.meta({ description: 'The role that was asked for.' }) })
      .meta({ id: 'GetRoleResponse' }),
    handle: async ({ params }) => {
      const role = findRole(params.id);
      if (!role) throw notFound('role', params.id);
      return { role };
    },
  }),
];
