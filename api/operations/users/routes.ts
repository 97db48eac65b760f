/** Users and service accounts of the tenant; they own the API keys. */

import { preparePassword } from '../../../actions/operations/access/change-password.ts';
import { archiveServiceAccount, changeUser, replaceRoles } from '../../../actions/operations/access/change-user.ts';
import { prepareClaim } from '../../../actions/operations/access/claim-user.ts';
import { createUser } from '../../../actions/operations/access/create-user.ts';
import { requireSuperAdmin } from '../../../core/foundation/access/role.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import {
  CreateUser,
  CreateUserAnswer,
  RenameServiceAccount,
  UpdateUser,
  UpdateUserRoles,
  UserAnswer,
  UserFilter,
  UserListAnswer,
  userGrammar,
} from '../../foundation/users/schema.ts';
import { forgetKeys } from '../../http/auth.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { limitAttempts } from '../auth/attempts.ts';

const tag = 'Users';

export const userRoutes: Route[] = [
  route({
    method: 'get',
    path: '/users/me',
    operation_id: 'getUserInfo',
    summary: 'Get the caller and its tenant',
    description: 'Returns the user or service account that owns the API key, with its roles.',
    tag,
    access: 'self:read',
    findTarget: ({ principal }) => principal.user_id,
    success: 200,
    answer: UserAnswer,
    handle: async (_input, context) => {
      const { principal, services } = context;
      const user = await UserModel.fetch(principal.tenant_id, principal.user_id, { database: services.postgres });
      return withTenant(user, context);
    },
  }),
  route({
    method: 'put',
    path: '/users/me',
    operation_id: 'updateUser',
    summary: 'Update your own profile',
    description:
      'Changes the name, metadata or password of the user that owns the API key, token or session. Only sent fields ' +
      'change; null clears name or metadata. A new password needs the current one, and ends earlier tokens and all ' +
      'sessions except that of the request. A user without an email sets it together with its first password, once.',
    tag,
    access: 'self:write',
    findTarget: ({ principal }) => principal.user_id,
    body: UpdateUser,
    success: 200,
    answer: UserAnswer,
    handle: async ({ body }, context) => {
      const { services, principal } = context;
      const { email, password, current_password, ...changes } = body;
      if (current_password && !password) throw invalid('password', 'is required with current_password');
      const claim = email ? await prepareClaim(services, principal, { email, password }) : undefined;
      const wanted = password && !claim && { password, current_password };
      const newPassword =
        claim ||
        (wanted && (await limitAttempts([principal.user_id], () => preparePassword(services, principal, wanted))));
      const user = await changeUser(services, {
        ...subject(context, principal.user_id),
        changes: claim && email ? { ...changes, email } : changes,
        ...(newPassword ? { newPassword } : {}),
      });
      if (newPassword) forgetKeys(services, principal.tenant_id);
      return withTenant(user, context);
    },
  }),
  route({
    method: 'post',
    path: '/users',
    operation_id: 'createUser',
    summary: 'Create a user or service account',
    description:
      'Creates a user with a unique email and a password that is shown only in this answer, or a service account ' +
      'without an email and with at least one role. For a super_admin only.',
    tag,
    access: 'user:write',
    shows_secret: true,
    body: CreateUser,
    success: 201,
    answer: CreateUserAnswer,
    example: { body: { type: 'service_account', name: 'Collector', roles: ['event_ingestor'] } },
    idempotency: 'shown_once',
    handle: async ({ body }, context) => {
      const { services, principal, now } = context;
      const { user, password } = await createUser(services, { inviter: principal, wanted: body, now });
      return { ...(await withTenant(user, context)), password };
    },
  }),
  route({
    method: 'post',
    path: '/users/search',
    operation_id: 'queryUser',
    summary: 'Search users',
    description:
      'Returns users and service accounts of the tenant. Default: published ones, newest first; `status` and ' +
      '`sort` change that.',
    tag,
    access: 'user:read',
    body: UserFilter,
    success: 200,
    answer: UserListAnswer,
    handle: ({ body }, context) => findUsers(body, context),
  }),
  route({
    method: 'put',
    path: '/users/:id',
    operation_id: 'renameServiceAccount',
    summary: 'Rename a service account',
    description:
      'Changes the name of a service account. For a super_admin only. Refused for a user, who can change only its own profile.',
    tag,
    access: 'user:write',
    params: idParams,
    body: RenameServiceAccount,
    success: 200,
    answer: UserAnswer,
    handle: async ({ params, body }, context) => {
      requireSuperAdmin(context.principal, 'change service accounts');
      const change = { ...subject(context, params.id), changes: body, only: 'service_account' } as const;
      return withTenant(await changeUser(context.services, change), context);
    },
  }),
  route({
    method: 'put',
    path: '/users/:id/roles',
    operation_id: 'updateUserRoles',
    summary: 'Replace the roles of a user',
    description:
      'Replaces all roles. For a super_admin only, and not for the caller itself. Refused while the user has ' +
      'active API keys, because they would change with it; revoke them first.',
    tag,
    access: 'user:write',
    params: idParams,
    body: UpdateUserRoles,
    success: 200,
    answer: UserAnswer,
    handle: async ({ params, body }, context) => {
      const { principal } = context;
      const user = await replaceRoles(context.services, {
        ...subject(context, params.id),
        principal,
        roles: body.roles,
      });
      forgetKeys(context.services, context.principal.tenant_id);
      return withTenant(user, context);
    },
  }),
  route({
    method: 'delete',
    path: '/users/:id',
    operation_id: 'deleteUser',
    summary: 'Archive a service account',
    description:
      'Archives a service account. For a super_admin only. Refused while it has active API keys (revoke them ' +
      'first), and for users.',
    tag,
    access: 'user:write',
    params: idParams,
    success: 204,
    handle: async ({ params }, context) => {
      requireSuperAdmin(context.principal, 'archive service accounts');
      await archiveServiceAccount(context.services, subject(context, params.id));
      forgetKeys(context.services, context.principal.tenant_id);
    },
  }),
];

function subject(context: Context, id: string) {
  return { tenant_id: context.principal.tenant_id, id, author: toAuthor(context) };
}

async function withTenant(user: UserModel, { principal, services }: Context) {
  const tenant = await TenantModel.fetch(principal.tenant_id, principal.tenant_id, { database: services.postgres });
  return { ...user, tenant };
}

async function findUsers(input: UserFilter, { principal, services }: Context) {
  const users = narrow(UserModel.ofTenant(principal.tenant_id, services.postgres), [
    ['id', input.user_ids],
    ['type', input.type],
    ['roles', 'overlaps', input.roles?.length ? input.roles : undefined],
  ]);
  const tenant = await TenantModel.fetch(principal.tenant_id, principal.tenant_id, { database: services.postgres });
  const { items, pagination } = await fetchPage(users, input, userGrammar);
  return { items: items.map((user) => ({ ...user, tenant })), pagination };
}
