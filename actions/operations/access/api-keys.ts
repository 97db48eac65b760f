/** API keys: created for the caller or, by a super_admin, for a service account; revoked by their owner or a super_admin. */
import { type ApiKeyType, isSuperAdmin, requireSuperAdmin } from '../../../core/foundation/access/role.ts';
import { FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { runInEnvironment } from '../../../storage/foundation/request-context.ts';
import { hashApiKey, makeApiKey, maskApiKey } from '../../../storage/foundation/secrets/api-key.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { SecretModel } from '../../../storage/models/operations/secret.ts';

type ApiKeyCreator = { readonly user_id: string; readonly tenant_id: string; readonly roles: readonly string[] };
type ApiKeyInput = {
  readonly name: string;
  readonly type: ApiKeyType;
  readonly expires_at?: string | null;
  readonly service_account_id?: string | null;
  /** Environment of the key. Default: the environment of the request. */
  readonly environment_id?: string | null;
};

export async function createApiKey(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { principal, wanted, now }: { principal: ApiKeyCreator; wanted: ApiKeyInput; now: Date },
): Promise<{ secret: SecretModel; api_key: string }> {
  const { name, type, expires_at = null } = wanted;
  if (expires_at !== null && toInstant(expires_at) <= now.getTime())
    throw invalid('expires_at', 'must be in the future');
  return postgres.transaction(async (transaction) => {
    const user_id = await lockKeyOwner(transaction, principal, wanted.service_account_id);
    const environment_id = await environmentFor(transaction, principal, { scope, wanted });
    const api_key = makeApiKey(type);
    const record = {
      id: newId('secret', now.getTime()),
      user_id,
      name,
      type,
      key_hash: hashApiKey(api_key),
      display_id: maskApiKey(api_key),
      expires_at,
      ...createdBy({ user_id: principal.user_id, now }),
    };
    const secret = await runInEnvironment(environment_id, () =>
      SecretModel.add({ ...scope, environment_id }, record, { database: transaction }),
    );
    return { secret, api_key };
  });
}

export async function revokeApiKey(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, principal, now }: { id: string; principal: ApiKeyCreator; now: Date },
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const secret = await SecretModel.fetch(scope, id, { database: transaction, lock: true });
    if (secret.user_id !== principal.user_id && !isSuperAdmin(principal))
      throw new FarthingError('permission_denied', 'only a super_admin may revoke the key of another');
    const by = { user_id: principal.user_id, now };
    await SecretModel.change(secret, { status: 'deleted' }, { by, database: transaction });
  });
}

/** Locks the owner's row, so that a service account cannot be archived while it gets a key. */
async function lockKeyOwner(
  transaction: Database,
  principal: ApiKeyCreator,
  service_account_id?: string | null,
): Promise<string> {
  if (!service_account_id || service_account_id === principal.user_id) return principal.user_id;
  requireSuperAdmin(principal, 'make a key for another');
  const account = await UserModel.fetch(principal.tenant_id, service_account_id, { database: transaction, lock: true });
  if (account.type !== 'service_account') throw invalid('service_account_id', 'names a user, not a service account');
  if (account.status !== 'published') throw notAllowed('this service account is archived');
  return account.id;
}

/**
 * Returns the environment of the new key. A leaked key must not open other environments, so only a super_admin's key creates keys for them.
 */
async function environmentFor(
  transaction: Database,
  principal: ApiKeyCreator,
  { scope, wanted: { environment_id } }: { scope: Scope; wanted: ApiKeyInput },
): Promise<string> {
  if (!environment_id || environment_id === scope.environment_id) return scope.environment_id;
  requireSuperAdmin(principal, 'make a key for another environment');
  const { tenant_id } = principal;
  const known = await EnvironmentModel.byId(tenant_id, [environment_id], transaction);
  if (known.get(environment_id)?.status !== 'published')
    throw invalid('environment_id', 'is no environment of this tenant');
  return environment_id;
}
