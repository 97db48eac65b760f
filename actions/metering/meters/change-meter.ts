/**
 * Replaces the filters of a meter, or archives it. An archived meter matches no events. All other fields are immutable.
 */

import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import { checkFilters, type Filter } from '../../../core/metering/meter/record.ts';
import { checkCost } from '../../../core/metering/meter-cost.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { announceMeterChange } from './announce-meter-change.ts';
import { checkUncharged } from './check-uncharged.ts';

export async function changeMeterFilters(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, filters, author }: { id: string; filters: readonly Filter[]; author: Author },
): Promise<MeterModel> {
  if (filters.length === 0) throw invalid('filters', 'must not be empty');
  checkFilters(filters);
  return postgres.transaction(async (transaction) => {
    const meter = await MeterModel.fetch(scope, id, { database: transaction, lock: true });
    if (meter.status !== 'published') throw notAllowed(`meter ${id} is archived`);
    const { event_name } = meter;
    const others = await MeterModel.in(scope, transaction)
      .where({ event_name, status: 'published' })
      .whereNot('id', id);
    checkCost({ ...meter, filters }, { others, before: meter, field: 'filters' });
    return change(transaction, scope, { meter, patch: { filters: [...filters] }, author });
  });
}

/** Archiving an archived meter changes nothing. */
export async function archiveMeter(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const meter = await MeterModel.fetch(scope, id, { database: transaction, lock: true });
    if (meter.status !== 'published') return;
    await checkUncharged(scope, meter, { now: author.now, database: transaction });
    await change(transaction, scope, { meter, patch: { status: 'archived' }, author });
  });
}

async function change(
  transaction: Database,
  scope: Scope,
  { meter, patch, author }: { meter: MeterModel; patch: Partial<MeterModel>; author: Author },
): Promise<MeterModel> {
  const record = await MeterModel.change(meter, patch, { by: author, database: transaction });
  if (record !== meter) await announceMeterChange(transaction, scope, record);
  return record;
}
