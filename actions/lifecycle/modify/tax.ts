/** Attaches a tax rate to a subscription, or ends an attachment (docs/rules/taxes.md, "Associations"). */

import { DEFAULT_TAX_PRIORITY } from '../../../core/catalog/tax/record.ts';
import { alreadyExists, invalid, notAllowed, prefixField } from '../../../core/foundation/error.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { checkLinesChange, planAddedInterval } from '../../../core/subscriptions/line-changes.ts';
import { checkParams } from '../../../core/subscriptions/modification.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { toScope } from '../../rating/billable-items.ts';
import { toLockedSubscription } from '../subscriptions/lock-lines.ts';
import { planOtherModification } from './changed-lines.ts';
import type { ModifyInput, PlannedModification } from './modification.ts';

type TaxModificationInput = ModifyInput<'tax'>;

const FIELDS = { add: { needs: 'tax_rate_id' as const }, remove: { needs: 'tax_association_id' as const } };

export async function planTaxChange(input: TaxModificationInput): Promise<PlannedModification> {
  checkParams(input.params, 'tax_params', FIELDS);
  checkLinesChange(input.subscription);
  try {
    return await (input.params.action === 'add' ? planTaxAttachment(input) : planTaxRemoval(input));
  } catch (error) {
    throw prefixField(error, 'tax_params');
  }
}

const ANY_TIME = { id: '', start_date: null, end_date: null };

async function planTaxAttachment({
  database,
  subscription,
  params,
  author,
}: TaxModificationInput): Promise<PlannedModification> {
  const scope = toScope(subscription);
  // The lock keeps concurrent requests from archiving the rate or attaching it a second time.
  const lock = database.isTransaction;
  const rate = await TaxRateModel.fetchPublished(scope, params.tax_rate_id!, { database, lock });
  if (rate.tax_rate_status !== 'ACTIVE') throw invalid('tax_rate_id', `tax rate ${rate.code} is not ACTIVE`);
  const entity = { entity_type: 'subscription' as const, entity_id: subscription.id };
  const conflict = `subscription ${subscription.id} has tax rate ${rate.code} already`;
  const dates = { start_date: params.effective_date, end_date: null };
  const { start_date } = planAddedInterval(
    dates,
    ANY_TIME,
    toLockedSubscription(subscription, author).times,
    'effective_date',
  );
  const record = {
    ...entity,
    id: newId('tax_association', author.now.getTime()),
    tax_rate_id: rate.id,
    priority: DEFAULT_TAX_PRIORITY,
    auto_apply: true,
    currency: null,
    start_date,
    end_date: null,
    metadata: null,
  };
  if (await TaxAssociationModel.besides(scope, record, database))
    throw alreadyExists(conflict, { field: 'tax_rate_id' });
  return planOtherModification(subscription, async (transaction) => {
    const stored = { ...record, ...createdBy(author) };
    await TaxAssociationModel.add(scope, stored, { database: transaction, conflict });
  });
}

async function planTaxRemoval({
  database,
  subscription,
  params,
  author,
}: TaxModificationInput): Promise<PlannedModification> {
  const id = params.tax_association_id!;
  const association = await TaxAssociationModel.fetchPublished(toScope(subscription), id, { database });
  if (association.entity_type !== 'subscription' || association.entity_id !== subscription.id)
    throw invalid('tax_association_id', `is of ${association.entity_type} ${association.entity_id}`);
  const now = author.now.getTime();
  const end = association.end_date === null ? Number.POSITIVE_INFINITY : toInstant(association.end_date);
  if (end <= now) throw notAllowed(`tax association ${id} has ended already`, { field: 'tax_association_id' });
  const at = params.effective_date ? toInstant(params.effective_date) : now;
  if (at < now || at > end) throw invalid('effective_date', 'must lie between now and the end that it has');
  const ended = { end_date: formatMs(Math.max(at, toInstant(association.start_date))) };
  // An ended association is archived, so that the rate can be attached again.
  const changes = at <= now ? { ...ended, status: 'archived' as const } : ended;
  return planOtherModification(subscription, async (transaction) => {
    await TaxAssociationModel.change(association, changes, { by: author, database: transaction });
  });
}
