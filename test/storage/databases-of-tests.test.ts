/** Databases of tests in ClickHouse are used again (test/support/stores.ts): a test finds one as if it had just been made. */
import { expect } from 'chai';
import { migrateClickHouse } from '../../sql/migrate.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';

const WRITTEN = "INSERT INTO write_fences (writer, attempt) VALUES ('somebody', 7)";

describe('a database of a test', () => {
  /** What was done in one, and the next one. */
  async function after(statements: readonly string[]): Promise<{ used: string; next: FreshDatabase }> {
    const used = await freshDatabase();
    for (const query of statements) await used.clickhouse.command({ query });
    await used.close();
    return { used: used.clickhouse_url, next: await freshDatabase() };
  }
  const rowsOf = async ({ clickhouse }: FreshDatabase, table: string) => {
    const answer = await clickhouse.query({ query: `SELECT * FROM ${table}`, format: 'JSONEachRow' });
    return answer.json<Record<string, unknown>>();
  };

  it('is used again, without a row of before, and with nothing left to migrate', async () => {
    const { used, next } = await after([WRITTEN]);
    expect(next.clickhouse_url).to.equal(used);
    expect(await rowsOf(next, 'write_fences')).to.deep.equal([]);
    expect(await migrateClickHouse(next.clickhouse)).to.deep.equal([]);
    await next.close();
  });

  it('takes a row that was written before as a new one', async () => {
    const { next } = await after([WRITTEN]);
    await next.clickhouse.command({ query: WRITTEN });
    expect(await rowsOf(next, 'write_fences')).to.have.length(1);
    await next.close();
  });

  const changes: [string, string][] = [
    ['a table more', 'CREATE TABLE more (n UInt8) ENGINE = MergeTree ORDER BY n'],
    ['a table less', 'DROP TABLE write_fences SYNC'],
    ['no journal', 'DROP TABLE schema_migrations SYNC'],
    ['another column', 'ALTER TABLE write_fences ADD COLUMN more UInt8'],
    ['another journal', "INSERT INTO schema_migrations (name, position, checksum) VALUES ('9999-of-a-test', 9999, '')"],
  ];
  for (const [what, statement] of changes)
    it(`is not used again with ${what}`, async () => {
      const { used, next } = await after([statement]);
      expect(next.clickhouse_url).not.to.equal(used);
      await next.close();
    });
});
