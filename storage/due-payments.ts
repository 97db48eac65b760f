/**
 * What is due of payments by the clock: those to be tried, or asked after; invoices that are overdue; and those that have waited for
 * their money longer than the setting of the environment has patience (docs/rules/payments.md).
 */
import type { Knex } from 'knex';
import { OPEN_SUBSCRIPTIONS } from '../core/payment/schedule.ts';
import type { Scope } from '../core/scope.ts';
import { SETTINGS } from '../core/setting/record.ts';
import { type Asked, type Due, earliest, inTurns, ofWhom } from './due-billing.ts';
import { settingOf } from './models/setting.ts';
import type { Database } from './stores.ts';

/** The next that are to be tried, or asked after. */
export async function duePayments(database: Database, { now, ...asked }: Asked & { now: Date }): Promise<Due[]> {
  const due = database('payments').where('status', 'published').where('next_attempt_at', '<=', now);
  return inTurns(database, ofWhom(due, 'payments', asked), { by: ['next_attempt_at'], ...asked });
}

/** When the first of this environment is. */
export function nextPaymentDue(database: Database, scope: Scope): Promise<Date | null> {
  return earliest(scope, { of: () => database('payments').where('status', 'published'), columns: ['next_attempt_at'] });
}

const UNPAID = { invoice_status: 'FINALIZED', status: 'published' };

function untold(database: Database): Knex.QueryBuilder {
  return database('invoices').where(UNPAID).where('amount_remaining', '>', 0).whereNull('overdue_told_at');
}

/** Those whose due date has passed, and of which that was not told. */
export async function overdueInvoices(database: Database, { now, ...asked }: Asked & { now: Date }): Promise<Due[]> {
  const due = untold(database).where('due_date', '<', now);
  return inTurns(database, ofWhom(due, 'invoices', asked), { by: ['due_date'], ...asked });
}

/** The instant behind the first due date of this environment. */
export async function nextOverdue(database: Database, scope: Scope): Promise<Date | null> {
  const due = await earliest(scope, { of: () => untold(database), columns: ['due_date'] });
  return due && new Date(due.getTime() + 1);
}

/** That it was told is no change of the invoice, so it has no new version. False where it was told before. */
export async function markToldOverdue(
  transaction: Database,
  { tenant_id, environment_id }: Scope,
  { id, now }: { id: string; now: Date },
): Promise<boolean> {
  const marked: number = await untold(transaction)
    .where({ tenant_id, environment_id, id })
    .update({ overdue_told_at: now });
  return marked > 0;
}

const DAY_MS = 86_400_000;

/** Of a subscription that goes on. */
function unpaidOfOpen(database: Database): Knex.QueryBuilder {
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

/** Invoices that have waited for their money longer than the setting of their environment allows, where that is on. */
export async function outOfPatience(database: Database, { now, ...asked }: Asked & { now: Date }): Promise<Due[]> {
  const due = unpaidOfOpen(database).whereExists((setting) => {
    void setting
      .from('settings')
      .whereRaw('settings.tenant_id = invoices.tenant_id and settings.environment_id = invoices.environment_id')
      .where('settings.key', 'subscription_config')
      .whereRaw(`(settings.value ->> 'auto_cancellation_enabled')::boolean`)
      .whereRaw(
        `invoices.due_date + make_interval(days => coalesce((settings.value ->> 'grace_period_days')::int, ?)) <= ?`,
        [SETTINGS.subscription_config.default.grace_period_days, now],
      )
      .select('settings.id');
  });
  return inTurns(database, ofWhom(due, 'invoices', asked), { by: ['due_date'], ...asked });
}

/** When the first of this environment will have. */
export async function nextOutOfPatience(database: Database, scope: Scope): Promise<Date | null> {
  const { auto_cancellation_enabled, grace_period_days } = await settingOf(scope, 'subscription_config', database);
  if (!auto_cancellation_enabled) return null;
  const due = await earliest(scope, { of: () => unpaidOfOpen(database), columns: ['due_date'] });
  return due && new Date(due.getTime() + grace_period_days * DAY_MS);
}
