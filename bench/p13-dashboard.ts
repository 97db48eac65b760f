/**
 * P13: the revenue dashboard over HTTP, for three years of 100,000 customers with an invoice every month: all customers, a page of them,
 * the chart by months, and the recurring revenue of each month, one request after the other. The rows are written in blocks as the job
 * writes them, and some are written twice. `--customers=100000 --years=3 --requests=60`.
 */
import { Decimal } from '../core/foundation/decimal.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import type { RevenueDashboard } from '../test/support/answers.ts';
import { startTestApi, type TestApi } from '../test/support/api.ts';
import { cpuOfTree } from './cpu.ts';
import { check, claim, fixed, flag, quantile, say } from './report.ts';

const MUST_MS = 500;
const FIRST_YEAR = 2024;
const BEGIN = `${FIRST_YEAR}-01-01`;
const MONTHS = 12;

export async function run(): Promise<void> {
  const size = { customers: flag('customers', 100_000), years: flag('years', 3) };
  const requests = flag('requests', 60);
  const api = await startTestApi({ now: '2027-01-01T00:00:00Z' });
  try {
    await makeCustomers(api, size.customers);
    const began = performance.now();
    await makeRows(api, size);
    say(`  ${size.customers * size.years} rows of ${MONTHS} months in ${fixed((performance.now() - began) / 1000)} s`);
    const asked = { period_start: `${BEGIN}T00:00:00Z`, period_end: `${FIRST_YEAR + size.years}-01-01T00:00:00Z` };
    const ask = async () => {
      const answer = await api.request('POST', '/dashboard/revenue-dashboard', { body: asked });
      check(answer.status === 200, answer.text);
      return answer.body;
    };
    checkAnswer(await ask(), size);
    const took: number[] = [];
    const cpu = cpuOfTree([process.pid]);
    for (let index = 0; index < requests; index++) {
      const since = performance.now();
      await ask();
      took.push(performance.now() - since);
    }
    say(
      `  CPU of node and both stores: ${fixed(((cpuOfTree([process.pid]) - cpu) / requests) * 1000, 0)} ms a request`,
    );
    const [middle, p99] = [quantile(took, 0.5), quantile(took, 0.99)];
    const name = `the revenue dashboard of ${size.customers} customers and ${size.years} years, p99`;
    claim(name, `${fixed(p99, 0)} ms, median ${fixed(middle, 0)} ms`, `${MUST_MS} ms`, p99 <= MUST_MS);
  } finally {
    await api.stop();
  }
}

type Size = { readonly customers: number; readonly years: number };

async function makeCustomers({ services, scope }: TestApi, customers: number): Promise<void> {
  await services.postgres.raw(
    `insert into customers (id, tenant_id, environment_id, external_id, name)
     select 'cust_' || lpad(n::text, 26, '0'), ?, ?, 'customer ' || n, 'Customer ' || n from generate_series(0, ? - 1) as n`,
    [scope.tenant_id, scope.environment_id, customers],
  );
}

/** In each month customer n is charged $10 for usage, and one dollar per full hundred in n as a fixed price. */
async function makeRows({ services, scope }: { services: Stores; scope: TestApi['scope'] }, size: Size): Promise<void> {
  const { clickhouse } = services;
  const put = (query: string) =>
    clickhouse.command({ query, clickhouse_settings: { max_partitions_per_insert_block: '0' } });
  const own = `'${scope.tenant_id}', '${scope.environment_id}'`;
  const customer = `concat('cust_', leftPad(toString(number), 26, '0'))`;
  const monthly = (amount: string) => `arrayMap(month -> toDecimal128(${amount}, 4), range(${MONTHS}))`;
  const rowOf = (year: number, version: number) =>
    `insert into revenue (tenant_id, environment_id, customer_id, currency, year, earned_at, usage, fixed, usage_of_year, fixed_of_year, version)
     select ${own}, ${customer}, 'usd', ${year},
            arrayMap(month -> addMinutes(addMonths(toDateTime64('${year}-01-01 00:00:00', 3, 'UTC'), month), number % 40000), range(${MONTHS})),
            ${monthly('10')}, ${monthly('intDiv(number, 100)')}, 10 * ${MONTHS}, intDiv(number, 100) * ${MONTHS}, ${version}
       from numbers(${size.customers})`;
  // Writes the rows of each year in ten parts, as the job does. The rows of the last year are written a second time.
  for (let year = FIRST_YEAR; year < FIRST_YEAR + size.years; year++)
    for (let part = 0; part < 10; part++) await put(`${rowOf(year, 1)} where number % 10 = ${part}`);
  for (let part = 0; part < 10; part++)
    await put(`${rowOf(FIRST_YEAR + size.years - 1, 2)} where number % 100 = ${part}`);
  // Merges the parts of past years, as ClickHouse would have done long ago.
  for (let year = FIRST_YEAR; year < FIRST_YEAR + size.years - 1; year++)
    await put(`optimize table revenue partition ${year} final`);
  await put(
    `insert into recurring_revenue (tenant_id, environment_id, line_item_id, customer_id, currency, starts_at, ends_at, monthly, version)
     select ${own}, concat('line ', toString(number)), ${customer}, 'usd',
            addMonths(toDateTime64('${BEGIN} 00:00:00', 3, 'UTC'), number % ${MONTHS * size.years}), toDateTime64('2200-01-01 00:00:00', 3, 'UTC'), 20, 1
       from numbers(${size.customers})`,
  );
}

/** Checks every figure of the answer that follows from the written rows. */
function checkAnswer(answer: RevenueDashboard, size: Size): void {
  let hundreds = 0;
  for (let number = 0; number < size.customers; number++) hundreds += Math.floor(number / 100);
  const fixedRevenue = new Decimal(hundreds).times(size.years * MONTHS);
  const usage = new Decimal(size.customers).times(10).times(size.years * MONTHS);
  const { total_revenue, total_usage_revenue } = answer.summaries['usd']!;
  check(total_revenue === fixedRevenue.plus(usage).toFixed(), `total_revenue is ${total_revenue}`);
  check(total_usage_revenue === usage.toFixed(), `total_usage_revenue is ${total_usage_revenue}`);
  check(answer.items.length === Math.min(1000, size.customers), `${answer.items.length} customers`);
  check(answer.mrr['usd']!.mrr === String(size.customers * 20), `what recurs is ${answer.mrr['usd']!.mrr}`);
}
