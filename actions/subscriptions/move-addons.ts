/**
 * Changes the dates of a draft's add-ons when the draft's start changes (docs/rules/subscriptions.md, "Drafts"). Add-ons that began with
 * the draft or before the new start begin with the new start. A one-time add-on of the first period ends with the new first period, and so
 * do its lines.
 */
import type { Author } from '../../core/foundation/stamp.ts';
import { toInstant } from '../../core/foundation/time/instant.ts';
import type { Transaction } from '../../storage/foundation/stores.ts';
import { AddonAssociationModel } from '../../storage/models/subscriptions/addon-association.ts';
import type { SubscriptionModel } from '../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../storage/models/subscriptions/subscription-line-item.ts';

type MoveAddonsInput = { draft: SubscriptionModel; started: SubscriptionModel; author: Author };

export async function moveAddons({ draft, started, author }: MoveAddonsInput, transaction: Transaction): Promise<void> {
  const { start_date, current_period_end } = started;
  const attached = await AddonAssociationModel.in(draft, transaction).where({
    entity_id: draft.id,
    status: 'published',
  });
  for (const association of attached) {
    const starts = toInstant(association.start_date);
    const follows = starts === toInstant(draft.start_date) || starts < toInstant(start_date);
    if (!follows || association.cancelled_at) continue;
    const isOfPeriod = association.cadence === 'onetime' && association.end_date === draft.current_period_end;
    const end = isOfPeriod ? { end_date: current_period_end } : {};
    const by = { by: author, database: transaction };
    await AddonAssociationModel.change(association, { start_date, ...end }, by);
    if (!isOfPeriod) continue;
    const records = await SubscriptionLineItemModel.in(draft, transaction).where({
      addon_association_id: association.id,
      end_date: draft.current_period_end,
    });
    await SubscriptionLineItemModel.changeAll(draft, { records, changes: end }, by);
  }
}
