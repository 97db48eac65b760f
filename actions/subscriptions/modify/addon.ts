/** Attaches or detaches an add-on (docs/rules/subscriptions.md, "Add-ons"). */

import type { DetachAddon } from '../../../core/addon/attachment.ts';
import { invalid } from '../../../core/error.ts';
import { checkLinesChange } from '../../../core/subscription/line-changes.ts';
import type { AttachAddon } from '../../../core/subscription/record.ts';
import { scopeOf } from '../../billing/billable-items.ts';
import { beginAddonGrants } from '../../grants/give-grants.ts';
import { planAttachment, storeAttachment } from '../attach-addon.ts';
import { planDetachment, storeDetachment } from '../detach-addon.ts';
import { heldAs } from '../held-lines.ts';
import { modificationOfLines } from './changed-lines.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

type Input = ModifyInput<'addon'>;

export async function planAddonChange(input: Input): Promise<PlannedModification> {
  const { action, add, remove } = input.params;
  checkLinesChange(input.subscription);
  const [stated, other] = action === 'add' ? (['add', 'remove'] as const) : (['remove', 'add'] as const);
  if (input.params[other] !== null) throw invalid(`addon_params.${other}`, `does not go with action ${action}`);
  if (input.params[stated] === null) throw invalid(`addon_params.${stated}`, `is required for action ${action}`);
  return add ? attachment(input, add) : detachment(input, remove!);
}

async function attachment(input: Input, request: AttachAddon): Promise<PlannedModification> {
  const { stores, database, subscription, author } = input;
  const scope = scopeOf(subscription);
  const planned = await planAttachment(heldAs(subscription, author), request, { scope, database, author });
  const lines = modificationOfLines(stores, planned.plan);
  const apply: PlannedModification['apply'] = async (transaction) => {
    const association = await storeAttachment(planned.attachment, { scope, database: transaction, author });
    const applied = await lines.apply(transaction);
    await beginAddonGrants(transaction, { subscription, association, by: author });
    return applied;
  };
  return { ...lines, apply };
}

async function detachment(input: Input, request: DetachAddon): Promise<PlannedModification> {
  const { stores, database, subscription, author } = input;
  const scope = scopeOf(subscription);
  const planned = await planDetachment(heldAs(subscription, author), request, { scope, database, author });
  const lines = modificationOfLines(stores, planned.plan);
  const apply: PlannedModification['apply'] = async (transaction) => {
    await storeDetachment(planned, request, { database: transaction, author });
    return lines.apply(transaction);
  };
  return { ...lines, apply };
}
