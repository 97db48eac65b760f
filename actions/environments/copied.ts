/**
 * What the clone of an environment copies: one entry to add a noun. A root is copied in a transaction of its own, with what
 * hangs on it (`parts`) and what it names (`refs`); a record that is named and was not copied yet is copied first.
 */
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { FeatureModel } from '../../storage/models/feature.ts';
import { MeterModel } from '../../storage/models/meter.ts';
import { PlanModel } from '../../storage/models/plan.ts';
import { PriceModel } from '../../storage/models/price.ts';
import type { Database } from '../../storage/stores.ts';
import { addMeter } from '../meters/create-meter.ts';

export type Copyable = {
  readonly id: string;
  readonly status: string;
  readonly name?: string | null | undefined;
  readonly lookup_key?: string | null | undefined;
};
type Found = { readonly now: Date; readonly database: Database };

export type CopiedNoun = {
  fetch(scope: Scope, id: string, options: { database: Database }): Promise<Copyable>;
  /** All that are copied, of a noun that is a root. */
  published?(scope: Scope, database: Database): Promise<Copyable[]>;
  /** The one that has this key there already. */
  byKey?(scope: Scope, lookup_key: string, database: Database): Promise<Copyable | undefined>;
  /** Whether one that has the same key there stands for the copy, in what names it. */
  isSame?(record: Copyable, there: Copyable): boolean;
  /** Fields that name another record: of which noun; null where that cannot be copied. */
  readonly refs: Readonly<Record<string, string | null>>;
  readonly parts?: readonly { noun: string; of(scope: Scope, id: string, found: Found): Promise<Copyable[]> }[];
  /** What is not taken over. */
  readonly fresh?: Readonly<Record<string, unknown>>;
  add(
    scope: Scope,
    record: Record<string, unknown>,
    given: { author: Author; database: Database },
  ): Promise<{ id: string }>;
};

export const COPIED: Readonly<Record<string, CopiedNoun>> = {
  feature: {
    fetch: (scope, id, options) => FeatureModel.fetch(scope, id, options),
    published: (scope, database) => inOrder(FeatureModel.in(scope, database)),
    byKey: (scope, lookup_key, database) => withKey(FeatureModel.in(scope, database), lookup_key),
    isSame: (feature, there) => (feature as FeatureModel).type === (there as FeatureModel).type,
    refs: { meter_id: 'meter' },
    // Groups are not there yet.
    fresh: { group_id: null },
    add: (scope, record, { database }) => FeatureModel.add(scope, record, { database }),
  },
  plan: {
    fetch: (scope, id, options) => PlanModel.fetch(scope, id, options),
    published: (scope, database) => inOrder(PlanModel.in(scope, database)),
    byKey: (scope, lookup_key, database) => withKey(PlanModel.in(scope, database), lookup_key),
    refs: {},
    parts: [{ noun: 'price', of: pricesOf }],
    add: (scope, record, { database }) => PlanModel.add(scope, record, { database }),
  },
  price: {
    fetch: (scope, id, options) => PriceModel.fetch(scope, id, options),
    refs: { entity_id: 'plan', meter_id: 'meter', price_unit_id: null },
    // The copy has no history.
    fresh: { parent_price_id: '', group_id: null },
    add: (scope, record, { database }) =>
      PriceModel.add(scope, record, {
        database,
        conflict: `a price with lookup_key ${String(record.lookup_key)} exists already`,
      }),
  },
  meter: {
    fetch: (scope, id, options) => MeterModel.fetch(scope, id, options),
    refs: {},
    add: (scope, { name, event_name, aggregation, filters, reset_usage }, { author, database }) => {
      const definition = { name, event_name, aggregation, filters, reset_usage } as MeterModel;
      return addMeter(database, scope, { definition, author });
    },
  },
};

/** Features before the plans that entitle to them. */
export const ROOTS = ['feature', 'plan'] as const;

/** Those that have ended stay behind. */
async function pricesOf(scope: Scope, id: string, { now, database }: Found): Promise<Copyable[]> {
  return PriceModel.current(scope, now, database).where({ entity_type: 'PLAN', entity_id: id }).orderBy('sequence');
}

type Question<M> = PromiseLike<M[]> & {
  where(conditions: object): Question<M>;
  orderBy(columns: string[]): Question<M>;
};

async function inOrder<M>(all: Question<M>): Promise<M[]> {
  return all.where({ status: 'published' }).orderBy(['created_at', 'id']);
}

async function withKey<M>(all: Question<M>, lookup_key: string): Promise<M | undefined> {
  const [record] = await all.where({ status: 'published', lookup_key });
  return record;
}
