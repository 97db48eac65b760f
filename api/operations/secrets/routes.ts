/** API keys: created for a principal in the caller's environment, shown once, revoked permanently. */
import { createApiKey, revokeApiKey } from '../../../actions/operations/access/api-keys.ts';
import { isSuperAdmin } from '../../../core/foundation/access/role.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { SecretModel } from '../../../storage/models/operations/secret.ts';
import { forgetKeys } from '../../http/auth.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { CreateApiKey, CreateApiKeyAnswer, SecretFilter, SecretListAnswer, secretGrammar } from './schema.ts';

const tag = 'API keys';

export const secretRoutes: Route[] = [
  route({
    method: 'get',
    path: '/secrets/api/keys',
    operation_id: 'listApiKeys',
    summary: 'List API keys',
    description:
      "Returns the masked keys of the environment: all of them for a super_admin, otherwise the caller's own.",
    tag,
    access: 'secret:read',
    query: SecretFilter,
    success: 200,
    answer: SecretListAnswer,
    handle: async ({ query }, context) => {
      const { scope, principal, services } = context;
      const keys = narrow(SecretModel.in(scope, services.postgres), [
        // A caller who is not a super_admin sees only its own keys.
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
    summary: 'Create an API key',
    description:
      'Creates a key, which is shown only once. Its owner is the caller, or a service account if the caller is a ' +
      'super_admin. The key acts with the roles of its owner in one environment: that of the request, or ' +
      '`environment_id`. A request with the key that names another environment in X-Environment-ID is refused. A ' +
      'publishable key may only send events.',
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
      'Revokes the key permanently: this process refuses it at once, others within five seconds. Only a ' +
      'super_admin may revoke the key of another user.',
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

/** Adds the roles of each key, which are those of its principal. */
async function withHolders(secrets: SecretModel[], { principal, services }: Context) {
  const ids = secrets.map(({ user_id }) => user_id);
  const users = await UserModel.byId(principal.tenant_id, ids, services.postgres);
  return secrets.map((secret) => {
    const user = users.get(secret.user_id);
    const service_account_name = user?.type === 'service_account' ? user.name : null;
    return { ...secret, roles: user?.roles, user_type: user?.type, service_account_name };
  });
}
