/**
 * A new plan. Where no lookup key is stated it is made from the name, the first that no published plan has: `pro`, `pro-2`,
 * `pro-3` (docs/rules/records.md, "Lookup keys"). Two who take the same one at the same time are told apart by the database.
 */
import { FarthingError } from '../../core/error.ts';
import { toLookupKeys } from '../../core/lookup-key.ts';
import type { PlanFields } from '../../core/plan/record.ts';
import type { Scope } from '../../core/scope.ts';
import { type Author, createdBy } from '../../core/stamp.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { newId } from '../../storage/new-id.ts';
import type { Database, Stores } from '../../storage/stores.ts';

export type NewPlan = Partial<PlanFields> & { name: string };

/** How often somebody else may be faster. */
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

/** A plan whose name gives no key that is free has none, as one that nobody looks up. */
async function findFreeKey(scope: Scope, name: string, database: Database): Promise<string | null> {
  const keys = toLookupKeys(name);
  const plans = await PlanModel.in(scope, database)
    .where('status', 'published')
    .whereIn('lookup_key', keys)
    .select('lookup_key');
  const taken = new Set(plans.map(({ lookup_key }) => lookup_key));
  return keys.find((key) => !taken.has(key)) ?? null;
}
