/**
 * Dashboard queries over the revenue rows: sums by customer and by window, and recurring revenue at instants. Each is one statement
 * over one environment. Amounts are decimals of the store, returned as text (docs/rules/revenue.md).
 */
import { Decimal } from '../../../core/foundation/decimal.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { WindowSize } from '../../../core/foundation/time/window.ts';
import { toYear } from '../../../core/invoicing/revenue/rows.ts';
import { type ClickHouseClient, loadRows } from '../../clickhouse/clickhouse.ts';
import { toTimeText } from './rows.ts';

type RevenueQuery = {
  readonly range: Period;
  /** Null selects all customers. */
  readonly customer_ids: readonly string[] | null;
  readonly signal?: AbortSignal | undefined;
};

export type Amounts = { readonly usage: Decimal; readonly fixed: Decimal };
export type CustomerRevenue = Amounts & { readonly customer_id: string; readonly currency: string };
export type CurrencyRevenue = Amounts & { readonly currency: string; readonly customers: number };

/** Loads the revenue per customer, greatest first; equal sums in the order of ids. */
export async function loadRevenueByCustomer(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { limit, offset, ...query }: RevenueQuery & { limit: number; offset: number },
): Promise<CustomerRevenue[]> {
  const rows = await loadRows<Texts<CustomerRevenue>>(clickhouse, 'revenue by customer', {
    query: `select customer_id, currency, toString(sum(usage)) as usage_text, toString(sum(fixed)) as fixed_text
              from (${buildYearSums(query)})
             group by customer_id, currency
            having sum(usage) != 0 or sum(fixed) != 0
             order by sum(usage) + sum(fixed) desc, customer_id, currency
             limit {limit:UInt32} offset {offset:UInt32}`,
    params: { ...buildParams(scope, query), limit, offset },
    signal: query.signal,
    settings: WITHIN_YEARS,
  });
  return rows.map((row) => ({ customer_id: row.customer_id, currency: row.currency, ...toAmounts(row) }));
}

/** Loads the revenue, one row per currency; `customers` is the number of customers with revenue in the currency. */
export async function loadRevenueByCurrency(
  clickhouse: ClickHouseClient,
  scope: Scope,
  query: RevenueQuery,
): Promise<CurrencyRevenue[]> {
  const rows = await loadRows<Texts<CurrencyRevenue>>(clickhouse, 'revenue by currency', {
    query: `select currency, toString(sum(usage)) as usage_text, toString(sum(fixed)) as fixed_text,
                   toString(countIf(usage != 0 or fixed != 0)) as customers
              from (select customer_id, currency, sum(usage) as usage, sum(fixed) as fixed
                      from (${buildYearSums(query)}) group by customer_id, currency)
             group by currency having countIf(usage != 0 or fixed != 0) > 0 order by currency`,
    params: buildParams(scope, query),
    signal: query.signal,
    settings: WITHIN_YEARS,
  });
  return rows.map((row) => ({ currency: row.currency, customers: Number(row.customers), ...toAmounts(row) }));
}

export type WindowRevenue = Amounts & { readonly currency: string; readonly start: Milliseconds };

/** Loads the revenue by window, for windows with revenue. The windows begin at these instants; the first is the start of the range. */
export async function loadRevenueByWindow(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { starts, size, ...query }: RevenueQuery & { readonly starts: readonly Milliseconds[]; readonly size: WindowSize },
): Promise<WindowRevenue[]> {
  const rows = await loadRows<Texts<WindowRevenue> & { place: number }>(clickhouse, 'revenue by window', {
    query: `select currency, ${WINDOW_INDEX_BY_SIZE[size] ?? ANY_WINDOW_INDEX} as place, toString(sum(used)) as usage_text, toString(sum(paid)) as fixed_text
              from (select currency, earned_at, usage, fixed from ${buildRowsSource(query)} ${yearsWithin(query.range)})
             array join earned_at as at, usage as used, fixed as paid
             where at >= {start:DateTime64(3, 'UTC')} and at < {end:DateTime64(3, 'UTC')}
             group by currency, place
            having sum(used) != 0 or sum(paid) != 0
             order by currency, place`,
    params: { ...buildParams(scope, query), ...(WINDOW_INDEX_BY_SIZE[size] ? {} : { starts: starts.map(toTimeText) }) },
    signal: query.signal,
    settings: WITHIN_YEARS,
  });
  return rows.map((row) => ({ currency: row.currency, start: starts[row.place - 1]!, ...toAmounts(row) }));
}

export type RecurringMoves = {
  readonly currency: string;
  readonly start: Milliseconds;
  readonly opening: Decimal;
  readonly new: Decimal;
  readonly expansion: Decimal;
  readonly contraction: Decimal;
  readonly churn: Decimal;
  readonly closing: Decimal;
};

type MoveRow = { currency: string; place: number } & Record<'new' | 'expansion' | 'contraction' | 'churn', string>;

/**
 * Loads, for the time between each of these instants and the next, the recurring revenue just before it and its changes per customer. Only
 * windows in which a customer's recurring revenue begins or ends are read.
 */
export async function loadRecurringMoves(
  clickhouse: ClickHouseClient,
  scope: Scope,
  { instants, customer_ids, signal }: Omit<RevenueQuery, 'range'> & { readonly instants: readonly Milliseconds[] },
): Promise<RecurringMoves[]> {
  const sumIf = (what: string, condition: string) => `toString(sumIf(${what}, ${condition}))`;
  const rows = await loadRows<MoveRow>(clickhouse, 'moves of recurring revenue', {
    query: `select currency, step.1 as place,
                   ${sumIf('step.3', 'step.3 = step.2')} as new,
                   ${sumIf('step.2', 'step.2 > 0 and step.3 != step.2 and step.3 != 0')} as expansion,
                   ${sumIf('-step.2', 'step.2 < 0 and step.3 != step.2 and step.3 != 0')} as contraction,
                   ${sumIf('-step.2', 'step.3 = 0')} as churn
              from (select currency, arraySort(groupArray((place, delta))) as sorted,
                           arrayZip(sorted.1, sorted.2, arrayCumSum(sorted.2)) as steps
                      from (select customer_id, currency, sum(end.2) as delta,
                                   toUInt32(arrayCount(at -> at <= end.1, {instants:Array(DateTime64(3, 'UTC'))})) as place
                              from (select customer_id, currency, [(starts_at, monthly), (ends_at, -monthly)] as ends
                                      from recurring_revenue final
                                     where tenant_id = {tenant_id:String} and environment_id = {environment_id:String}
                                       and monthly != 0 ${buildCustomersCondition(customer_ids)})
                             array join ends as end
                             group by customer_id, currency, place
                            having delta != 0)
                     where place <= {windows:UInt32}
                     group by customer_id, currency)
             array join steps as step
             group by currency, place order by currency, place`,
    params: {
      tenant_id: scope.tenant_id,
      environment_id: scope.environment_id,
      instants: instants.map(toTimeText),
      windows: instants.length - 1,
      ...(customer_ids ? { customer_ids } : {}),
    },
    signal,
  });
  return Array.from(groupBy(rows, ({ currency }) => currency)).flatMap(([currency, of]) =>
    buildRecurringMoves(currency, { of, instants }),
  );
}

/**
 * Builds the changes of recurring revenue. Revenue from before the first instant is `new` in window 0, which only gives the opening total.
 */
function buildRecurringMoves(
  currency: string,
  { of, instants }: { of: readonly MoveRow[]; instants: readonly Milliseconds[] },
): RecurringMoves[] {
  const byPlace = new Map(of.map((row) => [row.place, row]));
  const movesAt = (place: number) => {
    const row = byPlace.get(place);
    const amount = (name: 'new' | 'expansion' | 'contraction' | 'churn') => new Decimal(row?.[name] ?? '0');
    return {
      new: amount('new'),
      expansion: amount('expansion'),
      contraction: amount('contraction'),
      churn: amount('churn'),
    };
  };
  let closing = movesAt(0).new;
  return instants.slice(0, -1).map((start, index) => {
    const opening = closing;
    const moves = movesAt(index + 1);
    closing = opening.plus(moves.new).plus(moves.expansion).minus(moves.contraction).minus(moves.churn);
    return { currency, start, opening, ...moves, closing };
  });
}

type Texts<Row> = Record<Exclude<keyof Row, keyof Amounts>, string> & { usage_text: string; fixed_text: string };

function toAmounts({ usage_text, fixed_text }: { usage_text: string; fixed_text: string }): Amounts {
  return { usage: new Decimal(usage_text), fixed: new Decimal(fixed_text) };
}

/**
 * Setting for tables that are partitioned by year: rows with equal keys have one year, so they are in one partition.
 */
const WITHIN_YEARS = { do_not_merge_across_partitions_select_final: 1 } as const;

/** SQL for the index of the window, from 1: by calendar functions if possible, which is fast. */
const WINDOW_INDEX_BY_SIZE: Partial<Record<WindowSize, string>> = {
  MONTH: `toUInt32(dateDiff('month', {start:DateTime64(3, 'UTC')}, at)) + 1`,
  DAY: `toUInt32(dateDiff('day', {start:DateTime64(3, 'UTC')}, at)) + 1`,
};
const ANY_WINDOW_INDEX = `toUInt32(arrayCount(start -> start <= at, {starts:Array(DateTime64(3, 'UTC'))}))`;

function buildRowsSource({ customer_ids }: RevenueQuery): string {
  return `revenue final
             where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} ${buildCustomersCondition(customer_ids)}`;
}

function yearsWithin({ start, end }: Period): string {
  return `and year between ${toYear(start)} and ${toYear(end - 1)}`;
}

/** Selects the sums of each row: for whole years the stored sums, for partial years the sums of the amounts earned in the range. */
function buildYearSums(query: RevenueQuery): string {
  const { start, end } = query.range;
  const years = Array.from({ length: toYear(end - 1) - toYear(start) + 1 }, (_, index) => toYear(start) + index);
  const isWhole = (year: number) => Date.UTC(year, 0, 1) >= start && Date.UTC(year + 1, 0, 1) <= end;
  const within = (column: string) =>
    `arraySum(arrayFilter((value, at) -> at >= {start:DateTime64(3, 'UTC')} and at < {end:DateTime64(3, 'UTC')}, revenue.${column}, earned_at)) as ${column}`;
  const whole = `select customer_id, currency, usage_of_year as usage, fixed_of_year as fixed from ${buildRowsSource(query)} and year in (${years.filter(isWhole).join()})`;
  const cut = `select customer_id, currency, ${within('usage')}, ${within('fixed')} from ${buildRowsSource(query)} and year in (${years.filter((year) => !isWhole(year)).join()})`;
  return [...(years.some(isWhole) ? [whole] : []), ...(years.every(isWhole) ? [] : [cut])].join(' union all ');
}

function buildCustomersCondition(customer_ids: readonly string[] | null): string {
  return customer_ids ? 'and customer_id in {customer_ids:Array(String)}' : '';
}

function buildParams({ tenant_id, environment_id }: Scope, { range, customer_ids }: RevenueQuery) {
  const { start, end } = range;
  return {
    tenant_id,
    environment_id,
    start: toTimeText(start),
    end: toTimeText(end),
    ...(customer_ids ? { customer_ids } : {}),
  };
}
