/** A store that cannot be used is told at the start by the setting that names it, in one line and without its password. */
import { expect } from 'chai';
import { pino } from 'pino';
import { explain } from '../../process/explain.ts';
import { reachStores } from '../../process/reach-stores.ts';
import { connectClickHouse } from '../../storage/clickhouse/clickhouse.ts';
import { connectPostgres } from '../../storage/postgres/pool/postgres.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';

describe('the stores at the start', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  type Change = (url: URL) => void;
  const wrongPassword: Change = (url) => {
    url.password = 'another-secret';
  };
  const wrongDatabase: Change = (url) => {
    url.pathname = '/nowhere';
  };
  const nobodyThere: Change = (url) => {
    url.host = '127.0.0.1:1';
    url.searchParams.delete('host');
  };
  const asTheyAre: Change = () => {};

  const lastWords = async (postgresUrl: Change, clickhouseUrl: Change) => {
    const [to_postgres, to_clickhouse] = [new URL(database.postgres_url), new URL(database.clickhouse_url)];
    postgresUrl(to_postgres);
    clickhouseUrl(to_clickhouse);
    const postgres = connectPostgres(to_postgres.href, { pool_max: 1 });
    const clickhouse = connectClickHouse(to_clickhouse.href);
    const patience = { within_ms: 0, logger: pino({ level: 'silent' }) };
    try {
      return await reachStores({ postgres, clickhouse }, patience).then(() => 'both are there', explain);
    } finally {
      await Promise.all([postgres.destroy(), clickhouse.close()]);
    }
  };

  const CASES: [what: string, postgresUrl: Change, clickhouseUrl: Change, said: RegExp][] = [
    ['both as they are', asTheyAre, asTheyAre, /^both are there$/],
    ['another password of Postgres', wrongPassword, asTheyAre, /^configuration: DATABASE_URL: password authentication/],
    ['no such database of Postgres', wrongDatabase, asTheyAre, /^configuration: DATABASE_URL: database "nowhere" does/],
    ['nobody at the port of Postgres', nobodyThere, asTheyAre, /^configuration: DATABASE_URL: .*ECONNREFUSED 127.*:1$/],
    ['another password of ClickHouse', asTheyAre, wrongPassword, /^configuration: CLICKHOUSE_URL: .*[Aa]uthentication/],
    ['nobody at the port of ClickHouse', asTheyAre, nobodyThere, /^configuration: CLICKHOUSE_URL: .*ECONNREFUSED/],
  ];
  for (const [what, postgresUrl, clickhouseUrl, said] of CASES)
    it(what, async () => {
      const words = await lastWords(postgresUrl, clickhouseUrl);
      expect(words).to.match(said);
      expect(words).to.not.match(/another-secret|\n/);
    });
});
