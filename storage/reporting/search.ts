/**
 * Searches the records of an environment by one statement with a limited query per kind and field. Large tables have an index for each of
 * them (sql/postgres/0485-search-indexes.sql); the tables of the catalogue are read within the environment.
 */
import type { Scope } from '../../core/foundation/scope.ts';
import type { MatchedField, RankedHit, SearchRecordKind, SearchTerm } from '../../core/platform/search/term.ts';
import type { Database } from '../foundation/stores.ts';

type SearchedField = {
  readonly column: string;
  readonly matched: MatchedField;
  /** `contains` includes `prefix`, and `prefix` includes `exact`. */
  readonly by: 'exact' | 'prefix' | 'contains';
  /** Condition of the partial index of the column. */
  readonly present?: string;
};

type SearchedTable = {
  readonly table: string;
  readonly title?: string;
  readonly subtitle?: string;
  readonly state: string;
  readonly customer_id?: string;
  readonly plan_id?: string;
  readonly fields: readonly SearchedField[];
  /** All records of the environment are compared, so that fields need no index. */
  readonly isCatalog?: boolean;
};

const NAME = { column: 'name', matched: 'name', by: 'contains' } as const;
const LOOKUP_KEY = { column: 'lookup_key', matched: 'lookup_key', by: 'contains' } as const;
const OWN_KEY = { ...LOOKUP_KEY, by: 'prefix', present: 'lookup_key is not null' } as const;
const CATALOG = { state: 'status', title: 'name', isCatalog: true } as const;

const TABLES: Record<SearchRecordKind, SearchedTable> = {
  customer: {
    table: 'customers',
    title: 'name',
    subtitle: 'external_id',
    state: 'status',
    customer_id: 'id',
    fields: [
      { column: 'external_id', matched: 'external_id', by: 'prefix' },
      { column: 'email', matched: 'email', by: 'prefix', present: `email <> ''` },
      NAME,
    ],
  },
  invoice: {
    table: 'invoices',
    title: 'invoice_number',
    state: 'invoice_status',
    customer_id: 'customer_id',
    fields: [{ column: 'invoice_number', matched: 'number', by: 'prefix', present: 'invoice_number is not null' }],
  },
  subscription: {
    table: 'subscriptions',
    state: 'subscription_status',
    customer_id: 'customer_id',
    plan_id: 'plan_id',
    fields: [OWN_KEY],
  },
  plan: { ...CATALOG, table: 'plans', subtitle: 'lookup_key', fields: [LOOKUP_KEY, NAME] },
  meter: {
    ...CATALOG,
    table: 'meters',
    subtitle: 'event_name',
    fields: [NAME, { ...NAME, column: 'event_name' }],
  },
  feature: { ...CATALOG, table: 'features', subtitle: 'lookup_key', fields: [LOOKUP_KEY, NAME] },
  price: {
    table: 'prices',
    title: `coalesce(nullif(display_name, ''), lookup_key)`,
    subtitle: 'lookup_key',
    state: 'status',
    fields: [OWN_KEY],
  },
  addon: { ...CATALOG, table: 'addons', subtitle: 'lookup_key', fields: [LOOKUP_KEY, NAME] },
  coupon: {
    ...CATALOG,
    table: 'coupons',
    subtitle: 'coupon_code',
    fields: [{ ...LOOKUP_KEY, column: 'coupon_code' }, NAME],
  },
  wallet: { table: 'wallets', title: 'name', state: 'wallet_status', customer_id: 'customer_id', fields: [] },
  credit_note: {
    table: 'credit_notes',
    title: 'credit_note_number',
    state: 'credit_note_status',
    customer_id: 'customer_id',
    fields: [{ column: 'credit_note_number', matched: 'number', by: 'prefix' }],
  },
  payment: {
    table: 'payments',
    title: 'invoice_number',
    subtitle: 'gateway_payment_id',
    state: 'payment_status',
    fields: [
      {
        column: 'gateway_payment_id',
        matched: 'external_id',
        by: 'exact',
        present: 'gateway_payment_id is not null',
      },
    ],
  },
};

export type SearchHit = RankedHit & {
  readonly kind: SearchRecordKind;
  readonly matched: MatchedField;
  readonly title: string | null;
  readonly subtitle: string | null;
  readonly status: string;
  readonly customer_id: string | null;
  readonly plan_id: string | null;
};

/** A trigram is of three letters or digits, so an index finds the middle of a name only for a text with as many in a row. */
const TRIGRAM = /[\p{L}\p{N}]{3}/u;

/** Finds up to `limit` records per kind, field and rank. A whole id also finds an archived record. */
export async function searchRecords(
  scope: Scope,
  { term, kinds, limit }: { term: SearchTerm; kinds: readonly SearchRecordKind[]; limit: number },
  database: Database,
): Promise<SearchHit[]> {
  const queries = kinds.flatMap((kind) => [
    ...(term.ids?.kind === kind ? [buildIdQuery(kind)] : []),
    ...(TABLES[kind].isCatalog
      ? [buildCatalogQuery(kind)]
      : TABLES[kind].fields.flatMap(buildFieldQueries(kind, term))),
  ]);
  if (queries.length === 0) return [];
  const { text, lower, prefix, contains, ids } = term;
  const values = { ...scope, text, lower, prefix, contains, first: ids?.first ?? '', last: ids?.last ?? '', limit };
  const { rows } = await database.raw(queries.map((sql) => `(${sql})`).join(' union all '), values);
  return rows;
}

function buildSelect(kind: SearchRecordKind, matched: string, rank: string): string {
  const { table, title = 'null', subtitle = 'null', state, customer_id = 'null', plan_id = 'null' } = TABLES[kind];
  const columns = { title, subtitle, status: state, customer_id, plan_id };
  const selected = Object.entries(columns).map(([name, sql]) => `cast(${sql} as text) as ${name}`);
  return `select '${kind}' as kind, id, ${matched} as matched, ${rank} as rank, ${selected.join(', ')} from ${table}
           where tenant_id = :tenant_id and environment_id = :environment_id`;
}

function buildIdQuery(kind: SearchRecordKind): string {
  return `${buildSelect(kind, `'id'`, `case when :first = :last then 0 else 1 end`)}
             and id between :first and :last and (status = 'published' or status <> 'deleted' and :first = :last)
           order by created_at desc, id desc limit :limit`;
}

function buildFieldQueries(kind: SearchRecordKind, { lower }: SearchTerm): (field: SearchedField) => string[] {
  return ({ column, matched, by, present = 'true' }) => {
    const select = (rank: string) =>
      `${buildSelect(kind, `'${matched}'`, rank)} and status = 'published' and ${present}`;
    if (by === 'exact') return [`${select('0')} and ${column} = :text order by id limit :limit`];
    // The order by bytes is that of the index, in which the text itself comes before longer ones.
    const prefix = `${select(`case when lower(${column}) = :lower then 0 else 1 end`)}
             and lower(${column}) like :prefix order by lower(${column}) using ~<~, id limit :limit`;
    if (by === 'prefix' || !TRIGRAM.test(lower)) return [prefix];
    const inside = `${select('2')} and lower(${column}) like :contains order by created_at desc, id desc limit :limit`;
    return [prefix, inside];
  };
}

/** Compares all fields of a record of the catalogue at once, and returns the best comparison. */
function buildCatalogQuery(kind: SearchRecordKind): string {
  const { fields } = TABLES[kind];
  const comparisons = ['= :lower', 'like :prefix', 'like :contains'].map((compare) =>
    fields.map(({ column, matched }) => ({ matched, condition: `lower(${column}) ${compare}` })),
  );
  const matched = comparisons.flat().map((one) => `when ${one.condition} then '${one.matched}'`);
  const ranks = comparisons.map((some, rank) => `when ${joinConditions(some)} then ${rank}`);
  return `${buildSelect(kind, `case ${matched.join(' ')} end`, `case ${ranks.join(' ')} end`)}
             and status = 'published' and (${joinConditions(comparisons[2]!)})
           order by rank, lower(name), id limit :limit`;
}

function joinConditions(some: readonly { readonly condition: string }[]): string {
  return some.map(({ condition }) => condition).join(' or ');
}
