/** Which statements of a connection expire a recent change snapshot (docs/decisions/0007-cached-answers.md). */
import { expect } from 'chai';
import pg from 'pg';
import { countWrites, getOwnWrites, IN_NO_ANSWER } from '../../../storage/postgres/interceptors/own-writes.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const READ = 'select count(*) from customers';
const WRITE = 'update customers set name = name';
const SLICE = `update slices set phase = phase ${IN_NO_ANSWER}`;

/** Statements → how often the snapshot expires. */
const ROWS: [statements: string[], count: number][] = [
  [[READ], 0],
  [[WRITE], 1],
  [[WRITE, WRITE], 2],
  [[SLICE], 0],
  [['begin', READ, 'commit'], 0],
  [['begin', 'select id from customers for update', 'rollback'], 0],
  [['begin', WRITE, WRITE, 'commit'], 1],
  [['begin', WRITE, 'rollback'], 1],
  [['begin', SLICE, 'commit'], 0],
  [['begin', SLICE, WRITE, 'commit'], 1],
  [['begin', WRITE, 'savepoint a', READ, 'rollback to a', 'commit'], 1],
  [['begin', 'savepoint a', WRITE, 'release a', 'commit'], 1],
  [['start transaction isolation level repeatable read', WRITE, 'commit'], 1],
  // Twice where once is enough, but never too rarely.
  [[WRITE, 'begin', READ, 'commit'], 2],
  [[`begin; ${WRITE}`, 'commit'], 2],
  [['begin', WRITE, 'commit and chain', WRITE, 'commit'], 3],
  [[`with one as (select 1) ${WRITE}`], 1],
  [['with one as (select 1) select * from one'], 0],
  [['with recursive one as (select 1 as updated_at) select * from one'], 0],
  [['with one as (delete from customers returning id) select * from one'], 1],
  [['with one as (select 1) select * from one; delete from customers'], 1],
  [['begin', 'with one as (select 1) select * from one', 'commit'], 0],
  [[`${READ}; ${WRITE}`], 1],
  [[`-- a comment\n${WRITE}`], 1],
  // A failed statement counts: without an answer of the server it may have taken effect.
  [['update customers set no_such_column = 1'], 1],
  // A transaction that did not begin hides no write.
  [['begin isolation level of_no_kind', WRITE], 1],
];

describe('writes of a connection', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  for (const [statements, count] of ROWS)
    it(`${statements.join(' · ')}: ${count}`, async () => {
      const client = new pg.Client({ connectionString: database.postgres_url });
      await client.connect();
      // By a URL of its own: pools of the database count, too.
      const url = statements.join();
      countWrites(client, url);
      for (const text of statements) await client.query(text).catch(() => undefined);
      await client.end();
      expect(getOwnWrites(url).count).to.equal(count);
    });
}).timeout(60_000);
