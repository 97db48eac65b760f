/** Operator actions on tenants (docs/operations.md, "Tenants"). */
import { notFound } from '../../../core/foundation/error.ts';
import { hashPassword, makePassword } from '../../../storage/foundation/secrets/password.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { type TenantLine, TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { findSignIn, replacePassword } from '../../../storage/models/operations/user-password.ts';
import { createApiKey } from './api-keys.ts';
import { signUp } from './sign-up.ts';

type OpenedTenant = {
  readonly tenant_id: string;
  readonly environments: readonly { readonly id: string; readonly name: string }[];
  readonly password: string;
  readonly api_key: string;
};

/** Signs a tenant up and returns a password and a first key for the operator to hand on. */
export async function openTenant(
  stores: Postgres,
  { name, email, now }: { name: string; email: string; now: Date },
): Promise<OpenedTenant> {
  const password = makePassword();
  const { user, environments } = await signUp(stores, { wanted: { email, password, tenant_name: name }, now });
  const { id: user_id, tenant_id, roles } = user;
  const scope = { tenant_id, environment_id: environments[0]!.id };
  const principal = { user_id, tenant_id, roles };
  const wanted = { name: 'First key', type: 'private_key' } as const;
  const { api_key } = await createApiKey(stores, scope, { principal, wanted, now });
  return { tenant_id, environments, password, api_key };
}

/**
 * Suspends a tenant, or ends its suspension. A suspended tenant can be read but not written; `GET /v1/tenants/{id}` shows the suspension.
 */
export async function suspendTenant(
  { postgres }: Postgres,
  { id, suspended, now }: { id: string; suspended: boolean; now: Date },
): Promise<TenantLine> {
  return postgres.transaction(async (database) => {
    const tenant = await TenantModel.fetch(id, id, { database, lock: true });
    return TenantModel.change(tenant, { suspended }, { by: { now }, database });
  });
}

/** Sets a new password for a user who has lost the old one. */
export async function renewPassword(
  { postgres }: Postgres,
  { email, now }: { email: string; now: Date },
): Promise<string> {
  const known = await findSignIn(postgres, email);
  if (!known) throw notFound('user', email);
  const password = makePassword();
  const hash = await hashPassword(password);
  await postgres.transaction((transaction) => replacePassword(transaction, { ...known, hash, now }));
  return password;
}
