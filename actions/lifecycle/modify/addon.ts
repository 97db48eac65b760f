/** Attaches or detaches an add-on (docs/rules/subscriptions.md, "Add-ons"). */

import { invalid } from '../../../core/foundation/error.ts';
import type { DetachAddon } from '../../../core/subscriptions/attachment.ts';
import { checkLinesChange } from '../../../core/subscriptions/line-changes.ts';
import type { AttachAddon } from '../../../core/subscriptions/record.ts';
import { beginAddonGrants } from '../../credits/grants/give-grants.ts';
import { toScope } from '../../rating/billable-items.ts';
import { planAttachment, storeAttachment } from '../subscriptions/attach-addon.ts';
import { planDetachment, storeDetachment } from '../subscriptions/detach-addon.ts';
import { toLockedSubscription } from '../subscriptions/lock-lines.ts';
import { planLineModification } from './changed-lines.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

type AddonModificationInput = ModifyInput<'addon'>;

export async function planAddonChange(input: AddonModificationInput): Promise<PlannedModification> {
  const { action, add, remove } = input.params;
  checkLinesChange(input.subscription);
  const [given, other] = action === 'add' ? (['add', 'remove'] as const) : (['remove', 'add'] as const);
  if (input.params[other] !== null) throw invalid(`addon_params.${other}`, `does not go with action ${action}`);
  if (input.params[given] === null) throw invalid(`addon_params.${given}`, `is required for action ${action}`);
  return add ? planAddonAttachment(input, add) : planAddonDetachment(input, remove!);
}

async function planAddonAttachment(input: AddonModificationInput, request: AttachAddon): Promise<PlannedModification> {
  const { stores, database, subscription, author } = input;
  const scope = toScope(subscription);
  const planned = await planAttachment(toLockedSubscription(subscription, author), request, {
    scope,
    database,
    author,
  });
  const lines = planLineModification(stores, planned.plan);
  const apply: PlannedModification['apply'] = async (transaction) => {
    const association = await storeAttachment(planned.attachment, { scope, database: transaction, author });
    const applied = await lines.apply(transaction);
    await beginAddonGrants(transaction, { subscription, association, by: author });
    return applied;
  };
  return { ...lines, apply };
}

async function planAddonDetachment(input: AddonModificationInput, request: DetachAddon): Promise<PlannedModification> {
  const { stores, database, subscription, author } = input;
  const scope = toScope(subscription);
  const planned = await planDetachment(toLockedSubscription(subscription, author), request, {
    scope,
    database,
    author,
  });
  const lines = planLineModification(stores, planned.plan);
  const apply: PlannedModification['apply'] = async (transaction) => {
    await storeDetachment(planned, request, { database: transaction, author });
    return lines.apply(transaction);
  };
  return { ...lines, apply };
}
