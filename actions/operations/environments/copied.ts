/**
 * Table of the records that a clone copies, one entry per noun (type of record). A root is copied in its own transaction, with its parts
 * (`parts`) and the records that it references (`refs`); a referenced record without a copy is copied first.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { toRootId } from '../../../core/subscriptions/plan-sync.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CreditGrantModel } from '../../../storage/models/catalog/credit-grant.ts';
import { EntitlementModel } from '../../../storage/models/catalog/entitlement.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { PriceUnitModel } from '../../../storage/models/catalog/price-unit.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { ImportMappingModel } from '../../../storage/models/operations/import-mapping.ts';
import { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { emitEntitlementChanges } from '../../catalog/entitlements/emit-entitlement.ts';
import { emit } from '../../foundation/emit.ts';
import { addMeter } from '../../metering/meters/create-meter.ts';

export type Copyable = {
  readonly id: string;
  readonly status: string;
  readonly name?: string | null | undefined;
  readonly lookup_key?: string | null | undefined;
};
type PartReadContext = { readonly now: Date; readonly database: Database };

export type CopiedNoun = {
  fetch(scope: Scope, id: string, options: { database: Database }): Promise<Copyable>;
  /** Root nouns only: all records to copy. */
  published?(scope: Scope, database: Database): Promise<Copyable[]>;
  /** Finds a target record that has the same key already. */
  byKey?(scope: Scope, record: Copyable, database: Database): Promise<Copyable | undefined>;
  /** Whether references may point to the existing record instead of a copy. */
  isSame?(record: Copyable, there: Copyable): boolean;
  /**
   * Lists older source records that this record may have replaced. If one of them was copied before, this one is not
   * copied. Only for records that belong to another record.
   */
  before?(scope: Scope, record: Copyable, database: Database): Promise<Copyable[]>;
  /**
   * Finds a target record with the same references, which prevents the copy. Only for records that belong to another
   * record.
   */
  rival?(scope: Scope, named: Readonly<Record<string, string>>, database: Database): Promise<Copyable | undefined>;
  /** Returns the record's reference fields, each mapped to the type of the record that it references, e.g. `meter_id: 'meter'`. */
  refs(record: Copyable): Readonly<Record<string, string>>;
  /** Key field of `byKey`. Default: `lookup_key`. */
  readonly key?: string;
  readonly parts?: readonly {
    noun: string;
    of(scope: Scope, id: string, found: PartReadContext): Promise<Copyable[]>;
  }[];
  /** Name of the field that refers to the first version of a record. */
  readonly root?: string;
  /** Values that the fields of a copy get instead of those of the source. */
  readonly fresh?: Readonly<Record<string, unknown>>;
  add(
    scope: Scope,
    record: Record<string, unknown>,
    /** Time of the source environment's clock (`source_now`); the author has that of the target. */
    given: { author: Author; database: Transaction; source_now: Date },
  ): Promise<{ id: string }>;
};

export const COPIED: Readonly<Record<string, CopiedNoun>> = {
  feature: {
    fetch: (scope, id, options) => FeatureModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(FeatureModel.in(scope, database)),
    byKey: (scope, record, database) => findByLookupKey(FeatureModel.in(scope, database), record),
    isSame: (feature, there) => (feature as FeatureModel).type === (there as FeatureModel).type,
    refs: () => ({ meter_id: 'meter', group_id: 'group' }),
    add: async (scope, record, { author, database }) => {
      const feature = await FeatureModel.add(scope, record, { database });
      await emit(database, 'feature.created', { record: feature, by: author });
      return feature;
    },
  },
  plan: {
    fetch: (scope, id, options) => PlanModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(PlanModel.in(scope, database)),
    byKey: (scope, record, database) => findByLookupKey(PlanModel.in(scope, database), record),
    refs: () => ({}),
    parts: [
      { noun: 'price', of: createPriceLister('PLAN') },
      { noun: 'entitlement', of: listEntitlements },
      { noun: 'credit_grant', of: createGrantLister('plan_id') },
    ],
    add: (scope, record, { database }) => PlanModel.add(scope, record, { database }),
  },
  addon: {
    fetch: (scope, id, options) => AddonModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(AddonModel.in(scope, database)),
    byKey: (scope, record, database) => findByLookupKey(AddonModel.in(scope, database), record),
    refs: () => ({}),
    parts: [
      { noun: 'price', of: createPriceLister('ADDON') },
      { noun: 'entitlement', of: listEntitlements },
      { noun: 'credit_grant', of: createGrantLister('addon_id') },
    ],
    add: (scope, record, { database }) => AddonModel.add(scope, record, { database }),
  },
  coupon: {
    fetch: (scope, id, options) => CouponModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(CouponModel.in(scope, database)),
    key: 'coupon_code',
    byKey: async (scope, record, database) => {
      const { coupon_code } = record as CouponModel;
      if (!coupon_code) return undefined;
      const [coupon] = await CouponModel.coded(scope, [coupon_code], database).where('status', 'published');
      return coupon;
    },
    refs: () => ({}),
    // A copied coupon has no redemptions yet.
    fresh: { total_redemptions: 0 },
    add: (scope, record, { database }) => CouponModel.add(scope, record, { database }),
  },
  tax_rate: {
    fetch: (scope, id, options) => TaxRateModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(TaxRateModel.in(scope, database)),
    key: 'code',
    byKey: async (scope, record, database) => {
      const { code } = record as TaxRateModel;
      const [rate] = await TaxRateModel.in(scope, database).where({ code, status: 'published' });
      return rate;
    },
    refs: () => ({}),
    add: (scope, record, { database }) => TaxRateModel.add(scope, record, { database }),
  },
  costsheet: {
    fetch: (scope, id, options) => CostsheetModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(CostsheetModel.in(scope, database)),
    key: 'name',
    byKey: async (scope, { name, lookup_key }, database) => {
      const [sheet] = await CostsheetModel.in(scope, database)
        .where('status', 'published')
        .where((either) => void either.where('name', name ?? '').orWhere('lookup_key', lookup_key ?? ''));
      return sheet;
    },
    refs: () => ({}),
    parts: [{ noun: 'price', of: createPriceLister('COSTSHEET') }],
    add: (scope, record, { database }) => CostsheetModel.add(scope, record, { database }),
  },
  import_mapping: {
    fetch: (scope, id, options) => ImportMappingModel.fetch(scope, id, options),
    published: (scope, database) => listPublished(ImportMappingModel.in(scope, database)),
    key: 'name',
    byKey: (scope, { name }, database) => ImportMappingModel.findByName(scope, name ?? '', database),
    refs: () => ({}),
    add: (scope, record, { database }) => ImportMappingModel.add(scope, record, { database }),
  },
  price: {
    fetch: (scope, id, options) => PriceModel.fetch(scope, id, options),
    byKey: async (scope, { lookup_key }, database) => {
      if (!lookup_key) return undefined;
      const [price] = await PriceModel.in(scope, database).where({ lookup_key, status: 'published', end_date: null });
      return price;
    },
    before: listPriceVersions,
    refs: (record) => ({
      entity_id: SOLD[(record as PriceModel).entity_type ?? ''] ?? 'plan',
      meter_id: 'meter',
      price_unit_id: 'price_unit',
      group_id: 'group',
    }),
    root: 'parent_price_id',
    add: (scope, record, { database, author, source_now }) =>
      PriceModel.add(scope, toStartedPrice(record, { now: author.now, source_now }), {
        database,
        conflict: `a price with lookup_key ${String(record.lookup_key)} exists already`,
      }),
  },
  entitlement: {
    fetch: (scope, id, options) => EntitlementModel.fetch(scope, id, options),
    before: async (scope, record, database) => {
      const { entity_id, feature_id } = record as EntitlementModel;
      return EntitlementModel.in(scope, database).where({ entity_id, feature_id });
    },
    rival: async (scope, { entity_id, feature_id }, database) =>
      (await EntitlementModel.buildPublishedQuery(scope, [entity_id!], database).where({ feature_id }))[0],
    refs: (record) => ({
      entity_id: SOLD[(record as EntitlementModel).entity_type ?? ''] ?? 'plan',
      feature_id: 'feature',
    }),
    fresh: { parent_entitlement_id: null },
    add: async (scope, record, { author, database }) => {
      const entitlement = await EntitlementModel.add(scope, record, { database });
      await emitEntitlementChanges(database, 'created', { entitlements: [entitlement], by: author });
      return entitlement;
    },
  },
  credit_grant: {
    fetch: (scope, id, options) => CreditGrantModel.fetch(scope, id, options),
    // The source does not record which grant a new one replaces. So a grant that may be a replacement is not copied: credits could be
    // granted twice.
    before: async (scope, record, database) => {
      const { plan_id, addon_id } = record as CreditGrantModel;
      const of = addon_id ? { addon_id } : { plan_id };
      return CreditGrantModel.in(scope, database).where(of).whereNot({ status: 'published' });
    },
    refs: () => ({ plan_id: 'plan', addon_id: 'addon' }),
    // A grant of a plan or an add-on has no subscription.
    fresh: { subscription_id: null },
    add: (scope, record, { database }) => CreditGrantModel.add(scope, record, { database }),
  },
  group: {
    fetch: (scope, id, options) => GroupModel.fetch(scope, id, options),
    byKey: (scope, record, database) => findByLookupKey(GroupModel.in(scope, database), record),
    isSame: (group, there) => (group as GroupModel).entity_type === (there as GroupModel).entity_type,
    refs: () => ({}),
    add: (scope, record, { database }) => GroupModel.add(scope, record, { database }),
  },
  price_unit: {
    fetch: (scope, id, options) => PriceUnitModel.fetch(scope, id, options),
    byKey: (scope, record, database) => PriceUnitModel.findByCode(scope, (record as PriceUnitModel).code, database),
    isSame: (unit, there) => isSameUnit(unit as PriceUnitModel, there as PriceUnitModel),
    refs: () => ({}),
    add: (scope, record, { database }) => PriceUnitModel.add(scope, record, { database }),
  },
  meter: {
    fetch: (scope, id, options) => MeterModel.fetch(scope, id, options),
    refs: () => ({}),
    add: (scope, { name, event_name, aggregation, filters, reset_usage }, { author, database }) => {
      const definition = { name, event_name, aggregation, filters, reset_usage } as MeterModel;
      return addMeter(database, scope, { definition, author });
    },
  },
};

/** Noun of the entity of a price or an entitlement, by `entity_type`. */
const SOLD: Readonly<Record<string, string>> = { PLAN: 'plan', ADDON: 'addon', COSTSHEET: 'costsheet' };

/** Roots in the order of their copying: features come before plans and add-ons, whose entitlements reference them. */
export const ROOTS = ['feature', 'plan', 'addon', 'coupon', 'tax_rate', 'costsheet', 'import_mapping'] as const;

/**
 * Starts the price now, if it is current in the source. It is then current in the target too, even if the target's
 * clock shows an earlier time.
 */
function toStartedPrice(record: Record<string, unknown>, { now, source_now }: { now: Date; source_now: Date }) {
  const { start_date } = record as Pick<PriceModel, 'start_date'>;
  if (!start_date || toInstant(start_date) > source_now.getTime() || toInstant(start_date) <= now.getTime())
    return record;
  return { ...record, start_date: now.toISOString() };
}

type ListParts = NonNullable<CopiedNoun['parts']>[number]['of'];

/** Lists prices without the ended ones. */
function createPriceLister(entity_type: keyof typeof SOLD): ListParts {
  return async (scope, id, { now, database }) =>
    PriceModel.current(scope, now, database).where({ entity_type, entity_id: id }).orderBy('sequence');
}

async function listPriceVersions(scope: Scope, record: Copyable, database: Database): Promise<Copyable[]> {
  const root = toRootId(record as PriceModel);
  return PriceModel.in(scope, database).where((of) => void of.where({ id: root }).orWhere({ parent_price_id: root }));
}

async function listEntitlements(scope: Scope, id: string, { database }: PartReadContext): Promise<Copyable[]> {
  return EntitlementModel.buildPublishedQuery(scope, [id], database);
}

function createGrantLister(column: 'plan_id' | 'addon_id'): ListParts {
  return async (scope, id, { database }) => CreditGrantModel.buildPublishedQuery(scope, [column, [id]], database);
}

type RecordQuery<M> = PromiseLike<M[]> & {
  where(conditions: object): RecordQuery<M>;
  orderBy(columns: string[]): RecordQuery<M>;
};

async function listPublished<M>(all: RecordQuery<M>): Promise<M[]> {
  return all.where({ status: 'published' }).orderBy(['created_at', 'id']);
}

async function findByLookupKey<M>(all: RecordQuery<M>, { lookup_key }: Copyable): Promise<M | undefined> {
  if (!lookup_key) return undefined;
  const [record] = await all.where({ status: 'published', lookup_key });
  return record;
}

function isSameUnit(unit: PriceUnitModel, there: PriceUnitModel): boolean {
  return unit.base_currency === there.base_currency && new Decimal(unit.conversion_rate).eq(there.conversion_rate);
}
