import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  type ClickHouseClient,
  ClickHouseError,
  type ClickHouseSettings,
  createClient,
  TupleParam,
} from '@clickhouse/client';
import { expect } from 'chai';
import { testStores } from '../../../support/stores.ts';

/** The unmodified client against the served engine: nothing here may differ from a ClickHouse server. */
describe('the served ClickHouse engine', () => {
  let url: string;
  let client: ClickHouseClient;
  let database: string;

  before(async () => {
    url = (await testStores()).clickhouse_url;
    database = `served_${randomUUID().slice(0, 8)}`;
    const root = createClient({ url });
    await root.command({ query: `CREATE DATABASE ${database}` });
    await root.close();
    url = url.replace(/[^/]*$/, database);
    client = createClient({ url, log: { level: 127 } });
  });
  after(async () => {
    await client.command({ query: `DROP DATABASE ${database}` });
    await client.close();
  });

  const rows = async <Row>(query: string, options: object = {}): Promise<Row[]> =>
    (await client.query({ query, format: 'JSONEachRow', ...options })).json<Row>();
  const count = async (table: string) => Number((await rows<{ n: string }>(`SELECT count() AS n FROM ${table}`))[0]?.n);
  const table = async (columns: string, settings = '') => {
    const name = `t_${randomUUID().replaceAll('-', '')}`;
    await client.command({
      query: `CREATE TABLE ${name} (${columns}) ENGINE = MergeTree ORDER BY tuple() ${settings}`,
    });
    return name;
  };
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('must fail'),
      (error) => error as ClickHouseError,
    );

  describe('connections', () => {
    it('answers ping', async () => {
      expect((await client.ping()).success).to.equal(true);
      expect((await client.ping({ select: true })).success).to.equal(true);
    });

    it('refuses a wrong password and none', async () => {
      const wrong = new URL(url);
      wrong.password = 'wrong';
      for (const other of [wrong.href, `http://${wrong.host}`]) {
        const stranger = createClient({ url: other, log: { level: 127 } });
        const error = await failure(stranger.query({ query: 'SELECT 1' }));
        expect([error.code, error.type]).to.deep.equal(['516', 'AUTHENTICATION_FAILED']);
        await stranger.close();
      }
    });

    it('accepts the headers X-ClickHouse-User and X-ClickHouse-Key, and answers with the id of the query', async () => {
      const { origin, username, password } = new URL(url);
      const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password };
      const response = await fetch(`${origin}/?query=SELECT%201&query_id=mine`, { headers });
      expect([response.status, await response.text()]).to.deep.equal([200, '1\n']);
      expect(response.headers.get('x-clickhouse-query-id')).to.equal('mine');
      expect(JSON.parse(response.headers.get('x-clickhouse-summary') ?? '')).to.have.property('read_rows');
      const write = await fetch(`${origin}/?query=CREATE%20DATABASE%20x`, { headers });
      expect([write.status, write.headers.get('x-clickhouse-exception-code')]).to.deep.equal([403, '164']);
    });

    it('works in the database of the URL, and says when there is none', async () => {
      expect(await rows('SELECT currentDatabase() AS d')).to.deep.equal([{ d: database }]);
      const lost = createClient({ url: url.replace(/[^/]*$/, encodeURIComponent('no`such\\')), log: { level: 127 } });
      expect((await failure(lost.query({ query: 'SELECT 1' }))).type).to.equal('UNKNOWN_DATABASE');
      await lost.close();
    });
  });

  describe('bound parameters', () => {
    const moment = new Date('2025-03-01T12:34:56.789Z');
    const cases: [type: string, value: unknown, expected: unknown][] = [
      ['String', `it's "\\" \t\n\r\0 ; -- \u{1F600} {x:String}`, `it's "\\" \t\n\r\0 ; -- \u{1F600} {x:String}`],
      ['String', '', ''],
      ['String', 'DEFAULT', 'DEFAULT'],
      ['UInt64', '18446744073709551615', '18446744073709551615'],
      ['Int64', -9007199254740993n, '-9007199254740993'],
      ['Float64', 0.1, 0.1],
      [
        'Decimal(76, 24)',
        '1234567890123456789012345678901234567890.123456789012345678901234',
        '1234567890123456789012345678901234567890.123456789012345678901234',
      ],
      ['Bool', true, true],
      ['Date', '2025-01-31', '2025-01-31'],
      ["DateTime64(3, 'UTC')", moment, '2025-03-01 12:34:56.789'],
      ["DateTime64(6, 'UTC')", '2025-03-01 12:34:56.123456', '2025-03-01 12:34:56.123456'],
      ['Nullable(String)', null, null],
      ['Array(String)', ["a'b", 'c\\', 'd\n,]'], ["a'b", 'c\\', 'd\n,]']],
      ['Array(UInt32)', [], []],
      ['Map(String, UInt8)', { "k'": 1 }, { "k'": 1 }],
      ['Tuple(String, UInt8)', new TupleParam(["x'", 2]), ["x'", 2]],
      ['UUID', '61f0c404-5cb3-11e7-907b-a6006ad3dba0', '61f0c404-5cb3-11e7-907b-a6006ad3dba0'],
    ];
    for (const [type, value, expected] of cases) {
      it(`${type} ${JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part))}`, async () => {
        const query = `SELECT {v:${type}} AS v`;
        const clickhouse_settings = {
          output_format_json_quote_decimals: 1,
          output_format_json_quote_64bit_integers: 1,
          output_format_json_named_tuples_as_objects: 0,
        } as const;
        const options = { query_params: { v: value }, clickhouse_settings };
        expect(await rows(query, options)).to.deep.equal([{ v: expected }]);
        expect(await rows(query, { ...options, use_multipart_params: true })).to.deep.equal([{ v: expected }]);
      });
    }

    it('an identifier', async () => {
      const query = 'SELECT dummy FROM {database:Identifier}.{table:Identifier}';
      const answer = await rows(query, { query_params: { database: 'system', table: 'one' } });
      expect(answer).to.deep.equal([{ dummy: 0 }]);
    });

    it('a list of 50 000 values', async () => {
      const ids = Array.from({ length: 50_000 }, (_, index) => `id-'${index}`);
      const query =
        "SELECT toString(length({ids:Array(String)})) AS n, has({ids:Array(String)}, 'id-''49999') AS found";
      const answer = await rows(query, { query_params: { ids }, use_multipart_params_auto: true });
      expect(answer).to.deep.equal([{ n: '50000', found: 1 }]);
    });

    it('stay apart in 32 queries at a time', async () => {
      const work = Array.from({ length: 320 }, (_, index) =>
        rows<{ a: number; b: string }>('SELECT {a:UInt32} AS a, {b:String} AS b', {
          query_params: { a: index, b: `v${index}` },
        }),
      );
      const answers = await Promise.all(work);
      expect(answers.map(([row]) => row)).to.deep.equal(Array.from({ length: 320 }, (_, a) => ({ a, b: `v${a}` })));
    });

    it('do not reach the next query', async () => {
      await rows('SELECT {left:String} AS v', { query_params: { left: 'behind' } });
      for (let attempt = 0; attempt < 8; attempt += 1) {
        expect((await failure(rows('SELECT {left:String} AS v'))).type).to.equal('UNKNOWN_QUERY_PARAMETER');
      }
    });
  });

  describe('inserts', () => {
    it('JSONEachRow from an array, a stream and compressed, with blank lines and SQL in the values', async () => {
      const name = await table("a UInt32, s String DEFAULT 'none'");
      const evil = 'x\n\n; DROP TABLE t -- ';
      await client.insert({ table: name, values: [{ a: 1, s: evil }, { a: 2 }], format: 'JSONEachRow' });
      const more = Readable.from([
        { a: 3, s: evil },
        { a: 4, s: '' },
      ]);
      await client.insert({ table: name, values: more, format: 'JSONEachRow', columns: ['a', 's'] });
      const zipped = createClient({ url, compression: { request: true, response: true } });
      await zipped.insert({ table: name, values: [{ a: 5, s: evil }], format: 'JSONEachRow' });
      const result = await zipped.query({ query: `SELECT * FROM ${name} ORDER BY a`, format: 'JSONEachRow' });
      expect(await result.json()).to.deep.equal([
        { a: 1, s: evil },
        { a: 2, s: 'none' },
        { a: 3, s: evil },
        { a: 4, s: '' },
        { a: 5, s: evil },
      ]);
      await zipped.close();
    });

    it('never runs what stands behind a blank line of the data', async () => {
      const [victim, name] = [await table('a UInt8'), await table('a UInt8')];
      const lines = Buffer.from(`{"a":1}\n\nDROP TABLE ${victim}\n`);
      const query = `INSERT INTO ${name} FORMAT JSONEachRow`;
      await failure(client.exec({ query, values: Readable.from([lines]) }));
      await failure(client.command({ query: `${query} ${lines}` }));
      expect([await count(victim), await count(name)]).to.deep.equal([0, 0]);
    });

    it('RowBinary with line ends inside of the bytes, exactly', async () => {
      const name = await table('a UInt64, s String');
      const row = Buffer.from([0x0a, 0x0a, 0, 0, 0, 0x0a, 0x0a, 0x80, 6, 0x0a, 0x0a, 0x3b, 0xff, 0x00, 0x27]);
      const bytes = Buffer.concat(Array.from({ length: 1000 }, () => row));
      const { stream } = await client.exec({
        query: `INSERT INTO ${name} FORMAT RowBinary`,
        values: Readable.from([bytes.subarray(0, 7), bytes.subarray(7)], { objectMode: false }),
      });
      stream.resume();
      await once(stream, 'close');
      const query = `SELECT count() AS n, uniq(a, s) AS u, any(hex(reinterpretAsFixedString(a))) AS x, any(hex(s)) AS y FROM ${name}`;
      const [found] = await rows<object>(query, {
        clickhouse_settings: { output_format_json_quote_64bit_integers: 0 },
      });
      expect(found).to.deep.equal({ n: 1000, u: 1, x: '0A0A0000000A0A80', y: '0A0A3BFF0027' });
    });

    it('Native that was read from one table into another', async () => {
      const [from, to] = [await table('a UInt64, s String'), await table('a UInt64, s String')];
      await client.command({ query: `INSERT INTO ${from} SELECT number, unhex('0A0A3B0A0A') FROM numbers(2570)` });
      const { stream } = await client.exec({ query: `SELECT * FROM ${from} ORDER BY a FORMAT Native` });
      const written = await client.exec({ query: `INSERT INTO ${to} FORMAT Native`, values: stream as Readable });
      written.stream.resume();
      expect(JSON.parse(String(written.response_headers['x-clickhouse-summary'])).written_rows).to.equal('2570');
      const sum = 'SELECT sum(cityHash64(a, s)) AS h FROM';
      expect(await rows(`${sum} ${to}`)).to.deep.equal(await rows(`${sum} ${from}`));
    });

    it('without any row', async () => {
      const name = await table('a UInt64');
      for (const format of ['JSONEachRow', 'RowBinary', 'Native', 'TabSeparated']) {
        await client.exec({ query: `INSERT INTO ${name} FORMAT ${format}`, values: Readable.from([]) });
      }
      expect(await count(name)).to.equal(0);
    });

    it('is all or nothing: a bad row in the middle', async () => {
      const name = await table('a UInt8');
      const values = Readable.from([Buffer.from('{"a":1}\n{"a":"x"}\n{"a":3}\n')]);
      const error = await failure(client.exec({ query: `INSERT INTO ${name} FORMAT JSONEachRow`, values }));
      expect(error.type).to.equal('CANNOT_PARSE_INPUT_ASSERTION_FAILED');
      expect(await count(name)).to.equal(0);
    });

    it('VALUES in the text, with parameters, and in the body', async () => {
      const name = await table('a UInt8, s String');
      await client.command({
        query: `INSERT INTO ${name} VALUES (1, 'a\n\nb'),\n\n({a:UInt8}, {s:String})`,
        query_params: { a: 2, s: ';' },
      });
      await client.exec({ query: `INSERT INTO ${name} VALUES`, values: Readable.from([Buffer.from("(3, 'c\n\nd')")]) });
      expect(await rows(`SELECT * FROM ${name} ORDER BY a`)).to.deep.equal([
        { a: 1, s: 'a\n\nb' },
        { a: 2, s: ';' },
        { a: 3, s: 'c\n\nd' },
      ]);
    });
  });

  describe('tokens and deadlines', () => {
    const window = 'SETTINGS non_replicated_deduplication_window = 100';
    const insert = (name: string, values: object[], token?: string) =>
      client.insert({
        table: name,
        values,
        format: 'JSONEachRow',
        ...(token ? { clickhouse_settings: { insert_deduplication_token: token } } : {}),
      });

    it('keep the second insert of a token out', async () => {
      const name = await table('a UInt8', window);
      await insert(name, [{ a: 1 }], 'one');
      await insert(name, [{ a: 2 }], 'one');
      await insert(name, [{ a: 3 }], 'two');
      expect(await rows(`SELECT a FROM ${name} ORDER BY a`)).to.deep.equal([{ a: 1 }, { a: 3 }]);
    });

    it('do not stay for the insert after them', async () => {
      const name = await table('a UInt32', window);
      for (let round = 0; round < 25; round += 1) {
        await insert(name, [{ a: 2 * round }], `token-${round}`);
        await insert(name, [{ a: 2 * round + 1 }]);
      }
      expect(await count(name)).to.equal(50);
      expect(await rows("SELECT getSetting('insert_deduplication_token') AS t")).to.deep.equal([{ t: '' }]);
    });

    it('race: 40 inserts of one token leave one', async () => {
      const name = await table('a UInt32', window);
      await Promise.all(Array.from({ length: 40 }, (_, a) => insert(name, [{ a }], 'race')));
      expect(await count(name)).to.equal(1);
    });

    it('after the deadline nothing is written and the token is not used up', async () => {
      const name = await table('a UInt64, s String', window);
      const row = Buffer.from([0x0a, 0x0a, 0, 0, 0, 0, 0, 0, 2, 0x0a, 0x0a]);
      const write = async (deadline: string, token: string) => {
        const { stream, response_headers } = await client.exec({
          query:
            `INSERT INTO ${name} (a, s) SELECT a, s FROM input('a UInt64, s String') ` +
            `WHERE nowInBlock64(6) < {deadline:DateTime64(6, 'UTC')} FORMAT RowBinary`,
          query_params: { deadline },
          clickhouse_settings: { insert_deduplication_token: token },
          values: Readable.from([row]),
        });
        stream.resume();
        return JSON.parse(String(response_headers['x-clickhouse-summary'])).written_rows;
      };
      expect(await write('2020-01-01 00:00:00', 'late')).to.equal('0');
      expect(await count(name)).to.equal(0);
      expect(await write('2100-01-01 00:00:00', 'late')).to.equal('1');
      await write('2100-01-01 00:00:00', 'late');
      expect(await rows(`SELECT toUInt32(a) AS a, hex(s) AS s FROM ${name}`)).to.deep.equal([{ a: 2570, s: '0A0A' }]);
    });
  });

  describe('settings', () => {
    it('hold for their statement only', async () => {
      const read = "SELECT toString(getSetting('max_threads')) AS t, toString(getSetting('max_block_size')) AS b";
      const usual = await rows(read);
      const clickhouse_settings = { max_threads: 7, max_block_size: '11' };
      expect(await rows(read, { clickhouse_settings })).to.deep.equal([{ t: '7', b: '11' }]);
      const later = await Promise.all(Array.from({ length: 16 }, () => rows(read)));
      for (const answer of later)
        expect(answer)
          .to.deep.equal(usual)
          .and.not.deep.equal([{ t: '7', b: '11' }]);
    });

    it('are refused with a value that they do not take, whatever else is set', async () => {
      const clickhouse_settings = { max_block_size: 'many', max_threads: 7 } as ClickHouseSettings;
      const error = await failure(rows('SELECT 1', { clickhouse_settings }));
      expect(error.message).to.match(/many/);
    });

    it('with names that are none are refused, and cost nobody the place of a statement', async () => {
      for (let time = 0; time < 5; time++) {
        const error = await failure(rows('SELECT 1', { clickhouse_settings: { 'a-b': 1 } as ClickHouseSettings }));
        expect(error.message).to.contain('is not a name');
      }
      expect(await rows('SELECT 1 AS one')).to.deep.equal([{ one: 1 }]);
    });

    it('that do not exist are refused', async () => {
      const error = await failure(rows('SELECT 1', { clickhouse_settings: { no_such_setting: 1 } }));
      expect(error.type).to.equal('UNKNOWN_SETTING');
    });
  });

  describe('failures', () => {
    const cases: [sql: string, code: string, type: string, status: number][] = [
      ['SELECT FROM WHERE', '62', 'SYNTAX_ERROR', 400],
      ['SELECT 1; DROP TABLE x', '62', 'SYNTAX_ERROR', 400],
      ['SELECT * FROM no_such_table', '60', 'UNKNOWN_TABLE', 404],
      ['SELECT no_such_column', '47', 'UNKNOWN_IDENTIFIER', 404],
      ['SELECT no_such_function()', '46', 'UNKNOWN_FUNCTION', 404],
      ["SELECT throwIf(1, 'told so (really)')", '395', 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 500],
      ['INSERT INTO no_such_table VALUES (1)', '60', 'UNKNOWN_TABLE', 404],
      ['CREATE TABLE x (a Nonsense) ENGINE = Memory', '50', 'UNKNOWN_TYPE', 404],
    ];
    for (const [sql, code, type, status] of cases) {
      it(`${sql} → ${type}`, async () => {
        const error = await failure(client.command({ query: sql }));
        expect(error).to.be.instanceOf(ClickHouseError);
        expect([error.code, error.type]).to.deep.equal([code, type]);
        const { origin, username, password } = new URL(url);
        const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password };
        const response = await fetch(origin, { method: 'POST', body: sql, headers });
        expect([response.status, response.headers.get('x-clickhouse-exception-code')]).to.deep.equal([status, code]);
        await response.text();
      });
    }

    it('in the middle of a result reach the reader as what they are when it waits for the end', async () => {
      const query = 'SELECT throwIf(number = 900000) AS x FROM numbers(1000000)';
      const error = await failure(rows(query, { clickhouse_settings: { wait_end_of_query: 1 } }));
      expect(error.type).to.equal('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO');
    });

    it('in the middle of a stream reach the reader, and its connection ends', async () => {
      const query = 'SELECT throwIf(number = 900000) AS x FROM numbers(1000000)';
      const zipped = createClient({ url, compression: { response: true }, log: { level: 127 } });
      for (const reader of [client, zipped]) {
        const result = await reader.query({ query, format: 'JSONEachRow' });
        const read = async () => {
          for await (const _ of result.stream()) continue;
        };
        await failure(read());
        const raw = await reader.exec({ query: `${query} FORMAT RowBinary` });
        const readRaw = async () => {
          for await (const _ of raw.stream) continue;
        };
        await failure(readRaw());
      }
      await zipped.close();
    });

    it('by time', async () => {
      const query =
        'SELECT sleepEachRow(0.1) FROM numbers(30) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 10000000';
      const error = await failure(rows(query, { clickhouse_settings: { max_execution_time: 1 } }));
      expect(error.type).to.equal('TIMEOUT_EXCEEDED');
    });
  });

  describe('reads', () => {
    it('stream 100 000 rows, plain and compressed, waiting for the end and not', async () => {
      const zipped = createClient({ url, compression: { response: true } });
      for (const reader of [client, zipped]) {
        for (const wait_end_of_query of [0, 1] as const) {
          const query = 'SELECT number AS n, toString(number) AS s FROM numbers(100000)';
          const result = await reader.query({
            query,
            format: 'JSONEachRow',
            clickhouse_settings: { wait_end_of_query },
          });
          let seen = 0;
          for await (const batch of result.stream<{ n: number; s: string }>()) {
            for (const row of batch) {
              const { n, s } = row.json();
              if (Number(n) !== seen || s !== String(seen)) expect.fail(`row ${seen} is ${row.text}`);
              seen += 1;
            }
          }
          expect(seen).to.equal(100_000);
        }
      }
      await zipped.close();
    });

    it('answers one document whatever its length', async () => {
      const result = await client.query({ query: 'SELECT number AS n FROM numbers(200000)', format: 'JSON' });
      const { data, rows: length } = await result.json<{ n: number }>();
      expect([data.length, length]).to.deep.equal([200_000, 200_000]);
      const csv = await client.query({ query: 'SELECT number AS n FROM numbers(200000)', format: 'CSVWithNames' });
      expect((await csv.text()).match(/"n"/g)).to.have.length(1);
    });

    it('show, describe, exists, explain', async () => {
      await client.command({ query: 'CREATE TABLE IF NOT EXISTS shown (a UInt8) ENGINE = MergeTree ORDER BY a' });
      expect(await rows("SHOW TABLES LIKE 'shown'")).to.deep.equal([{ name: 'shown' }]);
      expect(await rows('EXISTS TABLE shown')).to.deep.equal([{ result: 1 }]);
      expect(await rows<{ name: string }>('DESCRIBE TABLE shown')).to.have.length(1);
      expect(await rows('EXPLAIN SELECT 1')).to.not.have.length(0);
    });

    it('ends a read whose reader has gone, and serves the next', async () => {
      const { hostname, port, username, password } = new URL(url);
      const sql =
        'SELECT sleepEachRow(0.05) FROM numbers(2000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 10000000 FORMAT JSON';
      const leavers = Array.from({ length: 8 }, () => {
        const headers = { 'X-ClickHouse-User': username, 'X-ClickHouse-Key': password };
        const leaver = request({ hostname, port, method: 'POST', headers });
        leaver.on('error', () => {});
        leaver.end(sql);
        return leaver;
      });
      const running = async () =>
        rows<{ n: string }>(
          "SELECT count() AS n FROM system.processes WHERE query LIKE '%sleepEachRow%' AND query NOT LIKE '%processes%'",
        );
      await once(leavers[0] as NodeJS.EventEmitter, 'socket');
      await new Promise((resolve) => setImmediate(resolve));
      for (const leaver of leavers) leaver.destroy();
      while (Number((await running())[0]?.n) > 0);
      expect(await rows('SELECT 1 AS a')).to.deep.equal([{ a: 1 }]);
    });

    it('compresses when it is asked to', async () => {
      const { hostname, port, username, password } = new URL(url);
      const headers = {
        'X-ClickHouse-User': username,
        'X-ClickHouse-Key': password,
        'Accept-Encoding': 'gzip',
        'Content-Encoding': 'gzip',
      };
      const sent = request({ hostname, port, method: 'POST', path: '/?enable_http_compression=1', headers });
      sent.end(gzipSync("SELECT 'zipped'"));
      const [response] = await once(sent, 'response');
      const pieces: Buffer[] = [];
      for await (const piece of response) pieces.push(piece);
      expect(response.headers['content-encoding']).to.equal('gzip');
      expect(gunzipSync(Buffer.concat(pieces)).toString()).to.equal('zipped\n');
    });
  });
});
