/** Which statements can change what answers are made of: what is not plainly without effect can. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { readStatementEffect, type StatementEffect } from '../../../../storage/postgres/interceptors/effect.ts';
import { loadParser } from '../../../../storage/postgres/interceptors/parser.ts';

const STATEMENTS: Record<StatementEffect, readonly string[]> = {
  none: [
    'select 1',
    'select * from wallets for update skip locked',
    `select coalesce(a, 1), position('a' in b), extract(epoch from now()) from c`,
    'with a as (select 1) select * from a',
    'with a as (select * from unnest($1::int[])) insert into log_records (x) select * from a',
    'update log_partitions set committed_offset = $1 where partition = $2',
    'delete from log_records where partition = (select 1)',
    'savepoint a',
    'release savepoint a',
    'rollback to savepoint a',
    'set statement_timeout to 0',
    `select graphile_worker.add_job($1, payload := json_build_object('a', pg_catalog.now()))`,
    `notify a, 'b'`,
    'select 1; select 2',
  ],
  reads: [
    'select * from slices',
    'select (select max(next_offset) from public.slices) from wallets',
    'with a as (select rows from told_slices) select * from a',
    'select count(*) from slice_ledger; select 1',
    'update log_partitions p set committed_offset = s.next_offset from slices s where s.partition = p.partition',
    `update slices s set slice_from = 1, slice_to = 2, phase = 'raw', attempt = n.a, updated_at = now() from (select nextval('b') as a) as n`,
    `update slices set phase = 'buckets', rows_since = 1, is_wide = true, wide_slices = slices.wide_slices + 1`,
  ],
  moves: [
    'update slices set next_offset = 1',
    'with a as (update slices set next_offset = 1 returning *) update slices set phase = null',
    `with a as (update slices set next_offset = 1, watermark_us = 2, last_record = 3, phase = 'idle' returning *),
          b as (insert into slice_ledger select partition from a), c as (delete from told_slices) select to_json(a) from a`,
  ],
  begins: ['BEGIN;', 'begin isolation level repeatable read', 'start transaction'],
  ends: ['COMMIT;', 'end', 'ROLLBACK', `prepare transaction 'a'`, `commit prepared 'a'`],
  some: [
    'update wallets set balance = 1',
    'delete from wallets',
    'update slices set next_offset = 1, gate = null',
    'update slices set next_offset = 1, epoch = 2',
    'with a as (update slices set next_offset = 1 returning *) update wallets set balance = 1',
    'insert into slices (next_offset) values (1)',
    'update other.slices set next_offset = 1',
    'update slices set next_offset = other.move(1)',
    'commit and chain',
    'update slices set next_offset = 1; select 1',
    'update slices set phase = null, gate = null',
    'update slices set (phase, rebuilds) = (null, 1)',
    'delete from slices',
    'insert into wallets (id) values ($1)',
    'update other.log_records set x = 1',
    'with a as (insert into wallets (id) values (1) returning id) select * from a',
    'with a as (update wallets set x = 1 returning id) insert into log_records (x) select * from a',
    'select * into b from a',
    'select other.add_job($1)',
    'with a as (update wallets set x = 1 returning id) select graphile_worker.add_job(id) from a',
    'merge into wallets using a on true when matched then delete',
    'truncate log_records',
    'copy a from stdin',
    'create table log_records (a int)',
    'do $$ begin end $$',
    'call a()',
    'explain analyze update wallets set x = 1',
    'prepare a as update wallets set x = 1',
    'execute a',
    'select 1; update wallets set x = 1',
    'begin; update wallets set x = 1; commit',
    'this is no SQL',
    `select ${'1, '.repeat(4000)}1`,
  ],
};

describe('the effect of a statement', () => {
  before(() => loadParser());

  for (const [effect, texts] of Object.entries(STATEMENTS))
    for (const text of texts)
      it(`${effect}: ${text.slice(0, 90)}`, () => {
        expect(readStatementEffect(text)).to.equal(effect);
        // As it is kept.
        expect(readStatementEffect(text)).to.equal(effect);
      });

  it('is none of the functions of our schema: those that can be called write nothing', () => {
    const directory = new URL('../../../../sql/postgres/', import.meta.url);
    const text = readdirSync(directory)
      .map((name) => readFileSync(new URL(name, directory), 'utf8'))
      .join('\n');
    const made = [...text.matchAll(/create (?:or replace )?function\s+([\w%$]+)\s*\([^)]*\)\s*returns\s+(\w+)/gi)];
    const callable = new Set(made.filter(([, , returns]) => returns !== 'trigger').map(([, name]) => name));
    expect(made.length).to.equal([...text.matchAll(/create (?:or replace )?function/gi)].length);
    expect([...callable]).to.deep.equal(['revenue_happened_at']);
    expect(/create (?:or replace )?procedure/i.test(text)).to.equal(false);
    // What reads how far usage is counted names it.
    expect(/create (?:or replace )?(?:materialized )?view/i.test(text)).to.equal(false);
    // None of them is set off by a write to a table that is taken for one of no consequence.
    expect(
      /trigger[^;]*\son (log_records|log_partitions|log_consumers|job_ticks|slices|slice_ledger|told_slices)\b/i.test(
        text,
      ),
    ).to.equal(false);
  });
});
