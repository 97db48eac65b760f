/** Archives a group and frees its lookup key. Its members lose the group, and spend alerts on it end. */
import { SPEND } from '../../../core/catalog/alert/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { AlertSettingModel } from '../../../storage/models/alerts/alert-setting.ts';
import { deleteAlertStates } from '../../../storage/models/alerts/alert-states.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';

export async function archiveGroup(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: { id: string; author: Author },
): Promise<void> {
  const { id, author } = request;
  await stores.postgres.transaction(async (database) => {
    const group = await GroupModel.fetchPublished(scope, id, { database, lock: true });
    const by = { by: author, database };
    const changes = { group_id: null };
    if (group.entity_type === 'price') {
      const records = await PriceModel.in(scope, database).where('group_id', id).forUpdate();
      await PriceModel.changeAll(scope, { records, changes }, by);
    } else {
      const records = await FeatureModel.in(scope, database).where('group_id', id).forUpdate();
      await FeatureModel.changeAll(scope, { records, changes }, by);
    }
    const watching = AlertSettingModel.in(scope, database).where({ entity_type: 'group', entity_id: id });
    const settings = await watching.where('status', 'published').orderBy('id').forUpdate();
    await AlertSettingModel.changeAll(scope, { records: settings, changes: { status: 'archived' } }, by);
    await deleteAlertStates(database, scope, { alert_type: SPEND.group, entity_ids: [id] });
    await GroupModel.change(group, { status: 'archived' }, by);
  });
}
