/** Creates a meter: checks it, stores it and announces it to the event counters. */

import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { compileExpression } from '../../../core/metering/expression.ts';
import { checkMeter, type MeterInput, refuseUnclearNames } from '../../../core/metering/meter/record.ts';
import { checkCost } from '../../../core/metering/meter-cost.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { announceMeterChange } from './announce-meter-change.ts';

export async function createMeter(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  given: { definition: MeterInput; author: Author },
): Promise<MeterModel> {
  refuseUnclearNames(given.definition.aggregation);
  return stores.postgres.transaction((transaction) => addMeter(transaction, scope, given));
}

/** Creates a meter within a larger transaction, such as that of a feature with its meter. */
export async function addMeter(
  transaction: Database,
  scope: Scope,
  { definition, author }: { definition: MeterInput; author: Author },
): Promise<MeterModel> {
  checkMeter(definition, compileExpression);
  const record = { id: newId('meter', author.now.getTime()), ...definition, ...createdBy(author) };
  const others = await MeterModel.in(scope, transaction).where({
    event_name: definition.event_name,
    status: 'published',
  });
  checkCost(record, { others, field: 'event_name' });
  const meter = await MeterModel.add(scope, record, { database: transaction });
  await announceMeterChange(transaction, scope, meter);
  return meter;
}
