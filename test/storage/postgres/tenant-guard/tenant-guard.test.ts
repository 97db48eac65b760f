// The second wall: what forgets its scope is not sent (docs/decisions/0022-tenant-isolation.md). The tables are those that Postgres
// knows, so that none escapes.
import { expect } from 'chai';
import type { Knex } from 'knex';
import { type RequestContext, runAs, runAsSystem } from '../../../../storage/foundation/request-context.ts';
import { checkBulkInsert } from '../../../../storage/postgres/tenant-guard/bulk-insert.ts';
import { checkStatement, type StatementVerdict } from '../../../../storage/postgres/tenant-guard/check-statement.ts';
import { loadParser } from '../../../../storage/postgres/tenant-guard/parser.ts';
import { listScopeColumns, UNSCOPED_TABLES } from '../../../../storage/postgres/tenant-guard/tables.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

const OWN: RequestContext = {
  scope: { tenant_id: 'tenant_own', environment_id: 'env_own' },
  user_id: 'user_own',
  secret_id: null,
  request_id: null,
};
const VALUES = { tenant_id: 'tenant_own', environment_id: 'env_own', other: 'tenant_other' };

describe('the wall before Postgres', () => {
  let database: FreshDatabase;
  let postgres: Knex;
  let tables: { name: string; columns: string[] }[];
  before(async () => {
    database = await freshDatabase();
    postgres = database.postgres;
    const { rows } = await postgres.raw(
      `select c.relname as name, array_agg(a.attname::text) as columns
         from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') group by 1 order by 1`,
    );
    tables = rows;
  });
  after(() => database.close());

  const asked = (sql: string, values: Record<string, unknown> = VALUES) =>
    runAs(OWN, async () => (await postgres.raw(sql, values as never)).rows);
  const refusal = async (sql: string, values?: Record<string, unknown>): Promise<string> => {
    try {
      await asked(sql, values);
    } catch (error) {
      return (error as Error).name;
    }
    return 'it was sent';
  };

  it('knows of every table whose its rows are', () => {
    const wrong = tables.filter(({ name, columns }) => {
      if (!columns.includes('tenant_id')) return !UNSCOPED_TABLES.has(name) && name !== 'tenants';
      if (UNSCOPED_TABLES.has(name)) return true;
      return listScopeColumns({ name }).some(({ column }) => !columns.includes(column));
    });
    expect(wrong.map(({ name }) => name)).to.deep.equal([]);
    expect(tables.filter(({ columns }) => columns.includes('tenant_id'))).to.have.lengthOf.above(20);
  });

  it('of no table a row is read, changed, taken away or written by who forgets the scope, or a part of it', async () => {
    const sent: string[] = [];
    for (const { name, columns } of tables) {
      const belonging = listScopeColumns({ name });
      const forgotten = belonging.map((left) =>
        belonging.filter((each) => each !== left).map(({ column, scope_column: holds }) => `${column} = :${holds}`),
      );
      for (const conditions of forgotten) {
        const where = conditions.length > 0 ? ` where ${conditions.join(' and ')}` : '';
        const first = columns.find((column) => !/tenant_id|environment_id|^id$/.test(column))!;
        const statements = [
          `select * from ${name}${where}`,
          `update ${name} set ${first} = ${first}${where}`,
          `delete from ${name}${where}`,
          `insert into ${name} (${first}) select ${first} from ${name}${where}`,
        ];
        for (const sql of statements) if ((await refusal(sql)) !== 'ForgottenScope') sent.push(sql);
      }
    }
    expect(sent).to.deep.equal([]);
  });

  it('of no table a row of another is read by who names it', async () => {
    for (const { name } of tables) {
      const belonging = listScopeColumns({ name });
      if (belonging.length === 0) continue;
      const where = belonging.map(({ column, scope_column: holds }) => `${column} = :${holds}`).join(' and ');
      const others = { ...VALUES, [belonging.at(-1)!.scope_column]: 'another' };
      expect(await refusal(`select 1 from ${name} where ${where}`, others), name).to.equal('ForgottenScope');
      expect(await asked(`select 1 from ${name} where ${where}`), name).to.deep.equal([]);
    }
  });

  it('a refused statement in a transaction undoes the others, and the connection is good for more', async () => {
    const deed = runAs(OWN, () =>
      postgres.transaction(async (transaction) => {
        await transaction('price_sequences').insert({ ...OWN.scope, entity_type: 'PLAN', entity_id: 'p', value: 1 });
        await transaction.raw('delete from price_sequences');
      }),
    );
    expect(await deed.catch((error: Error) => error.name)).to.equal('ForgottenScope');
    expect((await postgres.raw('select 1 from price_sequences')).rows).to.deep.equal([]);
  });

  it('who works for nobody is not held up, nor what is done for everybody', async () => {
    expect((await postgres.raw('select 1 from plans')).rows).to.deep.equal([]);
    const inside = runAs(OWN, () => runAsSystem(async () => postgres.raw('select 1 from plans')));
    expect((await inside).rows).to.deep.equal([]);
  });

  const SCOPED = 'tenant_id = $1 and environment_id = $2';
  const sent: [string, string][] = [
    [
      'a subquery with its own scope',
      `select 1 from plans where ${SCOPED} and id in (select entity_id from prices where ${SCOPED})`,
    ],
    [
      'a join on the scope',
      `select 1 from plans p join prices q on q.tenant_id = p.tenant_id and q.environment_id = p.environment_id
        where p.tenant_id = $1 and p.environment_id = $2`,
    ],
    [
      'a left join that says whose rows are joined',
      `select 1 from plans p left join prices q on q.tenant_id = $1 and q.environment_id = $2 where p.tenant_id = $1 and p.environment_id = $2`,
    ],
    ['both columns as one', 'select 1 from plans where (tenant_id, environment_id) = ($1, $2)'],
    ['a query that is named', `with own as (select * from plans where ${SCOPED}) select * from own`],
    [
      'a query inside that goes by the one outside',
      `select 1 from plans p where p.tenant_id = $1 and p.environment_id = $2
        and exists (select 1 from prices q where q.tenant_id = p.tenant_id and q.environment_id = p.environment_id)`,
    ],
    [
      'an upsert by a key of the scope',
      `insert into invoice_numbers (tenant_id, environment_id, token, last_number) values ($1, $2, 'x', 1)
        on conflict (tenant_id, environment_id, token) do update set last_number = 2`,
    ],
    [
      'what was read is written',
      `insert into plans (id, tenant_id, environment_id, name) select id, tenant_id, $2, name from plans where ${SCOPED}`,
    ],
    ['a table of nobody', 'select 1 from slices'],
    ['a table of the queue', 'select 1 from graphile_worker.jobs'],
  ];
  for (const [what, sql] of sent)
    it(`is passed by ${what}`, async () => {
      await loadParser();
      expect(checkStatement(sql)).to.have.property('demands');
    });

  const refused: [string, string][] = [
    ['OR', `select 1 from plans where ${SCOPED} or true`],
    ['NOT', `select 1 from plans where not (tenant_id = $1) and environment_id = $2`],
    ['another comparison', `select 1 from plans where tenant_id >= $1 and environment_id = $2`],
    ['a column that equals itself', 'select 1 from plans where tenant_id = tenant_id and environment_id = $2'],
    ['the scope in a comment', `select 1 from plans /* where ${SCOPED} */`],
    ['the scope in a text', `select 'where ${SCOPED}' from plans`],
    ['a value in the text', `select 1 from plans where tenant_id = 'tenant_own' and environment_id = 'env_own'`],
    [
      'a left join that keeps what does not match',
      `select 1 from plans p left join prices q on p.tenant_id = $1 and p.environment_id = $2 and q.tenant_id = $1 and q.environment_id = $2`,
    ],
    [
      'a full join',
      `select 1 from plans p full join prices q on p.tenant_id = $1 and p.environment_id = $2 and q.tenant_id = $1 and q.environment_id = $2`,
    ],
    ['the other half of a union', `select id from plans where ${SCOPED} union all select id from prices`],
    ['a subquery', `select (select max(id) from prices) from plans where ${SCOPED}`],
    ['a named query', `with all_of_them as (select * from plans) select * from all_of_them`],
    ['a query named like its table', `with plans as (select * from plans) select * from plans`],
    ['a change in a named query', `with gone as (delete from plans returning *) select * from gone`],
    ['a second statement', `select 1 from plans where ${SCOPED}; delete from plans`],
    [
      'an alias that hides the outer one',
      `select 1 from plans p where p.tenant_id = $1 and p.environment_id = $2 and exists (select 1 from prices p)`,
    ],
    [
      'an upsert over the row of another',
      `insert into plans (id, tenant_id, environment_id, name) values ('x', $1, $2, 'y') on conflict (id) do update set name = 'y'`,
    ],
    [
      'one row of several',
      `insert into plans (id, tenant_id, environment_id, name) values ('x', $1, $2, 'y'), ('z', default, $2, 'y')`,
    ],
    ['a move to another', `update plans set tenant_id = $3 where ${SCOPED}`],
    ['truncate', 'truncate plans'],
    ['copy', 'copy plans to stdout'],
    ['merge', `merge into plans p using prices q on p.id = q.entity_id when matched then delete`],
    ['code', `do $$ begin delete from plans; end $$`],
    ['a function that takes SQL', `select query_to_xml('select * from plans', true, true, '')`],
    ['the whole table', 'table plans'],
    ['a sample', 'select 1 from plans tablesample system (10)'],
    ['what cannot be read', 'select from from'],
    [
      'a lateral query',
      `select 1 from plans p, lateral (select * from prices q where q.entity_id = p.id) x where p.tenant_id = $1 and p.environment_id = $2`,
    ],
  ];
  for (const [what, sql] of refused)
    it(`is not passed by ${what}`, async () => {
      await loadParser();
      expect(checkStatement(sql)).to.have.property('rejected');
    });

  describe('many rows at once', () => {
    const row = (from: number) => `($${from}, DEFAULT, $${from + 1})`;
    const head = 'insert into "plans" ("tenant_id", "id", "environment_id") values ';

    it('are read as the parser reads them', async () => {
      await loadParser();
      const text = `${head}${Array.from({ length: 40 }, (_, i) => row(2 * i + 1)).join(', ')} returning *`;
      const places = (verdict: StatementVerdict | undefined) =>
        verdict && 'demands' in verdict ? verdict.demands.map(({ parameter }) => parameter).sort((a, b) => a - b) : [];
      expect(places(checkBulkInsert(text)))
        .to.deep.equal(places(checkStatement(text)))
        .and.to.have.lengthOf(80);
    });

    for (const [what, text] of [
      ['a row without a tenant', `${head}(DEFAULT, $1, $2)`],
      ['a table without the columns', 'insert into "plans" ("id") values ($1)'],
    ] as const)
      it(`are refused with ${what}`, () => expect(checkBulkInsert(text)).to.have.property('rejected'));

    for (const text of [
      `${head}($1, (select 1), $2)`,
      `${head}($1, $2, $3) on conflict do nothing`,
      `${head}($1, 'a', $2)`,
    ])
      it(`are left to the parser when they are written otherwise: ${text.slice(head.length)}`, () => {
        expect(checkBulkInsert(text)).to.equal(undefined);
      });
  });
});
