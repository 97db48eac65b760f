/**
 * Audit of the revenue rows: each equals the data of Postgres, customer by customer (docs/decisions/0017-revenue-rows.md). An
 * environment with pending changes is skipped and checked in a later audit.
 */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import { type RevenueRow, toRevenueKey } from '../../../core/invoicing/revenue/rows.ts';
import { listCustomersAfter, listScopes } from '../../../storage/audit/revenue.ts';
import {
  enqueueCustomersRevenue,
  hasPendingRevenue,
  raiseRevenueVersion,
} from '../../../storage/reporting/revenue/outbox.ts';
import {
  findGreatestVersion,
  listCustomersWithRows,
  loadStoredRecurring,
  loadStoredRevenue,
  type StoredRecurring,
  type StoredRevenue,
} from '../../../storage/reporting/revenue/rows.ts';
import { loadCustomersRecurring, loadCustomersRevenue, toRecurringKey } from '../../reporting/revenue/make-rows.ts';
import type { AuditStores, Finding, OnFinding } from './findings.ts';

type RevenueAuditCounts = { customers: number; rows: number };

const CUSTOMERS_AT_ONCE = 500;

export async function auditRevenue(stores: AuditStores, found: OnFinding): Promise<RevenueAuditCounts> {
  const counts = { customers: 0, rows: 0 };
  for (const scope of await listScopes(stores.postgres)) {
    for await (const customer_ids of allCustomers(stores, scope)) {
      counts.customers += customer_ids.length;
      const { rows, differing } = await compareRevenue(stores, scope, customer_ids);
      counts.rows += rows;
      if (differing.length === 0 || (await hasPendingRevenue(stores.postgres, scope))) continue;
      // The differing customers are compared again, because a row may have been written between the two reads.
      const second = await compareRevenue(
        stores,
        scope,
        differing.map(({ customer_id }) => customer_id),
      );
      for (const { finding } of second.differing) found(finding);
    }
  }
  return counts;
}

/** Enqueues all customers, so that their rows are recomputed; returns their number. */
export async function rebuildRevenue(stores: AuditStores): Promise<number> {
  await raiseRevenueVersion(stores.postgres, await findGreatestVersion(stores.clickhouse));
  let enqueued = 0;
  for (const scope of await listScopes(stores.postgres))
    for await (const customer_ids of allCustomers(stores, scope)) {
      await enqueueCustomersRevenue(stores.postgres, scope, customer_ids);
      enqueued += customer_ids.length;
    }
  return enqueued;
}

/** Yields the ids of all customers, including those that have rows but are unknown to Postgres. */
async function* allCustomers(stores: AuditStores, scope: Scope): AsyncGenerator<string[]> {
  for (let after = ''; ; ) {
    const page = { after, limit: CUSTOMERS_AT_ONCE };
    const known = await listCustomersAfter(stores.postgres, scope, page);
    const stored = await listCustomersWithRows(stores.clickhouse, scope, page);
    const some = [...new Set([...known, ...stored])].sort().slice(0, CUSTOMERS_AT_ONCE);
    if (some.length > 0) yield some;
    if (some.length < CUSTOMERS_AT_ONCE) return;
    after = some.at(-1)!;
  }
}

type RevenueDifference = { readonly customer_id: string; readonly finding: Finding };

async function compareRevenue(
  { postgres, clickhouse }: AuditStores,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<{ rows: number; differing: RevenueDifference[] }> {
  const [revenue, recurring, rows, lines] = await Promise.all([
    loadCustomersRevenue(postgres, scope, customer_ids),
    loadCustomersRecurring(postgres, scope, customer_ids),
    loadStoredRevenue(clickhouse, scope, customer_ids),
    loadStoredRecurring(clickhouse, scope, customer_ids),
  ]);
  const expected = {
    revenue: toTextByKey(revenue, toRevenueKey, (row) => revenueText({ ...row, ...sumCells(row) })),
    recurring: toTextByKey(recurring, toRecurringKey, (row) =>
      recurringText({ ...row, monthly: row.monthly.toFixed() }),
    ),
  };
  const stored = {
    revenue: toTextByKey(rows, toRevenueKey, revenueText),
    recurring: toTextByKey(lines, toRecurringKey, recurringText),
  };
  return {
    rows: rows.length + lines.length,
    differing: [
      ...listDifferences('revenue_differs', expected.revenue, stored.revenue, NO_REVENUE),
      ...listDifferences('recurring_revenue_differs', expected.recurring, stored.recurring, NOTHING_RECURS),
    ],
  };
}

const NO_REVENUE = '0 of usage and 0 of fixed charges';
const NOTHING_RECURS = '0 each month';

function sumCells({ cells }: RevenueRow): Pick<StoredRevenue, 'usage_of_year' | 'fixed_of_year'> {
  return {
    usage_of_year: sumDecimals(cells.map(({ usage }) => usage)),
    fixed_of_year: sumDecimals(cells.map(({ fixed }) => fixed)),
  };
}

function revenueText({ cells, usage_of_year, fixed_of_year }: StoredRevenue): string {
  const parts = cells.map(
    ({ earned_at, usage, fixed }) => ` (${formatMs(earned_at)}: ${usage.toFixed()} and ${fixed.toFixed()})`,
  );
  return `${usage_of_year.toFixed()} of usage and ${fixed_of_year.toFixed()} of fixed charges${parts.join('')}`;
}

function recurringText({ monthly, starts_at, ends_at }: StoredRecurring): string {
  const amount = new Decimal(monthly);
  if (amount.isZero()) return NOTHING_RECURS;
  return `${amount.toFixed()} each month from ${formatMs(starts_at)} to ${formatMs(ends_at)}`;
}

function toTextByKey<Row>(rows: readonly Row[], toKey: (row: Row) => string, toText: (row: Row) => string) {
  return new Map(rows.map((row) => [toKey(row), toText(row)]));
}

/** Lists the differences. An empty row and a missing row are equal. */
function listDifferences(
  kind: 'revenue_differs' | 'recurring_revenue_differs',
  expected: ReadonlyMap<string, string>,
  stored: ReadonlyMap<string, string>,
  nothing: string,
): RevenueDifference[] {
  return [...new Set([...expected.keys(), ...stored.keys()])].flatMap((key) => {
    const [should, is] = [expected.get(key) ?? nothing, stored.get(key) ?? nothing];
    const [customer_id] = JSON.parse(key) as [string];
    return should === is
      ? []
      : [{ customer_id, finding: { kind, count: 1, what: `${key} says ${is}, and should say ${should}` } }];
  });
}
