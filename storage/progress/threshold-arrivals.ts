/**
 * After usage arrives, the customers' subscriptions that have a threshold are checked within seconds (docs/rules/invoices.md, "Before
 * the period is over"). At most one check per subscription is queued until it begins; usage that arrives while it runs queues another. If a
 * check is lost in a crash, the periodic check, which runs every few minutes, covers it.
 */
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { Database } from '../foundation/stores.ts';

export const THRESHOLD_TASK = 'bill-threshold';

/** Delay of a check; all arrivals during it share the check. */
const CHECK_DELAY_SECONDS = 2;

type ThresholdArrival = Pick<BucketRow, 'tenant_id' | 'environment_id' | 'external_customer_id'>;

/** Returns the number of enqueued checks. A tenant without a threshold costs one index query. */
export async function enqueueThresholdChecks(database: Database, rows: readonly ThresholdArrival[]): Promise<number> {
  const tenants = await tenantsWithThresholds(database, [...new Set(rows.map(({ tenant_id }) => tenant_id))]);
  const arrived = new Map<string, ThresholdArrival>();
  for (const row of rows)
    if (tenants.has(row.tenant_id))
      arrived.set(JSON.stringify([row.tenant_id, row.environment_id, row.external_customer_id]), row);
  if (arrived.size === 0) return 0;
  const column = (field: keyof ThresholdArrival) => Array.from(arrived.values(), (row) => row[field]);
  const { rows: enqueued } = await database.raw(ENQUEUE_SQL, [
    column('tenant_id'),
    column('environment_id'),
    column('external_customer_id'),
    THRESHOLD_TASK,
    CHECK_DELAY_SECONDS,
  ]);
  return enqueued.length;
}

async function tenantsWithThresholds(database: Database, tenants: readonly string[]): Promise<Set<string>> {
  if (tenants.length === 0) return new Set();
  const { rows } = await database.raw(
    `select tenant from unnest(?::text[]) as tenant
      where exists (select from subscriptions where tenant_id = tenant and status = 'published'
                      and subscription_status = 'active' and auto_invoice_threshold > 0)`,
    [tenants as never],
  );
  return new Set(rows.map(({ tenant }: { tenant: string }) => tenant));
}

/** Statement that enqueues checks, except in an environment with its own clock, which is checked when the clock advances. */
const ENQUEUE_SQL = `
  with arrived as (
    select tenant_id, environment_id, external_id
      from unnest(?::text[], ?::text[], ?::text[]) as row (tenant_id, environment_id, external_id)
  )
  select graphile_worker.add_job(?,
           payload := json_build_object('tenant_id', s.tenant_id, 'environment_id', s.environment_id, 'subscription_id', s.id),
           run_at := now() + ? * interval '1 second', max_attempts := 3,
           job_key := 'threshold:' || s.id, job_key_mode := 'preserve_run_at')
    from arrived
    join customers c using (tenant_id, environment_id, external_id)
    join subscriptions s on s.tenant_id = c.tenant_id and s.environment_id = c.environment_id and s.customer_id = c.id
   where c.status = 'published' and s.status = 'published' and s.subscription_status = 'active'
     and s.auto_invoice_threshold > 0
     and not exists (select from test_clocks t
                      where t.tenant_id = s.tenant_id and t.environment_id = s.environment_id)
   -- Two slices that ask for the same ones ask in the same order, and neither holds what the other waits for.
   order by s.id`;
