/** Limits the environments and users of a tenant by the setting tenant_config (docs/rules/records.md, "Settings"). */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';

/** Locks and loads the limits of a tenant. The lock serializes concurrent additions; otherwise together they could exceed the limit. */
async function loadTenantLimits(transaction: Database, tenant_id: string) {
  await TenantModel.fetch(tenant_id, tenant_id, { database: transaction, lock: true });
  return loadSetting({ tenant_id, environment_id: '' }, 'tenant_config', transaction);
}

export async function checkEnvironmentLimit(
  transaction: Database,
  tenant_id: string,
  type: EnvironmentModel['type'],
): Promise<void> {
  const { [type]: limit } = await loadTenantLimits(transaction, tenant_id);
  const count = await EnvironmentModel.ofTenant(tenant_id, transaction)
    .where({ type, status: 'published' })
    .resultSize();
  if (count >= limit)
    throw notAllowed(`${type}: the setting tenant_config allows ${limit} environments of this type`, {
      field: 'type',
      limit,
    });
}

/** Counts users of type `user`, not service accounts. */
export async function checkUserLimit(transaction: Database, tenant_id: string): Promise<void> {
  const { max_users: limit } = await loadTenantLimits(transaction, tenant_id);
  const people = UserModel.ofTenant(tenant_id, transaction).where({ type: 'user', status: 'published' });
  if ((await people.resultSize()) >= limit)
    throw notAllowed(`the setting tenant_config allows ${limit} users`, { field: 'max_users', limit });
}
