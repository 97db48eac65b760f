/** Creates, changes and deletes spend alerts (docs/rules/alerts.md, "What is spent"). */
import {
  defineSpendAlert,
  defineSpendLevels,
  findWatchedSubscription,
  type NewAlertSetting,
  toSpendAlertKey,
} from '../../core/catalog/alert/record.ts';
import type { AlertSettings } from '../../core/catalog/feature/record.ts';
import { invalid, notFound } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../core/foundation/stamp.ts';
import { newId } from '../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../storage/foundation/stores.ts';
import { AlertSettingModel } from '../../storage/models/alerts/alert-setting.ts';
import { deleteAlertState } from '../../storage/models/alerts/alert-states.ts';
import { GroupModel } from '../../storage/models/catalog/group.ts';
import { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';
import { enqueueCustomerAlertCheck } from '../../storage/progress/alert-arrivals.ts';

export async function createAlertSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { input, author }: { input: NewAlertSetting; author: Author },
): Promise<AlertSettingModel> {
  const alert = defineSpendAlert(input);
  return postgres.transaction(async (transaction) => {
    await checkWatched(transaction, scope, alert);
    const record = {
      id: newId('alert_setting', author.now.getTime()),
      ...alert,
      enabled: alert.config.alert_enabled,
      ...createdBy(author),
    };
    const conflict = `${alert.entity_type} ${alert.entity_id} has an alert already`;
    const added = await AlertSettingModel.add(scope, record, { database: transaction, conflict });
    await enqueueSpendAlertChecks(transaction, added);
    return added;
  });
}

/** Checks that the watched records exist and belong to the same subscription. */
async function checkWatched(
  transaction: Transaction,
  scope: Scope,
  alert: ReturnType<typeof defineSpendAlert>,
): Promise<void> {
  const database = transaction;
  const subscription = await SubscriptionModel.fetchPublished(scope, findWatchedSubscription(alert), { database });
  if (subscription.subscription_type === 'INHERITED') {
    const field = alert.entity_type === 'subscription' ? 'entity_id' : 'parent_entity_id';
    throw invalid(field, 'takes part in another subscription, which is charged for it: watch that');
  }
  if (alert.entity_type === 'group') {
    // The row is locked: an archival of the group waits and then finds this alert, too.
    const group = await GroupModel.fetch(scope, alert.entity_id, { database, lock: true });
    if (group.status !== 'published') throw notFound('group', group.id);
  }
  if (alert.entity_type !== 'subscription_line_item') return;
  const line = await SubscriptionLineItemModel.fetch(scope, alert.entity_id, { database });
  if (line.subscription_id !== subscription.id)
    throw invalid('entity_id', `is a line item of subscription ${line.subscription_id}`);
  if (line.price_type !== 'USAGE') throw invalid('entity_id', 'is a fixed line item: what it costs is known');
}

export async function changeAlertSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, config, author }: { id: string; config: AlertSettings; author: Author },
): Promise<AlertSettingModel> {
  const levels = defineSpendLevels(config);
  return postgres.transaction(async (transaction) => {
    const setting = await AlertSettingModel.fetchChangeable(scope, id, transaction);
    const changes = { config: levels, enabled: levels.alert_enabled };
    const changed = await AlertSettingModel.change(setting, changes, { by: author, database: transaction });
    if (!changed.enabled) await deleteSpendAlertState(transaction, changed);
    await enqueueSpendAlertChecks(transaction, changed);
    return changed;
  });
}

export async function archiveAlertSetting(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const setting = await AlertSettingModel.fetchPublished(scope, id, { database: transaction, lock: true });
    await AlertSettingModel.change(setting, { status: 'archived' }, { by: author, database: transaction });
    await deleteSpendAlertState(transaction, setting);
  });
}

async function deleteSpendAlertState(transaction: Transaction, setting: AlertSettingModel): Promise<void> {
  await deleteAlertState(transaction, setting, toSpendAlertKey(setting));
}

/** Enqueues a check, so that a threshold that is already reached is reported without further usage. */
async function enqueueSpendAlertChecks(transaction: Transaction, setting: AlertSettingModel): Promise<void> {
  if (!setting.enabled) return;
  const { customer_id } = await SubscriptionModel.fetch(setting, findWatchedSubscription(setting), {
    database: transaction,
  });
  await enqueueCustomerAlertCheck(transaction, setting, { customer_id });
}
