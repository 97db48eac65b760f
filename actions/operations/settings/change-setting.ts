/**
 * Changes settings field by field, and resets a setting as a whole; only a super_admin may (docs/rules/records.md,
 * "Settings").
 */
import { requireSuperAdmin } from '../../../core/foundation/access/role.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { PaymentGateway } from '../../../core/payments/record.ts';
import { applySettingChange, isSet, SETTINGS, type SettingKey } from '../../../core/platform/setting/record.ts';
import { listSettingReferences, type SettingReference } from '../../../core/platform/setting/references.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { findSetting, SettingModel, TenantSettingModel } from '../../../storage/models/foundation/setting.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { enqueueDefaultAlertChecks } from '../../../storage/progress/alert-arrivals.ts';
import { loadUsableGateway } from '../../invoicing/collection/find-payment-method.ts';

type SettingEditor = { readonly roles: readonly string[] };
type SettingRequest = { readonly key: SettingKey; readonly principal: SettingEditor; readonly author: Author };
type SettingRow = SettingModel | TenantSettingModel;

export async function changeSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { key, sent, principal, author }: SettingRequest & { sent: Record<string, unknown> },
): Promise<SettingRow> {
  requireSuperAdmin(principal, 'change settings');
  return postgres.transaction(async (database) => {
    const known = await findSetting(scope, key, { database, lock: true });
    const value = applySettingChange(key, known?.value, sent);
    await checkReferences(listSettingReferences(key, value, sent), scope, database);
    await applySetting(database, scope, key);
    const by = { by: author, database };
    if (known instanceof SettingModel) return SettingModel.change(known, { value }, by);
    if (known instanceof TenantSettingModel) return TenantSettingModel.change(known, { value }, by);
    return addSetting(database, scope, { key, value, author });
  });
}

/** Starts the work that depends on a setting, when the transaction commits. */
async function applySetting(database: Database, scope: Scope, key: SettingKey): Promise<void> {
  if (key === 'wallet_balance_alert_config') await enqueueDefaultAlertChecks(database, scope);
}

/** Checks that records which a setting references exist. */
async function checkReferences(
  references: readonly SettingReference[],
  scope: Scope,
  database: Database,
): Promise<void> {
  for (const { kind, id } of references) await FETCH[kind](scope, id, database);
}

const FETCH: Record<SettingReference['kind'], (scope: Scope, id: string, database: Database) => Promise<unknown>> = {
  plan: (scope, id, database) => PlanModel.fetchPublished(scope, id, { database }),
  feature: (scope, id, database) => FeatureModel.fetchPublished(scope, id, { database }),
  meter: (scope, id, database) => MeterModel.fetchPublished(scope, id, { database }),
  payment_gateway: (scope, id, database) => loadUsableGateway(database, scope, id as PaymentGateway),
};

async function addSetting(
  database: Database,
  scope: Scope,
  { key, value, author }: { key: SettingKey; value: Record<string, unknown>; author: Author },
): Promise<SettingRow> {
  const record = { id: newId('setting', author.now.getTime()), key, value, ...createdBy(author) };
  const conflict = `${key} is being changed by another request, try again`;
  if (SETTINGS[key].reach === 'tenant')
    return TenantSettingModel.add({ ...record, tenant_id: scope.tenant_id }, { database, conflict });
  return SettingModel.add(scope, record, { database, conflict });
}

/** Resets a setting. The row remains with an empty value, so that the audit log shows the previous one. */
export async function resetSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { key, principal, author }: SettingRequest,
): Promise<void> {
  requireSuperAdmin(principal, 'change settings');
  await postgres.transaction(async (database) => {
    const known = await findSetting(scope, key, { database, lock: true });
    if (!known || !isSet(known.value)) throw new FarthingError('not_found', `${key} is not set: it is as by default`);
    await applySetting(database, scope, key);
    const by = { by: author, database };
    if (known instanceof SettingModel) await SettingModel.change(known, { value: {} }, by);
    else await TenantSettingModel.change(known, { value: {} }, by);
  });
}
