/**
 * Audit of the rows of revenue: each says what Postgres has, customer by customer (docs/decisions/0017-revenue-rows.md). Of whom something
 * was told that is in no row yet nothing is said: it is looked at again when it is.
 */

import { Decimal, sumDecimals } from '../../core/decimal.ts';
import { type RevenueRow, toRevenueKey } from '../../core/revenue/rows.ts';
import type { Scope } from '../../core/scope.ts';
import { formatMs } from '../../core/time/instant.ts';
import { customersAfter, scopesOfCustomers } from '../../storage/audit/revenue.ts';
import { isRevenueTold, raiseRevenueVersion, tellCustomers } from '../../storage/revenue/outbox.ts';
import {
  customersWithRows,
  greatestVersion,
  type StoredRecurring,
  type StoredRevenue,
  storedRecurring,
  storedRevenue,
} from '../../storage/revenue/rows.ts';
import type { Stores } from '../../storage/stores.ts';
import { recurringKey, recurringOfCustomers, revenueOfCustomers } from '../revenue/make-rows.ts';
import type { Finding, Found } from './findings.ts';

type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;
type Looked = { customers: number; rows: number };

const CUSTOMERS_AT_ONCE = 500;

export async function auditRevenue(stores: AuditStores, found: Found): Promise<Looked> {
  const looked = { customers: 0, rows: 0 };
  for (const scope of await scopesOfCustomers(stores.postgres)) {
    for await (const customer_ids of allCustomers(stores, scope)) {
      looked.customers += customer_ids.length;
      const { rows, differing } = await differencesOf(stores, scope, customer_ids);
      looked.rows += rows;
      if (differing.length === 0 || (await isRevenueTold(stores.postgres, scope))) continue;
      // Looked at once more: a row may have been made between the two readings.
      const again = await differencesOf(
        stores,
        scope,
        differing.map(({ customer_id }) => customer_id),
      );
      for (const { finding } of again.differing) found(finding);
    }
  }
  return looked;
}

/** Makes the rows of all customers anew; answers how many they are. */
export async function rebuildRevenue(stores: AuditStores): Promise<number> {
  await raiseRevenueVersion(stores.postgres, await greatestVersion(stores.clickhouse));
  let told = 0;
  for (const scope of await scopesOfCustomers(stores.postgres))
    for await (const customer_ids of allCustomers(stores, scope)) {
      await tellCustomers(stores.postgres, scope, customer_ids);
      told += customer_ids.length;
    }
  return told;
}

/** Who has rows is among them, also where Postgres knows nobody of the name. */
async function* allCustomers(stores: AuditStores, scope: Scope): AsyncGenerator<string[]> {
  for (let after = ''; ; ) {
    const asked = { after, limit: CUSTOMERS_AT_ONCE };
    const known = await customersAfter(stores.postgres, scope, asked);
    const stored = await customersWithRows(stores.clickhouse, scope, asked);
    const some = [...new Set([...known, ...stored])].sort().slice(0, CUSTOMERS_AT_ONCE);
    if (some.length > 0) yield some;
    if (some.length < CUSTOMERS_AT_ONCE) return;
    after = some.at(-1)!;
  }
}

type Difference = { readonly customer_id: string; readonly finding: Finding };

async function differencesOf(
  { postgres, clickhouse }: AuditStores,
  scope: Scope,
  customer_ids: readonly string[],
): Promise<{ rows: number; differing: Difference[] }> {
  const [revenue, recurring, rows, lines] = await Promise.all([
    revenueOfCustomers(postgres, scope, customer_ids),
    recurringOfCustomers(postgres, scope, customer_ids),
    storedRevenue(clickhouse, scope, customer_ids),
    storedRecurring(clickhouse, scope, customer_ids),
  ]);
  const expected = {
    revenue: textsOf(revenue, toRevenueKey, (row) => revenueText({ ...row, ...sumsOf(row) })),
    recurring: textsOf(recurring, recurringKey, (row) => recurringText({ ...row, monthly: row.monthly.toFixed() })),
  };
  const stored = {
    revenue: textsOf(rows, toRevenueKey, revenueText),
    recurring: textsOf(lines, recurringKey, recurringText),
  };
  return {
    rows: rows.length + lines.length,
    differing: [
      ...compared('revenue_differs', expected.revenue, stored.revenue, NO_REVENUE),
      ...compared('recurring_revenue_differs', expected.recurring, stored.recurring, NOTHING_RECURS),
    ],
  };
}

const NO_REVENUE = '0 of usage and 0 of fixed charges';
const NOTHING_RECURS = '0 each month';

function sumsOf({ cells }: RevenueRow): Pick<StoredRevenue, 'usage_of_year' | 'fixed_of_year'> {
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

function textsOf<Row>(rows: readonly Row[], keyOf: (row: Row) => string, textOf: (row: Row) => string) {
  return new Map(rows.map((row) => [keyOf(row), textOf(row)]));
}

/** A row of nothing and no row say the same. */
function compared(
  kind: 'revenue_differs' | 'recurring_revenue_differs',
  expected: ReadonlyMap<string, string>,
  stored: ReadonlyMap<string, string>,
  nothing: string,
): Difference[] {
  return [...new Set([...expected.keys(), ...stored.keys()])].flatMap((key) => {
    const [should, is] = [expected.get(key) ?? nothing, stored.get(key) ?? nothing];
    const [customer_id] = JSON.parse(key) as [string];
    return should === is
      ? []
      : [{ customer_id, finding: { kind, count: 1, what: `${key} says ${is}, and should say ${should}` } }];
  });
}
