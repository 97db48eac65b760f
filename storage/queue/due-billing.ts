/**
 * Lists subscriptions that must begin, end or enter their next period, and drafts whose finalization delay is over. The scheduler
 * queries all tenants, except environments with a test clock; the advance of a test clock queries its own environment. The
 * results are candidates: a worker locks each record and checks it again.
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../foundation/stores.ts';

export type DueRecord = Scope & { readonly id: string };

/** Environments to query: that of an advancing test clock (`only`), or all environments without a test clock. */
export type DueEnvironments = { readonly only?: Scope | undefined };

/** Maximum number of records per query. A record that becomes due during a round waits until the round is over. */
const ROUND = 100;
/**
 * Maximum number of drafts per query. Each query sorts all due drafts, so with small queries the sorting of twenty thousand would take as
 * long as finalizing them.
 */
const DRAFT_BATCH_SIZE = 1000;

/** `left` contains the ids of records that this run skips, because it could not finish them. */
export type DueQuery = DueEnvironments & { readonly left: readonly string[] };

const BILLED = ['active', 'trialing'];
/** Subscription types without invoices of their own, whose period advances with that of their parent. */
export const MOVED_BY_PARENT = ['INHERITED', 'grouped_invoicing'];
/**
 * Columns with the instants at which a subscription may end before the parent that advances its periods, by type. In an inherited
 * subscription only `end_date` is its own; all other instants are copies of the parent's.
 */
const ENDS_ALONE: readonly (readonly [type: string, columns: readonly string[]])[] = [
  ['INHERITED', ['end_date']],
  ['grouped_invoicing', ['cancel_at', 'end_date']],
];
const UNPAID = { subscription_status: 'incomplete', status: 'published' };
const DRAFT = { invoice_status: 'DRAFT', status: 'published' };

/** Lists the next subscriptions to bill, earliest period end first. */
export async function listDueSubscriptions(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = database('subscriptions')
    .where('status', 'published')
    .whereIn('subscription_status', BILLED)
    .where((over) => {
      void over.where('current_period_end', '<=', now).orWhere('cancel_at', '<=', now).orWhere('end_date', '<=', now);
      void over.orWhere('opens_at', '<=', now);
    })
    .where((mine) => {
      void mine.whereNotIn('subscription_type', MOVED_BY_PARENT);
      for (const [subscription_type, columns] of ENDS_ALONE)
        for (const column of columns)
          void mine.orWhere((ends) => void ends.where({ subscription_type }).where(column, '<=', now));
    });
  if (filter.only === undefined) void due.whereNotExists(triedLater(database, now));
  return listRoundRobin(database, narrowToEnvironments(due, 'subscriptions', filter), {
    by: ['current_period_end'],
    ...filter,
  });
}

/**
 * Finds failed period ends whose retry is not due yet. The advance of a test clock does not use this query, because it has its
 * own retries.
 */
function triedLater(database: Database, now: Date): Knex.QueryBuilder {
  return database('subscription_schedules as schedule')
    .whereRaw('schedule.subscription_id = subscriptions.id')
    .whereIn('schedule.status', ['pending', 'executing'])
    .where('schedule.next_attempt_at', '>', now);
}

/** Lists subscriptions whose current period may have reached their billing threshold. */
export async function listThresholdSubscriptions(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = database('subscriptions')
    .where({ status: 'published', subscription_status: 'active' })
    .where('auto_invoice_threshold', '>', 0)
    .where('current_period_start', '<', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'subscriptions', filter), {
    by: ['current_period_start'],
    ...filter,
  });
}

/** Lists the external ids of the customers of this environment whose subscriptions have a threshold. */
export async function listThresholdCustomers(
  database: Database,
  { tenant_id, environment_id }: Scope,
): Promise<readonly string[]> {
  const own = { 'subscription.tenant_id': tenant_id, 'subscription.environment_id': environment_id };
  const found: { external_id: string }[] = await database('subscriptions as subscription')
    .join('customers as customer', {
      'customer.id': 'subscription.customer_id',
      'customer.tenant_id': 'subscription.tenant_id',
      'customer.environment_id': 'subscription.environment_id',
    })
    .where({ ...own, 'subscription.status': 'published', 'subscription.subscription_status': 'active' })
    .where('subscription.auto_invoice_threshold', '>', 0)
    .distinct('customer.external_id');
  return found.map(({ external_id }) => external_id);
}

/** Finds the earliest instant in this environment at which a subscription begins (`opens_at`), ends, or reaches a period end. */
export function nextSubscriptionDue(database: Database, scope: Scope): Instant {
  const billed = () => database('subscriptions').where('status', 'published').whereIn('subscription_status', BILLED);
  const alone = () => billed().whereNotIn('subscription_type', MOVED_BY_PARENT);
  const columns = ['opens_at', 'current_period_end', 'cancel_at', 'end_date'];
  return buildLeast(database, [
    buildEarliestQuery(database, scope, { of: alone, columns }),
    ...ENDS_ALONE.map(([subscription_type, ends]) =>
      buildEarliestQuery(database, scope, { of: () => billed().where({ subscription_type }), columns: ends }),
    ),
  ]);
}

/** Lists subscriptions whose first invoice was never paid and that have reached their end. */
export async function listDueUnpaidSubscriptions(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = database('subscriptions')
    .where(UNPAID)
    .whereNotIn('subscription_type', MOVED_BY_PARENT)
    .where((over) => {
      void over.where('cancel_at', '<=', now).orWhere('end_date', '<=', now);
    });
  return listRoundRobin(database, narrowToEnvironments(due, 'subscriptions', filter), {
    by: ['current_period_end'],
    ...filter,
  });
}

/** Finds the earliest end of a subscription of this environment whose first invoice was never paid. */
export function nextUnpaidEnd(database: Database, scope: Scope): Instant {
  const unpaid = () => database('subscriptions').where(UNPAID).whereNotIn('subscription_type', MOVED_BY_PARENT);
  return buildEarliestQuery(database, scope, { of: unpaid, columns: ['cancel_at', 'end_date'] });
}

/** Returns `from` if a subscription of this environment can reach a threshold. */
export function nextThresholdCheck(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { from }: { from: Date },
): Instant {
  const having = database('subscriptions')
    .where({ tenant_id, environment_id, status: 'published', subscription_status: 'active' })
    .where('auto_invoice_threshold', '>', 0)
    .select('id');
  return database.raw('case when exists ? then ?::timestamptz end', [having as never, from.toISOString()]);
}

/**
 * Lists the next drafts to finalize, the longest waiting first. Drafts that were computed at the same instant have a
 * fixed order, because invoices are numbered in it.
 */
export async function listDueDrafts(
  database: Database,
  { now, delay_seconds, ...filter }: DueQuery & { now: Date; delay_seconds: number },
): Promise<DueRecord[]> {
  const due = await buildDueDraftsQuery(database, { now, delay_seconds, environments: filter });
  const by = ['last_computed_at', 'customer_id', 'subscription_id', 'billing_sequence'];
  return listRoundRobin(database, narrowToEnvironments(due.drafts, 'invoices', filter), {
    by,
    round: DRAFT_BATCH_SIZE,
    ...filter,
  });
}

/** Selects the drafts that are still due. The caller has locked all of them. */
export async function findDueDrafts(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { ids, ...filter }: { ids: readonly string[]; now: Date; delay_seconds: number },
): Promise<ReadonlySet<string>> {
  const { drafts } = await buildDueDraftsQuery(transaction, {
    ...filter,
    environments: { only: { tenant_id, environment_id } },
  });
  const own = drafts.where({ tenant_id, environment_id }).whereRaw('id = any(?)', [[...ids]]);
  const found: { id: string }[] = await own.select('id');
  return new Set(found.map(({ id }) => id));
}

type DueDraftsQuery = { readonly now: Date; readonly delay_seconds: number; readonly environments: DueEnvironments };

/** Builds a query of due drafts. It is returned inside an object, because awaiting a query builder would run it. */
async function buildDueDraftsQuery(
  database: Database,
  { now, delay_seconds, environments: whom }: DueDraftsQuery,
): Promise<{ readonly drafts: Knex.QueryBuilder }> {
  const secondsAgo = (seconds: number) => new Date(now.getTime() - seconds * 1000);
  const own = await ownDelays(database, whom);
  const due = database('invoices')
    .where(DRAFT)
    .where((over) => {
      void over.whereRaw(`not (${COMPLETE_LATER})`).orWhere('period_end', '<=', now);
    });
  if (own.length === 0) void due.where('last_computed_at', '<=', secondsAgo(delay_seconds));
  else
    void due.where((long) => {
      const theirs = own.map(({ tenant_id, environment_id }) => [tenant_id, environment_id]);
      void long.where((others) => {
        void others.where('last_computed_at', '<=', secondsAgo(delay_seconds));
        void others.whereNotIn(['tenant_id', 'environment_id'], theirs);
      });
      for (const { seconds, tenant_id, environment_id } of own)
        void long.orWhere((one) => {
          void one.where({ tenant_id, environment_id }).where('last_computed_at', '<=', secondsAgo(seconds));
        });
    });
  return { drafts: due };
}

/** Finds the earliest instant at which the finalization delay of a draft of this environment is over. */
export function nextDraftRested(
  database: Database,
  scope: Scope,
  { delay_seconds }: { delay_seconds: number },
): Instant {
  const { tenant_id, environment_id } = scope;
  const drafts = () => database('invoices').where(DRAFT);
  const own = withOwnDelay(database, { only: scope }).select(database.raw(OWN_DELAY));
  const delay = database.raw('make_interval(secs => coalesce(?, ?))', [own as never, delay_seconds]);
  const computed = buildEarliestQuery(database, scope, {
    of: () => drafts().whereRaw(`not (${COMPLETE_LATER})`),
    columns: ['last_computed_at'],
  });
  const early = drafts()
    .where({ tenant_id, environment_id })
    .whereRaw(COMPLETE_LATER)
    .select(database.raw('min(greatest(last_computed_at + ?, period_end))', [delay]));
  return database.raw('least(? + ?, ?)', [computed, delay, early as never]);
}

/** SQL condition of a draft that was computed before the end of its period, until which usage arrives. */
const COMPLETE_LATER = `invoice_type = 'SUBSCRIPTION' and billing_reason = 'SUBSCRIPTION_CYCLE' and period_end is not null
  and last_computed_at is not null and last_computed_at < period_end`;

const OWN_DELAY = `(value->>'finalization_delay_seconds')::int`;

/** Lists the environments that set their own finalization delay. */
function ownDelays(database: Database, environments: DueEnvironments): Promise<(Scope & { seconds: number })[]> {
  const seconds = database.raw(`${OWN_DELAY} as seconds`);
  return withOwnDelay(database, environments).select('tenant_id', 'environment_id', seconds) as never;
}

function withOwnDelay(database: Database, { only }: DueEnvironments): Knex.QueryBuilder {
  const set = database('settings')
    .where({ key: 'invoice_config', status: 'published' })
    .whereRaw(`value->>'finalization_delay_seconds' is not null`);
  return only ? set.where({ tenant_id: only.tenant_id, environment_id: only.environment_id }) : set;
}

/** Narrows a query of `table` to the environments of `only`, or to all without a clock. */
export function narrowToEnvironments(
  query: Knex.QueryBuilder,
  table: string,
  { only }: DueEnvironments,
): Knex.QueryBuilder {
  if (only) return query.where({ tenant_id: only.tenant_id, environment_id: only.environment_id });
  return query.whereNotExists((clock) => {
    const columns = [`${table}.tenant_id`, `${table}.environment_id`];
    void clock
      .from('test_clocks')
      .whereRaw('test_clocks.tenant_id = ?? and test_clocks.environment_id = ??', columns)
      .select('test_clocks.id');
  });
}

/** Lists due records. Tenants alternate, so that a tenant with much due work does not delay the others. */
export async function listRoundRobin<Due extends DueRecord = DueRecord>(
  database: Database,
  due: Knex.QueryBuilder,
  {
    by,
    left,
    round = ROUND,
    also = [],
  }: DueQuery & { by: readonly string[]; round?: number; also?: readonly string[] },
): Promise<Due[]> {
  const order = by.map(() => '??').join(', ');
  const turn = database.raw(`row_number() over (partition by tenant_id order by ${order}, id) as turn`, [...by]);
  const numbered = due
    .whereRaw('id <> all(?)', [left as never])
    .select('id', 'tenant_id', 'environment_id', ...also, turn);
  const listed: unknown = await database
    .from(numbered.as('due'))
    .orderBy(['turn', 'id'])
    .limit(round)
    .select('id', 'tenant_id', 'environment_id', ...also);
  return listed as Due[];
}

/** SQL expression of the next due instant, null if nothing is due. One statement can combine several. */
export type Instant = Knex.Raw<unknown>;

/** Loads these instants in one statement. */
export async function loadInstants(database: Database, filter: readonly Instant[]): Promise<(Date | null)[]> {
  const columns = filter.map((instant, index) => database.raw('? as ??', [instant, `due_${index}`]));
  const [row = {}]: Record<string, string | null>[] = await database.select(columns);
  return filter.map((_, index) => {
    const due = row[`due_${index}`];
    return due ? new Date(due) : null;
  });
}

type Earliest = { of(): Knex.QueryBuilder; readonly columns: readonly string[] };

/**
 * Builds a query for the earliest instant of an environment in any of the given columns; each column has its own index.
 */
export function buildEarliestQuery(
  database: Database,
  { tenant_id, environment_id }: Scope,
  { of, columns }: Earliest,
): Instant {
  const firsts = columns.map((column) => of().where({ tenant_id, environment_id }).whereNotNull(column).min(column));
  return buildLeast(database, firsts);
}

/** Builds the earliest of several instants. `least` of Postgres ignores nulls. */
function buildLeast(database: Database, instants: readonly (Instant | Knex.QueryBuilder)[]): Instant {
  return database.raw(`least(${instants.map(() => '?').join(', ')})`, instants as never);
}
