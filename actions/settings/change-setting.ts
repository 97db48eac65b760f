/** Settings are changed field by field and set back as a whole, by a super_admin (docs/rules/records.md, "Settings"). */
import { requireSuperAdmin } from '../../core/access/role.ts';
import { FarthingError } from '../../core/error.ts';
import type { Scope } from '../../core/scope.ts';
import { changedSetting, SETTINGS, type SettingKey } from '../../core/setting/record.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { findSetting, SettingModel, TenantSettingModel } from '../../storage/models/setting.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores } from '../../storage/stores.ts';

type Principal = { readonly roles: readonly string[] };
type Asked = { readonly key: SettingKey; readonly principal: Principal; readonly author: Author };
type Row = SettingModel | TenantSettingModel;

export async function changeSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { key, sent, principal, author }: Asked & { sent: Record<string, unknown> },
): Promise<Row> {
  requireSuperAdmin(principal, 'change settings');
  return postgres.transaction(async (database) => {
    const known = await findSetting(scope, key, { database, lock: true });
    const value = changedSetting(key, known?.value, sent);
    const by = { by: author, database };
    if (known instanceof SettingModel) return SettingModel.change(known, { value }, by);
    if (known instanceof TenantSettingModel) return TenantSettingModel.change(known, { value }, by);
    return addSetting(database, scope, { key, value, author });
  });
}

async function addSetting(
  database: Database,
  scope: Scope,
  { key, value, author }: { key: SettingKey; value: Record<string, unknown>; author: Author },
): Promise<Row> {
  const record = { id: newId('setting', author.now.getTime()), key, value, ...createdBy(author) };
  const conflict = `${key} is being changed by another request, try again`;
  if (SETTINGS[key].reach === 'tenant')
    return TenantSettingModel.add({ ...record, tenant_id: scope.tenant_id }, { database, conflict });
  return SettingModel.add(scope, record, { database, conflict });
}

export async function resetSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { key, principal, author }: Asked,
): Promise<void> {
  requireSuperAdmin(principal, 'change settings');
  await postgres.transaction(async (database) => {
    const known = await findSetting(scope, key, { database, lock: true });
    const by = { by: author, database };
    if (known instanceof SettingModel) return SettingModel.remove(known, by);
    if (known instanceof TenantSettingModel) return TenantSettingModel.remove(known, by);
    throw new FarthingError('not_found', `${key} is not set: it is as by default`);
  });
}
