/** A tenant with its environments and its super admin: created at the first start, by a sign-up, or by the operator. */

import { newId } from '../../foundation/new-id.ts';
import type { Database } from '../../foundation/stores.ts';
import { type ENVIRONMENT_TYPES, EnvironmentModel } from '../foundation/environment.ts';
import { TenantModel } from '../foundation/tenant.ts';
import { UserModel } from '../foundation/user.ts';

type WantedTenant = {
  readonly name: string;
  /** Whether the name may stand on documents. */
  readonly is_named: boolean;
  readonly billing_details?: Record<string, unknown> | null | undefined;
  readonly environments: readonly { readonly name: string; readonly type: (typeof ENVIRONMENT_TYPES)[number] }[];
  readonly user: {
    readonly name: string;
    readonly email?: string;
    readonly metadata?: Record<string, string> | undefined;
  };
  readonly now: Date;
};

export type NewTenant = { tenant: TenantModel; environments: EnvironmentModel[]; user: UserModel };

/** The creation is atomic if the caller has a transaction open. */
export async function makeTenant(
  database: Database,
  { name, is_named, billing_details = null, environments, user, now }: WantedTenant,
): Promise<NewTenant> {
  const stamp = { created_at: now.toISOString(), updated_at: now.toISOString() };
  const at = now.getTime();
  const tenant = await TenantModel.add(
    { id: newId('tenant', at), name, is_named, billing_details, ...stamp },
    { database },
  );
  const scope = { tenant_id: tenant.id, ...stamp };
  const made: EnvironmentModel[] = [];
  for (const environment of environments)
    made.push(await EnvironmentModel.add({ id: newId('environment', at), ...environment, ...scope }, { database }));
  const record = { id: newId('user', at), type: 'user', roles: ['super_admin'], metadata: {}, ...user, ...scope };
  return { tenant, environments: made, user: await UserModel.add(record, { database }) };
}
