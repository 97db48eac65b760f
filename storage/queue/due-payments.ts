/**
 * Payments to process or to query again, overdue invoices, and invoices past the grace period of their environment
 * (docs/rules/payments.md).
 */
import type { Knex } from 'knex';
import type { Scope } from '../../core/foundation/scope.ts';
import { OPEN_SUBSCRIPTIONS } from '../../core/payments/schedule.ts';
import { SETTINGS } from '../../core/platform/setting/record.ts';
import { joinBatch } from '../concurrency/batched.ts';
import type { Database } from '../foundation/stores.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';

export type DuePayment = DueRecord & {
  readonly payment_gateway: string | null;
  /** Whether the attempt first reads the copies of the invoice at connected providers, even if credits pay the invoice. */
  readonly reads_counterparts: boolean;
};

/**
 * Lists the next payments to process or to query at the provider. Payments of a paused connection wait for the end of
 * the pause. In the list the environments of a tenant alternate, and so do the gateways of an environment. Each
 * connection processes only a few payments at once, so otherwise many payments of one connection would delay those of
 * the others.
 */
export async function listDuePayments(
  database: Database,
  { now, left, only }: DueQuery & { now: Date },
): Promise<DuePayment[]> {
  const due = database('payments')
    .where('status', 'published')
    .where('next_attempt_at', '<=', now)
    .whereRaw('id <> all(?)', [left as never])
    .whereNotExists((paused) => {
      void buildAccountsQuery(paused.from('connections'))
        .whereRaw('connections.tenant_id = payments.tenant_id')
        .whereRaw('connections.environment_id = payments.environment_id')
        .whereRaw('connections.provider_type = payments.payment_gateway')
        .where('connections.paused_until', '>', now)
        .select('connections.id');
    });
  const lane_turn = database.raw(
    `row_number() over (partition by tenant_id, environment_id, payment_gateway order by next_attempt_at, id) as lane_turn`,
  );
  const accounts = buildAccountsQuery(database('connections')).select('tenant_id', 'environment_id');
  const reads_counterparts = database.raw(
    'is_automatic and (tenant_id, environment_id) in (?) as reads_counterparts',
    accounts,
  );
  const numbered = narrowToEnvironments(due, 'payments', { only }).select(
    ...['id', 'tenant_id', 'environment_id', 'payment_gateway', 'next_attempt_at'],
    lane_turn,
    reads_counterparts,
  );
  return listRoundRobin(database, database.from(numbered.as('in_lanes')), {
    by: ['lane_turn', 'next_attempt_at'],
    also: ['payment_gateway', 'reads_counterparts'],
    left: [],
  });
}

/** End of the pause of the connection that this payment calls; null if it does not pause. */
export async function findPauseEnd(
  database: Database,
  { tenant_id, environment_id, payment_gateway }: DuePayment,
): Promise<Date | null> {
  const own = { tenant_id, environment_id, provider_type: payment_gateway };
  const [found]: { paused_until: string | Date | null }[] = await buildAccountsQuery(database('connections'))
    .where(own)
    .select('paused_until');
  return found?.paused_until ? new Date(found.paused_until) : null;
}

function buildAccountsQuery(connections: Knex.QueryBuilder): Knex.QueryBuilder {
  return connections.where({ 'connections.has_account': true, 'connections.status': 'published' });
}

/** Finds the earliest instant at which a payment of this environment is due. */
export function nextPaymentDue(database: Database, scope: Scope): Instant {
  const open = () => database('payments').where('status', 'published');
  return buildEarliestQuery(database, scope, { of: open, columns: ['next_attempt_at'] });
}

const UNPAID = { invoice_status: 'FINALIZED', status: 'published' };

function buildUnpublishedOverdueQuery(database: Database): Knex.QueryBuilder {
  return database('invoices').where(UNPAID).where('amount_remaining', '>', 0).whereNull('overdue_told_at');
}

/** Lists invoices that are past their due date and have no overdue event yet. */
export async function listOverdueInvoices(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildUnpublishedOverdueQuery(database).where('due_date', '<', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'invoices', filter), { by: ['due_date'], ...filter });
}

/**
 * Finds the instant at which the next invoice of this environment becomes overdue: a millisecond after its due date.
 */
export function nextOverdue(database: Database, scope: Scope): Instant {
  const due = buildEarliestQuery(database, scope, {
    of: () => buildUnpublishedOverdueQuery(database),
    columns: ['due_date'],
  });
  return database.raw(`? + interval '1 millisecond'`, [due]);
}

/**
 * Marks the overdue event of an invoice as published; returns false if it was published before. The version of the
 * invoice stays, because none of its fields changes. Concurrent calls of a transaction run as one statement.
 */
export function markOverduePublished(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { id, now }: { id: string; now: Date },
): Promise<boolean> {
  const key = `mark told overdue ${tenant_id} ${environment_id} ${now.getTime()}`;
  return joinBatch(transaction, { key, query: id }, async (ids) => {
    const marked: { id: string }[] = await buildUnpublishedOverdueQuery(transaction)
      .where({ tenant_id, environment_id })
      .whereRaw('id = any(?)', [[...ids]])
      .update({ overdue_told_at: now })
      .returning('id');
    const published_ids = new Set(marked.map((one) => one.id));
    return ids.map((one) => published_ids.has(one));
  });
}

/** Unpaid invoices of open subscriptions. */
function buildUnpaidQuery(database: Database): Knex.QueryBuilder {
  return (
    database('invoices')
      .where(UNPAID)
      .where('amount_remaining', '>', 0)
      // A charge in process may still pay the invoice.
      .whereNot('payment_status', 'PROCESSING')
      .whereExists((subscription) => {
        void subscription
          .from('subscriptions')
          .whereRaw('subscriptions.id = invoices.subscription_id')
          .whereRaw('subscriptions.tenant_id = invoices.tenant_id')
          .whereRaw('subscriptions.environment_id = invoices.environment_id')
          .where('subscriptions.status', 'published')
          .whereIn('subscriptions.subscription_status', [...OPEN_SUBSCRIPTIONS])
          .select('subscriptions.id');
      })
  );
}

/** SQL expression of the grace period, from a row of `settings`. */
const PATIENCE = `make_interval(days => coalesce((settings.value ->> 'grace_period_days')::int, ?))`;
const DEFAULT_DAYS = SETTINGS.subscription_config.default.grace_period_days;

function buildAutoCancellationQuery(settings: Knex.QueryBuilder): Knex.QueryBuilder {
  return settings
    .from('settings')
    .where('settings.key', 'subscription_config')
    .whereRaw(`(settings.value ->> 'auto_cancellation_enabled')::boolean`);
}

/**
 * SQL expression of the start of the grace period. An invoice cannot be paid before it is final, which may be after its
 * due date.
 */
const WAITS_SINCE = 'greatest(invoices.due_date, invoices.finalized_at)';

function buildPastGracePeriodQuery(database: Database, now: Date): Knex.QueryBuilder {
  return buildUnpaidQuery(database)
    .whereNotNull('invoices.due_date')
    .whereExists((setting) => {
      void buildAutoCancellationQuery(setting)
        .whereRaw('settings.tenant_id = invoices.tenant_id and settings.environment_id = invoices.environment_id')
        .whereRaw(`${WAITS_SINCE} + ${PATIENCE} <= ?`, [DEFAULT_DAYS, now])
        .select('settings.id');
    });
}

/** Lists invoices that are unpaid for longer than the grace period, if the setting of their environment cancels automatically. */
export async function listInvoicesPastGracePeriod(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildPastGracePeriodQuery(database, now);
  return listRoundRobin(database, narrowToEnvironments(due, 'invoices', filter), { by: ['due_date'], ...filter });
}

/** Whether this invoice still is past its grace period; the caller has locked it and its subscription. */
export async function isPastGracePeriod(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { invoice_id, now }: { invoice_id: string; now: Date },
): Promise<boolean> {
  const own = { 'invoices.tenant_id': tenant_id, 'invoices.environment_id': environment_id, 'invoices.id': invoice_id };
  const [still] = await buildPastGracePeriodQuery(transaction, now).where(own).select('invoices.id');
  return still !== undefined;
}

/** Finds the earliest end of a grace period in this environment. */
export function nextGracePeriodEnd(database: Database, scope: Scope): Instant {
  const { tenant_id, environment_id } = scope;
  const first = buildUnpaidQuery(database)
    .where({ 'invoices.tenant_id': tenant_id, 'invoices.environment_id': environment_id })
    .whereNotNull('invoices.due_date')
    .select(database.raw(`min(${WAITS_SINCE})`));
  const end = buildAutoCancellationQuery(database.queryBuilder())
    .where({ tenant_id, environment_id })
    .select(database.raw(`(?) + ${PATIENCE}`, [first, DEFAULT_DAYS]));
  return database.raw('?', [end as never]);
}
