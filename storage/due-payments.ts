/**
 * What is due of payments by the clock: those to be tried, or asked after; invoices that are overdue; and those that have waited for
 * their money longer than the setting of the environment has patience (docs/rules/payments.md).
 */
import type { Knex } from 'knex';
import { OPEN_SUBSCRIPTIONS } from '../core/payment/schedule.ts';
import type { Scope } from '../core/scope.ts';
import { SETTINGS } from '../core/setting/record.ts';
import {
  buildEarliestQuery,
  type DueQuery,
  type DueRecord,
  type Instant,
  listRoundRobin,
  narrowToEnvironments,
} from './due-billing.ts';
import { joinBatch } from './models/batched.ts';
import type { Database } from './stores.ts';

/** The next that are to be tried, or asked after. */
export async function listDuePayments(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = database('payments').where('status', 'published').where('next_attempt_at', '<=', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'payments', filter), {
    by: ['next_attempt_at'],
    ...filter,
  });
}

/** When the first of this environment is. */
export function nextPaymentDue(database: Database, scope: Scope): Instant {
  const open = () => database('payments').where('status', 'published');
  return buildEarliestQuery(database, scope, { of: open, columns: ['next_attempt_at'] });
}

const UNPAID = { invoice_status: 'FINALIZED', status: 'published' };

function buildUnpublishedOverdueQuery(database: Database): Knex.QueryBuilder {
  return database('invoices').where(UNPAID).where('amount_remaining', '>', 0).whereNull('overdue_told_at');
}

/** Those whose due date has passed, and of which that was not told. */
export async function listOverdueInvoices(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildUnpublishedOverdueQuery(database).where('due_date', '<', now);
  return listRoundRobin(database, narrowToEnvironments(due, 'invoices', filter), { by: ['due_date'], ...filter });
}

/** The instant behind the first due date of this environment. */
export function nextOverdue(database: Database, scope: Scope): Instant {
  const due = buildEarliestQuery(database, scope, {
    of: () => buildUnpublishedOverdueQuery(database),
    columns: ['due_date'],
  });
  return database.raw(`? + interval '1 millisecond'`, [due]);
}

/**
 * That it was told is no change of the invoice, so it has no new version. False where it was told before. Of several who ask side by side
 * in one statement.
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

/** Of a subscription that goes on. */
function buildUnpaidQuery(database: Database): Knex.QueryBuilder {
  return (
    database('invoices')
      .where(UNPAID)
      .where('amount_remaining', '>', 0)
      // A charge that is on its way may pay it.
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

/** Until when patience lasts, where a row of `settings` says that it ends. */
const PATIENCE = `make_interval(days => coalesce((settings.value ->> 'grace_period_days')::int, ?))`;
const DEFAULT_DAYS = SETTINGS.subscription_config.default.grace_period_days;

function buildAutoCancellationQuery(settings: Knex.QueryBuilder): Knex.QueryBuilder {
  return settings
    .from('settings')
    .where('settings.key', 'subscription_config')
    .whereRaw(`(settings.value ->> 'auto_cancellation_enabled')::boolean`);
}

/** Since when an invoice waits for its money: nobody can pay one before it is final, whose due date may have passed by then. */
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

/** Invoices that have waited for their money longer than the setting of their environment allows, where that is on. */
export async function listInvoicesPastGracePeriod(
  database: Database,
  { now, ...filter }: DueQuery & { now: Date },
): Promise<DueRecord[]> {
  const due = buildPastGracePeriodQuery(database, now);
  return listRoundRobin(database, narrowToEnvironments(due, 'invoices', filter), { by: ['due_date'], ...filter });
}

/** Whether this one still has, for who holds it and its subscription. */
export async function isPastGracePeriod(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { invoice_id, now }: { invoice_id: string; now: Date },
): Promise<boolean> {
  const own = { 'invoices.tenant_id': tenant_id, 'invoices.environment_id': environment_id, 'invoices.id': invoice_id };
  const [still] = await buildPastGracePeriodQuery(transaction, now).where(own).select('invoices.id');
  return still !== undefined;
}

/** When the first of this environment will have. */
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
