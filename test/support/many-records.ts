/**
 * Inserts ten thousand records of every noun with a list directly into Postgres: the cost of a list shows only at such
 * a size, and the API would take minutes. `i` counts the records, and `own` is a letter at the end of all ids of one
 * scope. Some records share their time of creation, some are archived, and every relation is spread over many records.
 */
import type { Knex } from 'knex';
import pg from 'pg';
import type { Scope } from '../../core/foundation/scope.ts';
import { readUrl } from '../../storage/postgres/pool/postgres.ts';

export const MANY = 10_000;

/** The id of the nth record, which a relation names. */
const nth = (prefix: string, n: string) => `'${prefix}_' || lpad((${n})::text, 6, '0') || own`;
/** Id of one of `count` records; adjacent rows reference different ones. */
const one = (prefix: string, count: number = MANY) => nth(prefix, `1 + (i * 7919) % ${count}`);
const choice = (...these: string[]) => `(array[${these.map((one) => `'${one}'`).join(', ')}])[1 + i % ${these.length}]`;
/** SQL of a column that has the rare value in one of a hundred rows, and the usual value in the others. */
const rarely = (rare: string, usual: string) => `case when i % 100 = 7 then '${rare}' else '${usual}' end`;
const day = (n: string) => `timestamptz '2025-01-01Z' + make_interval(days => (${n})::int)`;
const sometimes = (value: string) => `case when i % 3 = 0 then ${value} end`;
const METADATA = `jsonb_build_object('region', 'r' || i % 500)`;
const MADE_AT = `timestamptz '2026-01-01Z' + make_interval(secs => (i / 3)::int)`;

/** By table: the columns that differ from those of most tables, as SQL. */
const SEEDS: Record<string, Record<string, string>> = {
  environments: { id: nth('env', 'i'), type: choice('development', 'production') },
  users: {
    id: nth('user', 'i'),
    email: `'person' || i || own || '@example.com'`,
    type: choice('user', 'user', 'service_account'),
    roles: `array[${rarely('event_reader', 'event_ingestor')}]`,
    metadata: METADATA,
  },
  secrets: {
    id: nth('secret', 'i'),
    user_id: one('user'),
    type: choice('private_key', 'publishable_key'),
    key_hash: `'hash' || own || i`,
    display_id: `'sk_00***' || i % 90`,
  },
  meters: {
    id: nth('meter', 'i'),
    event_name: `'event_' || i % 2500`,
    aggregation: `'{"type":"COUNT"}'::jsonb`,
    reset_usage: `'BILLING_PERIOD'`,
  },
  customers: {
    id: nth('cust', 'i'),
    external_id: `'external_' || i`,
    email: `'billing' || i % 5000 || '@example.com'`,
    address_country: choice('DE', 'FR', 'NL'),
    parent_customer_id: `case when i % 50 = 10 then ${nth('cust', '1 + i % 40')} end`,
    metadata: METADATA,
  },
  features: {
    id: nth('feat', 'i'),
    lookup_key: `'feature-' || i`,
    type: `'metered'`,
    meter_id: one('meter'),
    group_id: sometimes(one('group')),
  },
  plans: { id: nth('plan', 'i'), lookup_key: `'plan-' || i`, display_order: `i % 100`, metadata: METADATA },
  addons: {
    id: nth('addon', 'i'),
    lookup_key: `'addon-' || i`,
    type: rarely('multiple_instance', 'onetime'),
    metadata: METADATA,
  },
  groups: { id: nth('group', 'i'), entity_type: choice('price', 'feature'), lookup_key: `'group-' || i` },
  price_units: {
    id: nth('price_unit', 'i'),
    code: `'u' || i`,
    symbol: `'¤'`,
    base_currency: choice('usd', 'eur'),
    conversion_rate: '0.01 * i',
  },
  prices: {
    id: nth('price', 'i'),
    amount: '(i * 31) % 1000',
    display_amount: `'$1'`,
    currency: choice('usd', 'eur'),
    lookup_key: `'price-' || i`,
    type: `'USAGE'`,
    billing_model: `'FLAT_FEE'`,
    billing_period: rarely('ANNUAL', 'MONTHLY'),
    billing_period_count: '1',
    billing_cadence: `'RECURRING'`,
    invoice_cadence: choice('ARREAR', 'ADVANCE'),
    meter_id: one('meter'),
    price_unit_type: `'FIAT'`,
    entity_type: choice('PLAN', 'PLAN', 'ADDON', 'SUBSCRIPTION', 'COSTSHEET'),
    entity_id: `case i % 5 when 2 then ${one('addon')} when 3 then ${one('subs')} when 4 then ${one('cost')} else ${one('plan')} end`,
    group_id: sometimes(one('group')),
    parent_price_id: `case when i % 20 = 3 then ${nth('price', 'i - 1')} else '' end`,
    sequence: 'i',
    start_date: day('i % 400'),
    end_date: `case when i % 10 = 1 then ${day('400 + i % 400')} end`,
  },
  entitlements: {
    id: nth('ent', 'i'),
    entity_type: choice('PLAN', 'PLAN', 'ADDON', 'SUBSCRIPTION'),
    entity_id: `case i % 4 when 2 then ${one('addon')} when 3 then ${one('subs')} else ${one('plan')} end`,
    feature_id: nth('feat', 'i'),
    feature_type: `'metered'`,
    is_enabled: 'i % 10 <> 0',
    usage_limit: '(i * 37) % 5000',
    usage_reset_period: `'MONTHLY'`,
    display_order: 'i % 20',
  },
  subscriptions: {
    id: nth('subs', 'i'),
    customer_id: one('cust'),
    invoicing_customer_id: sometimes(one('cust', 4000)),
    plan_id: one('plan', 2000),
    lookup_key: `'subs-' || i`,
    subscription_status: rarely('trialing', 'active'),
    parent_subscription_id: `case when i % 20 = 4 then ${nth('subs', '1 + i % 700')} end`,
    currency: choice('usd', 'eur'),
    billing_cycle: choice('anniversary', 'calendar'),
    billing_period: rarely('ANNUAL', 'MONTHLY'),
    billing_anchor: day('i % 300'),
    start_date: day('i % 300'),
    end_date: `case when i % 25 = 6 then ${day('500 + i % 300')} end`,
    current_period_start: day('i % 300'),
    current_period_end: day('i % 300 + 30'),
    trial_start: `case when i % 100 = 7 then ${day('i % 300')} end`,
    trial_end: `case when i % 100 = 7 then ${day('i % 300 + 14')} end`,
    metadata: METADATA,
  },
  subscription_line_items: {
    id: nth('subs_line', 'i'),
    subscription_id: one('subs'),
    customer_id: one('cust'),
    entity_id: one('plan', 2000),
    entity_type: rarely('addon', 'plan'),
    price_id: one('price'),
    price_type: `'USAGE'`,
    meter_id: one('meter'),
    quantity: 'i % 10',
    currency: choice('usd', 'eur'),
    billing_period: rarely('ANNUAL', 'MONTHLY'),
    invoice_cadence: `'ARREAR'`,
    start_date: day('i % 300'),
    end_date: `case when i % 25 = 6 then ${day('500 + i % 300')} end`,
    addon_association_id: `case when i % 100 = 7 then 'addon_assoc_' || i end`,
    metadata: METADATA,
    position: 'i',
  },
  subscription_schedules: {
    id: nth('sched', 'i'),
    subscription_id: one('subs'),
    schedule_type: rarely('plan_change', 'cancellation'),
    scheduled_at: day('i % 300'),
    status: rarely('pending', 'executed'),
  },
  wallets: { id: nth('wallet', 'i'), customer_id: one('cust'), currency: choice('usd', 'eur') },
  wallet_transactions: {
    id: nth('wtxn', 'i'),
    wallet_id: one('wallet', 2000),
    customer_id: one('cust', 2000),
    type: `'credit'`,
    amount: 'i % 1000',
    credit_amount: 'i % 1000',
    credit_balance_before: '0',
    credit_balance_after: 'i % 1000',
    currency: `'usd'`,
    transaction_reason: rarely('FREE_CREDIT_GRANT', 'CREDIT_NOTE'),
    reference_type: rarely('EXTERNAL', 'INVOICE'),
    reference_id: one('inv'),
    idempotency_key: `'key ' || i`,
  },
  invoices: {
    id: nth('inv', 'i'),
    customer_id: one('cust'),
    subscription_id: one('subs'),
    subscription_customer_id: one('cust'),
    invoice_type: rarely('ONE_OFF', 'SUBSCRIPTION'),
    invoice_status: rarely('DRAFT', 'FINALIZED'),
    payment_status: rarely('PENDING', 'SUCCEEDED'),
    billing_reason: rarely('MANUAL', 'SUBSCRIPTION_CYCLE'),
    currency: choice('usd', 'eur'),
    amount_due: '(i * 31) % 1000',
    amount_paid: 'case when i % 100 = 7 then 0 else (i * 31) % 1000 end',
    amount_remaining: 'case when i % 100 = 7 then (i * 31) % 1000 else 0 end',
    invoice_number: `'INV-' || i`,
    finalized_at: MADE_AT,
    period_start: day('i % 700'),
    period_end: day('i % 700 + 30'),
    due_date: day('i % 700 + 40'),
    metadata: METADATA,
  },
  payments: {
    id: nth('pay', 'i'),
    idempotency_key: `'payment ' || i`,
    customer_id: one('cust'),
    destination_id: one('inv'),
    invoice_number: `'INV-' || i`,
    payment_method_type: rarely('OFFLINE', 'CARD'),
    payment_gateway: `case when i % 100 = 7 then 'stripe' else 'sandbox' end`,
    amount: '1 + i % 1000',
    currency: rarely('eur', 'usd'),
    payment_status: rarely('FAILED', 'SUCCEEDED'),
    gateway_payment_id: `'sbx_' || i`,
    gateway_tracking_id: `'key ' || i`,
    succeeded_at: day('i % 300'),
    metadata: METADATA,
  },
  payment_attempts: {
    id: nth('attempt', 'i'),
    payment_id: one('pay'),
    attempt_number: 'i',
    payment_status: rarely('FAILED', 'SUCCEEDED'),
    amount: '1 + i % 1000',
  },
  payment_refunds: {
    id: nth('refund', 'i'),
    payment_id: one('pay'),
    amount: '1',
    refund_status: `'succeeded'`,
    idempotency_key: `'refund ' || i`,
  },
  payment_methods: {
    id: nth('paym', 'i'),
    customer_id: one('cust', 2000),
    payment_gateway: `'sandbox'`,
    gateway_payment_method_id: `'pm_' || i`,
    payment_method_type: `'CARD'`,
  },
  invoice_line_items: {
    id: nth('inv_line', 'i'),
    invoice_id: one('inv'),
    customer_id: one('cust'),
    quantity: '1',
    amount: '10',
    currency: `'usd'`,
    position: 'i',
  },
  credit_notes: {
    id: nth('cn', 'i'),
    credit_note_number: `'CN-' || i || own`,
    invoice_id: one('inv'),
    customer_id: one('cust'),
    subscription_id: one('subs'),
    credit_note_status: rarely('VOIDED', 'FINALIZED'),
    credit_note_type: rarely('REFUND', 'ADJUSTMENT'),
    reason: `'ORDER_CHANGE'`,
    currency: `'usd'`,
    subtotal: '1 + i % 1000',
    total_amount: '1 + i % 1000',
    idempotency_key: `'key ' || i`,
    metadata: METADATA,
  },
  credit_note_line_items: {
    id: nth('cn_line', 'i'),
    credit_note_id: one('cn'),
    invoice_line_item_id: one('inv_line'),
    amount: '1',
    currency: `'usd'`,
    position: 'i',
  },
  addon_associations: {
    id: nth('addon_assoc', 'i'),
    entity_id: one('subs'),
    addon_id: one('addon'),
    start_date: day('i % 300'),
  },
  coupons: {
    id: nth('coupon', 'i'),
    coupon_code: `'CODE' || i`,
    type: `'percentage'`,
    percentage_off: '1 + i % 99',
    cadence: choice('once', 'forever'),
    metadata: METADATA,
  },
  coupon_associations: {
    id: nth('coupon_assoc', 'i'),
    coupon_id: one('coupon'),
    subscription_id: one('subs'),
    subscription_line_item_id: sometimes(one('subs_line')),
    subscription_phase_id: `case when i % 100 = 7 then 'phase_' || i end`,
    start_date: day('i % 300'),
    end_date: `case when i % 25 = 6 then ${day('300 + i % 400')} end`,
  },
  tax_rates: {
    id: nth('taxrate', 'i'),
    code: `'TAX' || i`,
    tax_rate_type: `'percentage'`,
    tax_rate_status: `'ACTIVE'`,
    scope: rarely('ONETIME', 'EXTERNAL'),
    percentage_value: '1 + i % 30',
  },
  coupon_applications: {
    id: nth('coupon_app', 'i'),
    coupon_id: one('coupon'),
    coupon_association_id: one('coupon_assoc'),
    invoice_id: one('inv'),
    position: 'i',
    applied_at: MADE_AT,
    original_price: '10',
    final_price: '9',
    discounted_amount: '1',
    discount_type: `'percentage'`,
    currency: `'usd'`,
  },
  taxes_applied: {
    id: nth('taxapp', 'i'),
    tax_rate_id: one('taxrate'),
    entity_type: `'invoice'`,
    entity_id: one('inv'),
    position: 'i',
    taxable_amount: '10',
    tax_amount: '1',
    tax_behavior: `'exclusive'`,
    currency: `'usd'`,
    applied_at: MADE_AT,
  },
  tax_associations: {
    id: nth('ta', 'i'),
    tax_rate_id: one('taxrate', 3000),
    entity_type: `'customer'`,
    entity_id: one('cust'),
    priority: 'i % 5',
    auto_apply: 'i % 2 = 0',
    currency: choice('usd', 'eur'),
    start_date: day('i % 300'),
  },
  costsheets: { id: nth('cost', 'i'), lookup_key: `'cost-' || i` },
  credit_grants: {
    id: nth('cg', 'i'),
    scope: choice('PLAN', 'SUBSCRIPTION', 'ADDON'),
    plan_id: `case when i % 3 = 0 then ${one('plan')} end`,
    subscription_id: `case when i % 3 = 1 then ${one('subs')} end`,
    addon_id: `case when i % 3 = 2 then ${one('addon')} end`,
    credits: '(i * 31) % 1000',
    cadence: `'ONETIME'`,
    expiration_type: `'NEVER'`,
  },
  reservations: {
    id: nth('resv', 'i'),
    customer_id: one('cust'),
    feature_id: `case when i % 2 = 0 then ${one('feat')} end`,
    wallet_id: `case when i % 2 = 1 then ${one('wallet')} end`,
    quantity: `1 + i % 9`,
    reservation_status: rarely('expired', 'released'),
    reason: `'within_limit'`,
    on_expiry: `'release'`,
    expires_at: day('i % 300'),
    ended_at: day('i % 300'),
  },
  alert_settings: {
    id: nth('alert_set', 'i'),
    entity_type: choice('subscription_line_item', 'group'),
    entity_id: nth('subs_line', 'i'),
    parent_entity_type: `'subscription'`,
    parent_entity_id: one('subs'),
    enabled: 'i % 10 <> 0',
    config: `'{}'::jsonb`,
  },
  alert_logs: {
    id: nth('alert', 'i'),
    entity_type: choice('wallet', 'feature'),
    entity_id: `case i % 2 when 0 then ${one('wallet')} else ${one('feat')} end`,
    parent_entity_type: `'wallet'`,
    parent_entity_id: one('wallet'),
    customer_id: one('cust'),
    alert_type: rarely('feature_wallet_balance', 'low_credit_balance'),
    alert_status: rarely('info', 'in_alarm'),
    alert_info: `'{}'::jsonb`,
  },
  workflow_runs: {
    id: nth('wf', 'i'),
    run_id: `'run_' || i || own`,
    workflow_type: rarely('EnvironmentCloneWorkflow', 'ComputeInvoiceWorkflow'),
    workflow_status: rarely('Failed', 'Completed'),
    task_queue: `'jobs'`,
    entity: rarely('environment', 'invoice'),
    entity_id: one('inv'),
    start_time: MADE_AT,
    close_time: MADE_AT,
  },
  tasks: {
    id: nth('task', 'i'),
    task_type: choice('IMPORT', 'EXPORT'),
    entity_type: rarely('FEATURES', 'EVENTS'),
    file_type: `'CSV'`,
    task_status: rarely('FAILED', 'COMPLETED'),
    completed_at: `case when i % 100 <> 7 then ${MADE_AT} end`,
    failed_at: `case when i % 100 = 7 then ${MADE_AT} end`,
    scheduled_task_id: sometimes(one('schedtask', 100)),
    created_by: one('user'),
  },
  import_mappings: {
    id: nth('impmap', 'i'),
    name: `'Mapping ' || i`,
    entity_type: rarely('FEATURES', 'EVENTS'),
    delimiter: `'COMMA'`,
    decimal_separator: `'POINT'`,
    date_format: `'YEAR_FIRST'`,
    time_zone: `'UTC'`,
    other_columns: `'REFUSE'`,
    property_names: `'AS_COLUMN'`,
    fields: `'[]'::jsonb`,
  },
  connections: {
    id: nth('conn', 'i'),
    provider_type: rarely('directory', 's3'),
    secret: `'sealed'`,
  },
  scheduled_tasks: {
    id: nth('schedtask', 'i'),
    connection_id: one('conn'),
    entity_type: choice('events', 'invoice', 'usage_analytics'),
    interval: choice('hourly', 'daily'),
    enabled: 'i % 3 > 0',
    job_config: `'{"bucket":"b","region":null,"key_prefix":"","format":"CSV","compression":"none","encryption":null,"endpoint_url":null,
      "use_path_style":null,"virtual_host_style":null,"export_metadata_fields":[]}'::jsonb`,
    next_start: MADE_AT,
    next_end: `${MADE_AT} + interval '1 hour'`,
  },
  webhook_endpoints: {
    id: nth('we', 'i'),
    url: `'https://example.com/' || i`,
    secret: `'sealed'`,
    secret_hint: `'whsec_…'`,
    endpoint_status: rarely('disabled', 'enabled'),
  },
  system_events: {
    id: nth('sys_event', 'i'),
    event_name: rarely('plan.created', 'invoice.update'),
    entity_type: rarely('plan', 'invoice'),
    entity_id: one('inv'),
    payload: `'{}'::json`,
    dispatched_at: MADE_AT,
    streamed_at: MADE_AT,
  },
  webhook_deliveries: {
    id: nth('wd', 'i'),
    endpoint_id: one('we'),
    system_event_id: nth('sys_event', 'i'),
    sequence: 'i',
    event_name: rarely('plan.created', 'invoice.update'),
    entity_type: rarely('plan', 'invoice'),
    entity_id: one('inv'),
    told_at: MADE_AT,
    delivery_status: rarely('failed', 'delivered'),
  },
  webhook_attempts: {
    id: nth('wa', 'i'),
    delivery_id: one('wd'),
    attempt: '1',
    url: `'https://example.com/'`,
    attempted_at: MADE_AT,
    duration_ms: '10',
  },
  event_corrections: {
    event_id: `'event_' || i % 5000`,
    action: rarely('void', 'replace'),
    replacement: `case when i % 100 <> 7 then '{}' end`,
    reason: `'wrong amount'`,
    requested_by: one('user', 50),
    requested_at: MADE_AT,
    state: rarely('requested', 'applied'),
  },
  audit_entries: {
    id: nth('audit', 'i'),
    entity_type: rarely('plan', 'invoice'),
    entity_id: one('inv'),
    action: rarely('deleted', 'updated'),
    user_id: one('user'),
  },
};
export const SEEDED = Object.keys(SEEDS);

/** Columns of most tables; a column that a table does not have is skipped. */
const ALL: Record<string, string> = {
  name: `'Name ' || (i * 7919) % 10007`,
  status: `case when i % 40 = 39 then 'archived' else 'published' end`,
  created_at: MADE_AT,
  updated_at: `timestamptz '2026-02-01Z' + make_interval(secs => ((i * 7919) % 10007)::int)`,
  created_by: one('user', 50),
  updated_by: one('user', 50),
};

/** Inserts the same records in each scope, then runs VACUUM ANALYZE, as the server does by itself after a while. */
export async function seedMany(postgres: Knex, scopes: readonly Scope[]): Promise<void> {
  const client = new pg.Client({ connectionString: readUrl(postgres) });
  await client.connect();
  try {
    // Triggers and foreign keys are off, so that the rows keep the values of SEEDS and ALL.
    await client.query(`set session_replication_role = replica; set maintenance_work_mem = '256MB'`);
    const columns = await columnsOf(client);
    await withoutIndexes(client, async () => {
      for (const table of SEEDED)
        for (const [index, scope] of scopes.entries())
          await client.query(insertOf(table, columns.get(table)!, { ...scope, own: 'abcdef'[index]! }));
    });
    await client.query(`vacuum (analyze) ${SEEDED.join(', ')}`);
  } finally {
    await client.end();
  }
}

/**
 * Drops the indexes for the work and creates them afterwards. Creating an index over all rows takes a fraction of the time of adding each
 * row to it.
 */
async function withoutIndexes(client: pg.Client, work: () => Promise<void>): Promise<void> {
  const { rows } = await client.query(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
      where indrelid = any($1::regclass[]) and not exists (select 1 from pg_constraint where conindid = indexrelid)`,
    [SEEDED],
  );
  await client.query(rows.map(({ name }) => `drop index ${name}`).join('; '));
  await work();
  await client.query(rows.map(({ definition }) => definition).join('; '));
}

async function columnsOf(client: pg.Client): Promise<Map<string, Set<string>>> {
  const { rows } = await client.query(
    `select table_name, array_agg(column_name::text) as columns from information_schema.columns where table_schema = 'public' group by 1`,
  );
  return new Map(rows.map(({ table_name, columns }) => [table_name, new Set(columns)]));
}

function insertOf(table: string, columns: Set<string>, { tenant_id, environment_id, own }: Scope & { own: string }) {
  const values: Record<string, string> = { ...ALL, ...SEEDS[table], tenant_id: `'${tenant_id}'` };
  if (columns.has('environment_id')) values.environment_id = `'${environment_id}'`;
  const kept = Object.entries(values).filter(([column]) => columns.has(column) || column in SEEDS[table]!);
  const names = kept.map(([column]) => `"${column}"`).join(', ');
  return `insert into ${table} (${names}) select ${kept.map(([, value]) => value).join(', ')}
    from generate_series(1, ${MANY}) i, (select '${own}'::text as own) of_scope`;
}
