/** Tables `revenue` and `recurring_revenue` of ClickHouse: rows that replace those with the same key and a smaller version. */

import { Decimal, sumDecimals } from '../../core/decimal.ts';
import type { RecurringRow, RevenueRow } from '../../core/revenue/rows.ts';
import type { Scope } from '../../core/scope.ts';
import { toInstant } from '../../core/time/instant.ts';
import { askRows, type ClickHouseClient, clickhouseFailure } from '../clickhouse/clickhouse.ts';

export async function writeRevenue(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { rows, version }: { rows: readonly RevenueRow[]; version: string },
): Promise<void> {
  const values = rows.map(({ cells, ...row }) => ({
    ...row,
    ...ofScope(scope),
    earned_at: cells.map(({ earned_at }) => timeText(earned_at)),
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
    ...ofScope(scope),
    starts_at: timeText(starts_at),
    ends_at: timeText(ends_at),
    monthly: monthly.toFixed(),
    version,
  }));
  await insert(clickhouse, 'recurring_revenue', values);
}

/** Many years may be in one block. */
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
    throw clickhouseFailure(`rows of ${table}`, error);
  }
}

type StoredRow = {
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

/** What is there of these customers, rows without a cell too. */
export async function storedRevenue(
  clickhouse: ClickHouseClient,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<StoredRevenue[]> {
  const texts = (column: string) => `arrayMap(value -> toString(value), ${column})`;
  const rows = await askRows<StoredRow>(clickhouse, 'stored revenue', {
    query: `select customer_id, currency, year, ${texts('earned_at')} as times, ${texts('usage')} as usages, ${texts('fixed')} as fixeds,
                   toString(usage_of_year) as usage_sum, toString(fixed_of_year) as fixed_sum
              from revenue final where ${OF_CUSTOMERS}`,
    params: { ...ofScope(scope), customer_ids },
  });
  return rows.map(({ customer_id, currency, year, times, usages, fixeds, usage_sum, fixed_sum }) => ({
    customer_id,
    currency,
    year,
    cells: times.map((time, index) => ({
      earned_at: msOfText(time),
      usage: new Decimal(usages[index]!),
      fixed: new Decimal(fixeds[index]!),
    })),
    usage_of_year: new Decimal(usage_sum),
    fixed_of_year: new Decimal(fixed_sum),
  }));
}

type Stored<Row> = { [Key in keyof Row]: string };

export type StoredRecurring = Omit<RecurringRow, 'monthly'> & { readonly monthly: string };

export async function storedRecurring(
  clickhouse: ClickHouseClient,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<StoredRecurring[]> {
  const rows = await askRows<Stored<RecurringRow>>(clickhouse, 'stored recurring revenue', {
    query: `select line_item_id, customer_id, currency, toString(starts_at) as starts_at, toString(ends_at) as ends_at,
                   toString(monthly) as monthly
              from recurring_revenue final where ${OF_CUSTOMERS}`,
    params: { ...ofScope(scope), customer_ids },
  });
  return rows.map((row) => ({ ...row, starts_at: msOfText(row.starts_at), ends_at: msOfText(row.ends_at) }));
}

const OF_CUSTOMERS = `tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                and customer_id in {customer_ids:Array(String)}`;

/** In the order of their ids, behind one. */
export async function customersWithRows(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<string[]> {
  const of = (table: string) =>
    `select customer_id from ${table} where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and customer_id > {after:String}`;
  const rows = await askRows<{ customer_id: string }>(clickhouse, 'customers with revenue', {
    query: `select distinct customer_id from (${of('revenue')} union all ${of('recurring_revenue')})
             order by customer_id limit {limit:UInt32}`,
    params: { ...ofScope(scope), after, limit },
  });
  return rows.map(({ customer_id }) => customer_id);
}

/** The greatest of all rows, of any tenant. */
export async function greatestVersion(clickhouse: ClickHouseClient): Promise<string> {
  const of = (table: string) => `select max(version) as version from ${table}`;
  const [row] = await askRows<{ version: string }>(clickhouse, 'the newest row of revenue', {
    query: `select toString(max(version)) as version from (${of('revenue')} union all ${of('recurring_revenue')})`,
  });
  return row!.version;
}

function ofScope({ tenant_id, environment_id }: Scope): Scope {
  return { tenant_id, environment_id };
}

/** As ClickHouse reads it without being told to guess. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
}

export function msOfText(text: string): number {
  return toInstant(`${text.replace(' ', 'T')}Z`);
}
