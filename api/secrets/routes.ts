/** API keys: made for a principal and the caller's environment, shown once, revoked for good. */
import { createApiKey, revokeApiKey } from '../../actions/access/api-keys.ts';
import { isSuperAdmin } from '../../core/access/role.ts';
import { narrow } from '../../storage/models/page.ts';
import { SecretModel } from '../../storage/models/secret.ts';
import { UserModel } from '../../storage/models/user.ts';
import { forgetKeys } from '../http/auth.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route } from '../http/route.ts';
import { CreateApiKey, CreateApiKeyAnswer, SecretFilter, SecretListAnswer, secretGrammar } from './schema.ts';

const tag = 'API keys';

export const secretRoutes: Route[] = [
  route({
    method: 'get',
    path: '/secrets/api/keys',
    operation_id: 'listApiKeys',
    summary: 'List API keys, masked',
    description: 'Of the environment: all of them for a super_admin, else the own ones.',
    tag,
    access: 'secret:read',
    query: SecretFilter,
    success: 200,
    answer: SecretListAnswer,
    handle: async ({ query }, context) => {
      const { scope, principal, services } = context;
      const keys = narrow(SecretModel.in(scope, services.postgres), [
        // Who is not a super_admin sees the own keys only.
        ['user_id', isSuperAdmin(principal) ? undefined : principal.user_id],
        ['user_id', query.user_id],
      ]);
      const { items, pagination } = await fetchPage(keys, query, secretGrammar);
      return { items: await withHolders(items, context), pagination };
    },
  }),
  route({
    method: 'post',
    path: '/secrets/api/keys',
    operation_id: 'createApiKey',
    summary: 'Create an API key; it is shown once',
    description:
      'For the caller, or for a service account if the caller is a super_admin. It acts with the roles of its owner in one environment, that of the request unless `environment_id` names another; a request with this key that names another in X-Environment-ID is refused. A publishable one may only send events.',
    tag,
    access: 'secret:write',
    shows_secret: true,
    body: CreateApiKey,
    success: 201,
    answer: CreateApiKeyAnswer,
    example: { body: { name: 'Collector', type: 'private_key' } },
    idempotency: 'shown_once',
    handle: async ({ body }, context) => {
      const { scope, principal, services, now } = context;
      const { api_key, secret } = await createApiKey(services, scope, { principal, wanted: body, now });
      forgetKeys(services, principal.tenant_id);
      const [shown] = await withHolders([secret], context);
      return { secret: shown, api_key };
    },
  }),
  route({
    method: 'delete',
    path: '/secrets/api/keys/:id',
    operation_id: 'deleteApiKey',
    summary: 'Revoke an API key',
    description:
      'For good: this process refuses it at once, others within five seconds. That of another is for a super_admin only.',
    tag,
    access: 'secret:write',
    params: idParams,
    success: 204,
    handle: async ({ params }, { scope, principal, services, now }) => {
      await revokeApiKey(services, scope, { id: params.id, principal, now });
      forgetKeys(services, principal.tenant_id);
    },
  }),
];

/** A key's roles are those of its principal. */
async function withHolders(secrets: SecretModel[], { principal, services }: Context) {
  const ids = secrets.map(({ user_id }) => user_id);
  const users = await UserModel.byId(principal.tenant_id, ids, services.postgres);
  return secrets.map((secret) => {
    const user = users.get(secret.user_id);
    const service_account_name = user?.type === 'service_account' ? user.name : null;
    return { ...secret, roles: user?.roles, user_type: user?.type, service_account_name };
  });
}
