/**
 * Creates a plan. A missing lookup key is derived from the name, as the first that no published plan has: `pro`, `pro-2`,
 * `pro-3` (docs/rules/records.md, "Lookup keys"). A unique index decides between concurrent requests for one key.
 */

import type { PlanFields } from '../../../core/catalog/plan/record.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { toLookupKeys } from '../../../core/foundation/lookup-key.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';

type NewPlan = Partial<PlanFields> & { name: string };

/** Limit of retries after a concurrent request took the key. */
const TRIES = 5;

export async function createPlan(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { fields, author }: { fields: NewPlan; author: Author },
): Promise<PlanModel> {
  const record = { id: newId('plan', author.now.getTime()), ...fields, ...createdBy(author) };
  if (fields.lookup_key) return addPlan(scope, record, postgres);
  for (let tried = 0; tried < TRIES; tried++) {
    try {
      return await addPlan(scope, { ...record, lookup_key: await findFreeKey(scope, fields.name, postgres) }, postgres);
    } catch (error) {
      if (!(error instanceof FarthingError) || error.code !== 'already_exists') throw error;
    }
  }
  return addPlan(scope, { ...record, lookup_key: null }, postgres);
}

export const formatPlanKeyConflict = (lookup_key: string | null | undefined) =>
  `a plan with lookup_key ${lookup_key} exists already`;

function addPlan(scope: Scope, record: NewPlan & { id: string }, database: Database): Promise<PlanModel> {
  return PlanModel.add(scope, record, { database, conflict: formatPlanKeyConflict(record.lookup_key) });
}

/** Returns null if the name yields no free key; the plan then has no lookup key. */
async function findFreeKey(scope: Scope, name: string, database: Database): Promise<string | null> {
  const keys = toLookupKeys(name);
  const plans = await PlanModel.in(scope, database)
    .where('status', 'published')
    .whereIn('lookup_key', keys)
    .select('lookup_key');
  const taken = new Set(plans.map(({ lookup_key }) => lookup_key));
  return keys.find((key) => !taken.has(key)) ?? null;
}
