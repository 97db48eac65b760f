/**
 * A search among 100,000 customers, with as many of another tenant: whatever the text, it reads few rows of the large tables, and none
 * of the other tenant (docs/decisions/0023-indexes-and-statistics.md).
 */
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';
import { StatementRecorder } from '../support/read-rows.ts';

const MANY = 100_000;
/** Rows that a search may read of one table: some pages of results, and the candidates of a few trigrams. */
const READ_MAX = 2_000;

describe('a search among 100,000 customers', function () {
  this.timeout(300_000);
  let api: TestApi;
  let statements: StatementRecorder;

  before(async () => {
    api = await startTestApi();
    const other = await api.otherTenant();
    const { postgres } = api.services;
    for (const [letter, scope] of Object.entries({ a: api.scope, b: other.scope }))
      await postgres.raw(
        `insert into customers (id, tenant_id, environment_id, external_id, name, email, created_at)
         select 'cust_' || :letter || n, :tenant_id, :environment_id, 'ext-' || n,
                initcap(substr(md5((n * 7)::text), 1, 7)) || ' ' || initcap(substr(md5((n * 13)::text), 1, 9)) || ' GmbH',
                'billing' || n || '@' || substr(md5((n * 3)::text), 1, 8) || '.example',
                '2026-01-01T00:00:00Z'::timestamptz + n * interval '1 second'
           from generate_series(1, :many) as n`,
        { ...scope, letter, many: MANY },
      );
    await postgres.raw('vacuum analyze customers');
    statements = await StatementRecorder.open(postgres);
  });
  after(async () => {
    await statements.close();
    await api.stop();
  });

  const texts: [what: string, text: string, found: boolean][] = [
    ['an external id', 'ext-77777', true],
    ['the beginning of many external ids', 'ext', true],
    ['the beginning of many emails', 'billing1', true],
    ['an email', 'BILLING4242@', true],
    ['a part of every name', 'gmbh', true],
    ['a part of no name', 'zzzq', false],
    ['a part of few names', 'abcd', true],
    ['one letter', 'b', true],
    ['two letters that begin no name', 'zz', false],
    ['an unknown id', 'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X', false],
    ['the beginning of an unknown id', 'cust_01JZ8K', false],
    ['the beginning of any id', 'cust_0', false],
    ['literal signs', '%_%', false],
  ];
  for (const [what, text, isFound] of texts)
    it(`by ${what}`, async () => {
      const path = `/search?q=${encodeURIComponent(text)}` as '/search?q=text';
      const { result, statements: sent } = await statements.during((request_id) =>
        api.request('GET', path, { headers: { 'X-Request-ID': request_id } }),
      );
      expect(result.status, result.text).to.equal(200);
      expect(result.body.items.length > 0).to.equal(isFound);
      const search = sent.filter(({ sql }) => /union all/.test(sql));
      expect(search).to.have.length(1);
      const { reads } = await statements.explain(search[0]!);
      for (const { table, way, rows } of reads) expect(rows, `${table}: ${way}`).to.be.at.most(READ_MAX);
    });
});
