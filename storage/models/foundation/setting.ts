/** Tables `settings` and `tenant_settings`: values that differ from the defaults, by environment and by tenant. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { SETTINGS, type SettingKey, type SettingValue, toWholeSetting } from '../../../core/platform/setting/record.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel, TenantWideModel } from './model.ts';
import { noteNamed } from './target-record.ts';

export class SettingModel extends ScopedModel {
  static override tableName = 'settings';
  static override recordName = 'setting';
  static override get jsonAttributes() {
    return ['value'];
  }
  declare key: SettingKey;
  declare value: Record<string, unknown>;
  declare status: string;
  declare created_at: string;
  declare updated_at: string;
  declare created_by: string;
  declare updated_by: string;
}

export class TenantSettingModel extends TenantWideModel {
  static override tableName = 'tenant_settings';
  static override recordName = 'setting';
  static override get jsonAttributes() {
    return ['value'];
  }
  declare tenant_id: string;
  declare key: SettingKey;
  declare value: Record<string, unknown>;
  declare created_by: string;
  declare updated_by: string;
}

/**
 * Finds the stored values; undefined if all are the defaults. `lock` locks the row until the end of the transaction.
 */
export async function findSetting(
  scope: Scope,
  key: SettingKey,
  { database, lock = false }: { database: Database; lock?: boolean },
): Promise<SettingModel | TenantSettingModel | undefined> {
  const question: PromiseLike<(SettingModel | TenantSettingModel)[]> = buildSettingQuery(scope, key, {
    database,
    lock,
  });
  const [row] = await question;
  noteNamed(key, row, { database, lock });
  return row;
}

function buildSettingQuery(scope: Scope, key: SettingKey, { database, lock }: { database: Database; lock: boolean }) {
  if (SETTINGS[key].reach === 'tenant') {
    const question = TenantSettingModel.ofTenant(scope.tenant_id, database).where({ key });
    return lock ? question.forUpdate() : question;
  }
  const question = SettingModel.in(scope, database).where({ key });
  return lock ? question.forUpdate() : question;
}

/** Finds the stored values of all settings of the environment and its tenant. */
export async function listSettings(
  scope: Scope,
  database: Database,
): Promise<Map<SettingKey, SettingModel | TenantSettingModel>> {
  const rows: (SettingModel | TenantSettingModel)[] = [
    ...(await SettingModel.in(scope, database)),
    ...(await TenantSettingModel.ofTenant(scope.tenant_id, database)),
  ];
  return new Map(rows.map((row) => [row.key, row]));
}

/** Loads a setting with its defaults. */
export async function loadSetting<Key extends SettingKey>(
  scope: Scope,
  key: Key,
  database: Database,
): Promise<SettingValue<Key>> {
  const row = await findSetting(scope, key, { database });
  return toWholeSetting(key, row?.value);
}
