/** Tables `revenue` and `recurring_revenue` of ClickHouse: a row replaces rows with the same key and a smaller version. */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { RecurringRow, RevenueRow } from '../../../core/invoicing/revenue/rows.ts';
import { type ClickHouseClient, loadRows, toClickHouseFailure } from '../../clickhouse/clickhouse.ts';

export async function writeRevenue(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { rows, version }: { rows: readonly RevenueRow[]; version: string },
): Promise<void> {
  const values = rows.map(({ cells, ...row }) => ({
    ...row,
    ...toScope(scope),
    earned_at: cells.map(({ earned_at }) => toTimeText(earned_at)),
    usage: cells.map(({ usage }) => usage.toFixed()),
    fixed: cells.map(({ fixed }) => fixed.toFixed()),
    usage_of_year: sumDecimals(cells.map(({ usage }) => usage)).toFixed(),
    fixed_of_year: sumDecimals(cells.map(({ fixed }) => fixed)).toFixed(),
    version,
  }));
  await insert(clickhouse, 'revenue', values);
}

export async function writeRecurring(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { rows, version }: { rows: readonly RecurringRow[]; version: string },
): Promise<void> {
  const values = rows.map(({ starts_at, ends_at, monthly, ...row }) => ({
    ...row,
    ...toScope(scope),
    starts_at: toTimeText(starts_at),
    ends_at: toTimeText(ends_at),
    monthly: monthly.toFixed(),
    version,
  }));
  await insert(clickhouse, 'recurring_revenue', values);
}

/** Inserts the rows in one block, which may contain many years. */
async function insert(clickhouse: ClickHouseClient, table: string, values: readonly object[]): Promise<void> {
  if (values.length === 0) return;
  try {
    await clickhouse.insert({
      table,
      values,
      format: 'JSONEachRow',
      clickhouse_settings: { max_partitions_per_insert_block: '0' },
    });
  } catch (error) {
    throw toClickHouseFailure(`rows of ${table}`, error);
  }
}

type StoredRevenueRow = {
  customer_id: string;
  currency: string;
  year: number;
  times: string[];
  usages: string[];
  fixeds: string[];
  usage_sum: string;
  fixed_sum: string;
};
export type StoredRevenue = RevenueRow & { readonly usage_of_year: Decimal; readonly fixed_of_year: Decimal };

/** Loads the stored rows of these customers, including rows without amounts. */
export async function loadStoredRevenue(
  clickhouse: ClickHouseClient,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<StoredRevenue[]> {
  const texts = (column: string) => `arrayMap(value -> toString(value), ${column})`;
  const rows = await loadRows<StoredRevenueRow>(clickhouse, 'stored revenue', {
    query: `select customer_id, currency, year, ${texts('earned_at')} as times, ${texts('usage')} as usages, ${texts('fixed')} as fixeds,
                   toString(usage_of_year) as usage_sum, toString(fixed_of_year) as fixed_sum
              from revenue final where ${IS_SELECTED_CUSTOMER}`,
    params: { ...toScope(scope), customer_ids },
  });
  return rows.map(({ customer_id, currency, year, times, usages, fixeds, usage_sum, fixed_sum }) => ({
    customer_id,
    currency,
    year,
    cells: times.map((time, index) => ({
      earned_at: parseTimeText(time),
      usage: new Decimal(usages[index]!),
      fixed: new Decimal(fixeds[index]!),
    })),
    usage_of_year: new Decimal(usage_sum),
    fixed_of_year: new Decimal(fixed_sum),
  }));
}

type StoredTexts<Row> = { [Key in keyof Row]: string };

export type StoredRecurring = Omit<RecurringRow, 'monthly'> & { readonly monthly: string };

export async function loadStoredRecurring(
  clickhouse: ClickHouseClient,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<StoredRecurring[]> {
  const rows = await loadRows<StoredTexts<RecurringRow>>(clickhouse, 'stored recurring revenue', {
    query: `select line_item_id, customer_id, currency, toString(starts_at) as starts_at, toString(ends_at) as ends_at,
                   toString(monthly) as monthly
              from recurring_revenue final where ${IS_SELECTED_CUSTOMER}`,
    params: { ...toScope(scope), customer_ids },
  });
  return rows.map((row) => ({ ...row, starts_at: parseTimeText(row.starts_at), ends_at: parseTimeText(row.ends_at) }));
}

const IS_SELECTED_CUSTOMER = `tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                and customer_id in {customer_ids:Array(String)}`;

/** Lists the customers in the order of ids, after the id `after`. */
export async function listCustomersWithRows(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const selectCustomers = (table: string) =>
    `select customer_id from ${table} where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and customer_id > {after:String}`;
  const rows = await loadRows<{ customer_id: string }>(clickhouse, 'customers with revenue', {
    query: `select distinct customer_id from (${selectCustomers('revenue')} union all ${selectCustomers('recurring_revenue')})
             order by customer_id limit {limit:UInt32}`,
    params: { ...toScope(scope), after, limit },
  });
  return rows.map(({ customer_id }) => customer_id);
}

/** Finds the greatest version of all rows, of any tenant. */
export async function findGreatestVersion(clickhouse: ClickHouseClient): Promise<string> {
  const selectVersion = (table: string) => `select max(version) as version from ${table}`;
  const [row] = await loadRows<{ version: string }>(clickhouse, 'the newest row of revenue', {
    query: `select toString(max(version)) as version from (${selectVersion('revenue')} union all ${selectVersion('recurring_revenue')})`,
  });
  return row!.version;
}

function toScope({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}

/** Converts an instant to the text form that ClickHouse parses by default. */
export function toTimeText(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
}

function parseTimeText(text: string): number {
  return toInstant(`${text.replace(' ', 'T')}Z`);
}
