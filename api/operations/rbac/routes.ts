/** Roles are a fixed list of the product; tenants cannot change it. */
import { z } from 'zod';
import { findRole, ROLES } from '../../../core/foundation/access/role.ts';
import { notFound } from '../../../core/foundation/error.ts';
import { anyCase } from '../../../core/foundation/record.ts';
import { USER_TYPES } from '../../../storage/models/foundation/user.ts';
import { idParams, type Route, route } from '../../http/route.ts';

const tag = 'Roles';

export const RoleAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'Display name.' }),
    description: z.string().meta({ description: 'Intended users of the role.' }),
    permissions: z
      .record(z.string(), z.array(z.string()))
      .meta({ description: 'Allowed actions per kind of record: `{"meter": ["read", "write"]}`.' }),
  })
  .meta({ id: 'Role' });

export const rbacRoutes: Route[] = [
  route({
    method: 'get',
    path: '/rbac/roles',
    operation_id: 'listRbacRoles',
    summary: 'List roles',
    description:
      'Returns the predefined roles; none can be added. `user_type` limits the list to roles that such a user may have.',
    tag,
    access: 'user:read',
    query: z.object({
      user_type: anyCase(USER_TYPES)
        .optional()
        .meta({ description: 'Limits the list to roles for this type of user. Default: all roles.' }),
    }),
    success: 200,
    answer: z
      .object({ roles: z.array(RoleAnswer).meta({ description: 'Roles that meet the condition.' }) })
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
    description: 'Returns the role with its permissions per entity.',
    tag,
    access: 'user:read',
    params: idParams,
    success: 200,
    answer: z.object({ role: RoleAnswer.meta({ description: 'The requested role.' }) }).meta({ id: 'GetRoleResponse' }),
    handle: async ({ params }) => {
      const role = findRole(params.id);
      if (!role) throw notFound('role', params.id);
      return { role };
    },
  }),
];
