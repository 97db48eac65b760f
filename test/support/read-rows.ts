/**
 * Measures the rows that Postgres reads for the statements of a piece of work. Each statement runs again with EXPLAIN
 * ANALYZE. Its plan shows the index used, and the number of rows read in each table.
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import pg from 'pg';
import { currentRequestContext } from '../../storage/foundation/request-context.ts';
import { readUrl } from '../../storage/postgres/pool/postgres.ts';

export type Statement = { readonly sql: string; readonly bindings: readonly unknown[] };

/** A table that a plan reads: `rows` is the number of rows read, including those that did not match. */
export type Read = { readonly table: string; readonly way: string; readonly rows: number };
type Explained = Statement & { readonly reads: readonly Read[]; readonly answered: number };

type Plan = {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Index Searches'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: Plan[];
};

export class StatementRecorder {
  readonly #postgres: Knex;
  readonly #beside: pg.Client;
  readonly #known = new Map<string, Explained>();

  private constructor(postgres: Knex, beside: pg.Client) {
    this.#postgres = postgres;
    this.#beside = beside;
  }

  /**
   * Sequential scans are off. The test has three scopes, so one scope is a third of each table, and Postgres may prefer
   * to read the whole table. In an installation with many tenants it would use an index.
   */
  static async open(postgres: Knex): Promise<StatementRecorder> {
    const beside = new pg.Client({ connectionString: readUrl(postgres) });
    await beside.connect();
    await beside.query('set enable_seqscan = off');
    return new StatementRecorder(postgres, beside);
  }

  close(): Promise<void> {
    return this.#beside.end();
  }

  /**
   * Returns the result of `work` and the statements of its request. `work` must send the request with `request_id` as `X-Request-ID`;
   * other statements of the process are not counted.
   */
  async during<Result>(
    work: (request_id: string) => Promise<Result>,
  ): Promise<{ result: Result; statements: Statement[] }> {
    const statements: Statement[] = [];
    const request_id = randomUUID();
    const note = ({ sql, bindings = [] }: { sql: string; bindings?: unknown[] }) => {
      if (currentRequestContext()?.request_id === request_id) statements.push({ sql, bindings });
    };
    this.#postgres.on('query', note);
    try {
      return { result: await work(request_id), statements };
    } finally {
      this.#postgres.removeListener('query', note);
    }
  }

  /** Explains a statement in Postgres, once for the same values. */
  async explain(statement: Statement): Promise<Explained> {
    const name = JSON.stringify(statement);
    const known = this.#known.get(name) ?? (await this.#ask(statement));
    this.#known.set(name, known);
    return known;
  }

  async #ask({ sql, bindings }: Statement): Promise<Explained> {
    const { rows } = await this.#beside.query(`explain (analyze, timing off, format json) ${sql}`, [...bindings]);
    const plan: Plan = rows[0]['QUERY PLAN'][0].Plan;
    return { sql, bindings, reads: readsIn(plan, undefined), answered: plan['Actual Rows'] };
  }
}

/** Lists all scans of a plan: a bitmap index scan may read more rows than the heap scan above it returns. */
function readsIn(plan: Plan, above: string | undefined): Read[] {
  const table = plan['Relation Name'] ?? above;
  const inner = (plan.Plans ?? []).flatMap((part) => readsIn(part, table));
  if (table === undefined || !/Scan/.test(plan['Node Type'])) return inner;
  const { 'Rows Removed by Filter': filtered = 0, 'Rows Removed by Index Recheck': rechecked = 0 } = plan;
  const found = Math.round((plan['Actual Rows'] + filtered + rechecked) * plan['Actual Loops']);
  // A skip scan searches the index once for each value of the skipped column.
  const rows = Math.max(found, plan['Index Searches'] ?? 0);
  return [{ table, way: `${plan['Node Type']} ${plan['Index Name'] ?? ''}`.trim(), rows }, ...inner];
}
