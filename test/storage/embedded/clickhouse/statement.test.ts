import { expect } from 'chai';
import { splitStatements } from '../../../../storage/clickhouse/tokens.ts';
import {
  insertFromFile,
  parseStatement,
  readIntoFile,
  withoutFormat,
} from '../../../../storage/embedded/clickhouse/statement.ts';

const at = { path: '/spool/f', format: 'RowBinary' };

describe('parseStatement', () => {
  const reads: [sql: string, format: string | undefined, without: string][] = [
    ['SELECT 1', undefined, 'SELECT 1'],
    ['SELECT 1 FORMAT JSON', 'JSON', 'SELECT 1  '],
    ['SELECT 1\nFORMAT JSONEachRow ; ', 'JSONEachRow', 'SELECT 1\n  '],
    ['select 1 format CSV settings max_threads = 1', 'CSV', 'select 1   settings max_threads = 1'],
    ['SELECT format FROM t', undefined, 'SELECT format FROM t'],
    ["SELECT 'a FORMAT b'", undefined, "SELECT 'a FORMAT b'"],
    ['SELECT (SELECT 1 FORMAT) FORMAT Native', 'Native', 'SELECT (SELECT 1 FORMAT)  '],
    ['(SELECT 1) UNION ALL (SELECT 2)', undefined, '(SELECT 1) UNION ALL (SELECT 2)'],
    ['-- why\nWITH 1 AS x SELECT x /* ; */ FORMAT TSV -- end', 'TSV', '-- why\nWITH 1 AS x SELECT x /* ; */   -- end'],
    ['SELECT \';\', `;`, ";", $$;$$, $x$ ; $$ $x$', undefined, 'SELECT \';\', `;`, ";", $$;$$, $x$ ; $$ $x$'],
    ["SELECT 'it''s', 'a\\';'", undefined, "SELECT 'it''s', 'a\\';'"],
  ];
  for (const [sql, format, without] of reads) {
    it(`reads: ${sql}`, () => {
      const statement = parseStatement(sql);
      expect([statement.kind, statement.format, withoutFormat(statement)]).to.deep.equal(['read', format, without]);
    });
  }

  const inserts: [sql: string, fromFile: string, data: string][] = [
    ['INSERT INTO t FORMAT RowBinary', "INSERT INTO t \nSELECT * FROM file('/spool/f', 'RowBinary')", ''],
    [
      'INSERT INTO t (a, b) FORMAT RowBinary\n\n\n;x',
      "INSERT INTO t (a, b) \nSELECT * FROM file('/spool/f', 'RowBinary')",
      '\n\n;x',
    ],
    [
      'INSERT INTO format SETTINGS async_insert = 0 FORMAT RowBinary {"a":1}\n\nDROP TABLE x',
      "INSERT INTO format SETTINGS async_insert = 0 \nSELECT * FROM file('/spool/f', 'RowBinary')",
      '{"a":1}\n\nDROP TABLE x',
    ],
    [
      "INSERT INTO d.`t` SELECT a FROM input('a UInt8, b String') WHERE b != 'FORMAT x' FORMAT RowBinary\r\nab",
      "INSERT INTO d.`t` SELECT a FROM file('/spool/f', 'RowBinary', 'a UInt8, b String') WHERE b != 'FORMAT x' ",
      'ab',
    ],
  ];
  for (const [sql, from_file, data] of inserts) {
    it(`takes data: ${JSON.stringify(sql)}`, () => {
      const statement = parseStatement(sql);
      expect([statement.kind, statement.format]).to.deep.equal(['insert', 'RowBinary']);
      expect(insertFromFile(statement, at)).to.equal(from_file);
      expect(sql.slice(statement.data_start)).to.equal(data);
    });
  }

  it('leaves inserts without data alone', () => {
    for (const sql of [
      'INSERT INTO t SELECT 1',
      "INSERT INTO t VALUES (1, 'a;b'), ({x:UInt8}, '')",
      'INSERT INTO t WITH 1 AS x SELECT x',
    ]) {
      expect(parseStatement(sql)).to.deep.equal({ kind: 'insert', text: sql });
    }
  });

  it('takes the values from the body when the text ends with VALUES', () => {
    expect(parseStatement('INSERT INTO t VALUES')).to.deep.include({
      text: 'INSERT INTO t ',
      format: 'Values',
      data_start: 20,
    });
  });

  it('puts the file between the statement and its settings', () => {
    const statement = parseStatement('SELECT 1 FORMAT JSON SETTINGS max_threads = 1');
    expect(readIntoFile(statement, { path: "/a'b", format: 'JSON' })).to.equal(
      "SELECT 1 \nINTO OUTFILE '/a\\'b' FORMAT JSON\n SETTINGS max_threads = 1",
    );
  });

  const refused: [sql: string, why: string][] = [
    ['SELECT 1; SELECT 2', 'Multi-statements'],
    ['SELECT 1;\n\nDROP TABLE t', 'Multi-statements'],
    ["INSERT INTO t VALUES ('a'); DROP TABLE t", 'Multi-statements'],
    ['INSERT INTO t SELECT 1; DROP TABLE t', 'Multi-statements'],
    ['CREATE TABLE t (a Int8) ENGINE = Memory; DROP TABLE t;', 'Multi-statements'],
    ["SELECT 'a; DROP TABLE t", 'not closed'],
    ['SELECT 1 /* ; DROP TABLE t', 'not closed'],
    ["SELECT 1 INTO OUTFILE '/etc/x'", 'INTO OUTFILE'],
    ["INSERT INTO t SELECT * FROM input('a Int8')", 'input() needs FORMAT'],
    ['  ', 'empty query'],
    ['-- nothing', 'empty query'],
  ];
  for (const [sql, why] of refused) {
    it(`refuses: ${sql}`, () => expect(() => parseStatement(sql)).to.throw(why));
  }

  it('reads a quoted text of millions of characters', () => {
    const sql = `SELECT '${"x\\'".repeat(2_000_000)}'`;
    expect(parseStatement(sql).text).to.have.length(sql.length);
  });
});

describe('splitStatements', () => {
  const cases: [sql: string, statements: string[]][] = [
    ['', []],
    ['-- only a comment;\n', []],
    ['A;B', ['A', 'B']],
    ["A ';\n' /* ;\n */ B;\n-- c;\nD;;\n", ["A ';\n' /* ;\n */ B", '-- c;\nD']],
  ];
  for (const [sql, statements] of cases) {
    it(JSON.stringify(sql), () => expect(splitStatements(sql)).to.deep.equal(statements));
  }
});
