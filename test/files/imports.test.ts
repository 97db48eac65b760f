/** Imports: uploaded files of each kind, what becomes of their rows, and what is said of those that were refused. docs/rules/imports.md. */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { tryImport } from '../../actions/operations/imports/run-import.ts';
import { findTaskFaults } from '../../storage/audit/tasks.ts';
import { MESSAGE_BYTES_MAX } from '../../storage/log/kafka/appender.ts';
import type { EventLog } from '../../storage/log/log.ts';
import { purgeImportFiles } from '../../storage/models/operations/import-files.ts';
import type { Task } from '../support/answers.ts';
import { type FilesServer, startFilesServer } from '../support/files-server.ts';
import { startWorld, type World } from '../support/world.ts';

type Asked = { entity: string; type?: string; key?: string; headers?: Record<string, string> };

/** The log itself, which says first what it is asked. */
const told = (log: EventLog, tell: (name: string | symbol, given: unknown[]) => unknown): EventLog =>
  new Proxy(log, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return async (...given: unknown[]) => {
        await tell(name, given);
        return value.apply(target, given);
      };
    },
  });

describe('imports', () => {
  let world: World;
  let files: FilesServer;
  before(async () => {
    files = await startFilesServer();
    const config = { IMPORT_ALLOWED_ADDRESSES: '127.0.0.1', IMPORT_FILE_MAX_MB: '1' };
    world = await startWorld({ now: '2026-03-15T12:00:00Z', config });
    await world.meter('calls', { type: 'SUM', field: 'n' });
    await world.waitForPipeline();
  });
  after(async () => {
    await world.stop();
    await files.stop();
  });

  const upload = (file: string | Buffer, { entity, type = 'CSV', key, headers }: Asked) =>
    world.api.request('POST', `/tasks/upload?entity_type=${entity}&file_type=${type}&file_name=f.csv`, {
      body: Buffer.from(file as string),
      headers: { 'content-type': 'text/csv', ...headers },
      ...(key === undefined ? {} : { key }),
    });
  const run = (task: Task, change: object = {}, otherwise: object = {}) => {
    const { scope } = world.api;
    const services = { ...world.api.services, ...otherwise };
    const how = {
      attempt: 1,
      is_last: false,
      clock: services.clock,
      signal: AbortSignal.timeout(60_000),
      timeout_ms: 60_000,
    };
    return tryImport(
      services,
      { ...scope, workflow_id: task.workflow_id! },
      { ...how, settings: services.config, ...change },
    );
  };
  const taskOf = ({ id }: Task) => world.get(`/tasks/${id}`);
  const reportOf = async ({ id }: Task) =>
    (await world.api.request('GET', `/tasks/${id}/report`)).text.trimEnd().split('\r\n').slice(1);
  /** The task as it is when it is over, and its report. */
  async function imported(file: string | Buffer, asked: Asked) {
    const answer = await upload(file, asked);
    expect(answer.status, answer.text).to.equal(202);
    expect(answer.body.task_status).to.equal('PENDING');
    await run(answer.body);
    return { task: await taskOf(answer.body), report: await reportOf(answer.body) };
  }
  const counts = ({ task_status, total_records, processed_records, successful_records, failed_records }: Task) => [
    task_status,
    total_records,
    processed_records,
    successful_records,
    failed_records,
  ];
  async function usageOf(customer: string): Promise<string> {
    await world.waitForPipeline();
    const range = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };
    const asked = { event_name: 'calls', external_customer_id: customer, property_name: 'n', aggregation_type: 'SUM' };
    return (await world.post('/events/usage', { ...asked, ...range })).value;
  }

  it('429 while uploads of a gigabyte wait, until some are done', async () => {
    const file = 'external_id\nwaits\n';
    const first = await upload(file, { entity: 'CUSTOMERS' });
    await world.api.services
      .postgres('tasks')
      .where({ id: first.body.id })
      .update({ size_bytes: 1024 ** 3 });
    const refused = await upload(file, { entity: 'CUSTOMERS' });
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).to.deep.equal([
      429,
      'too_many_requests',
      '60',
    ]);
    await run(first.body);
    expect((await upload(file, { entity: 'CUSTOMERS' })).status).to.equal(202);
  });

  describe('events', () => {
    it('of CSV, a column for each property; what is wrong is reported by row', async () => {
      const file = [
        'event_name,external_customer_id,timestamp,event_id,properties.n,properties.region',
        'calls,csv,2026-03-01T00:00:00Z,e1,2.50,eu',
        'calls,csv,2026-03-01T00:00:01Z,e1,2.50,eu',
        ',csv,,e2,1,',
        'calls,csv,yesterday,e3,1,',
        'calls,csv,,,0.50,"a ""quoted"", cell"',
        'calls,csv',
      ].join('\n');
      const { task, report } = await imported(`\uFEFF${file}\n`, { entity: 'EVENTS' });
      expect(counts(task)).to.deep.equal(['COMPLETED', 6, 6, 2, 4]);
      const conflict =
        'event_id,already_exists,"event_id: an event with this id and other content was accepted before; to change it, replace it"';
      expect(report).to.deep.equal([
        `3,${conflict}`,
        '4,event_name,validation_error,event_name: is required',
        '5,timestamp,validation_error,timestamp: must be an RFC 3339 date-time such as 2026-01-31T10:00:00Z',
        '7,row,validation_error,"row: has 2 cells, and the header 6"',
      ]);
      expect(task.error_summary).to.equal(
        '4 of 6 records were refused: row 3: event_id: an event with this id and other content was accepted before; to change it, replace it; row 4: event_name: is required; row 5: timestamp: must be an RFC 3339 date-time such as 2026-01-31T10:00:00Z; the report has all',
      );
      expect(await usageOf('csv')).to.equal('3');
      const corrected = 'event_name,external_customer_id,timestamp,event_id,properties\n';
      const again = `${corrected}calls,csv,2026-03-01T01:00:00+01:00,e1,"{""n"":""2.50"",""region"":""eu""}"\ncalls,csv,2026-03-01T00:00:00Z,e1,"{""n"":3}"\n`;
      const second = await imported(again, { entity: 'EVENTS' });
      expect(second.report, 'the stored event and a row that repeats it').to.deep.equal([`3,${conflict}`]);
    });

    it('of JSON, as an array and a value in each line: numbers keep their digits', async () => {
      const event = (id: string, n: string) =>
        `{"event_id":"${id}","event_name":"calls","external_customer_id":"json","properties":{"n":${n}}}`;
      const array = `[${event('j1', '12345678901234567890.10')}, ${event('j2', '0.05')},\n 5, {"event_name":"x" "y"}]`;
      const first = await imported(array, { entity: 'EVENTS', type: 'JSON' });
      expect(counts(first.task)).to.deep.equal(['COMPLETED', 4, 4, 2, 2]);
      expect(first.report).to.deep.equal([
        '3,row,validation_error,row: must be a JSON object',
        '4,row,validation_error,row: must be valid JSON',
      ]);
      const lines = `${event('j3', '1')}\r\n\n${event('j1', '12345678901234567890.10')}\n{"event_nam":1}\n${event('j4', '1')}`;
      const second = await imported(lines, { entity: 'EVENTS', type: 'json' });
      expect(counts(second.task)).to.deep.equal(['COMPLETED', 4, 4, 3, 1]);
      expect(await usageOf('json')).to.equal('12345678901234567892.15');
    });

    it('those without an id count once, however often the file is read', async () => {
      const file = `event_name,external_customer_id,properties.n\n${'calls,once,1\n'.repeat(2_500)}`;
      const answer = await upload(file, { entity: 'EVENTS' });
      await world.api.services.postgres.raw(
        `create or replace function stop_import() returns trigger language plpgsql as $$
         begin if new.processed_records >= 2000 then raise exception 'away'; end if; return new; end $$;
         create trigger stop_import before update on tasks for each row execute function stop_import()`,
      );
      const failed = await run(answer.body).then(
        () => null,
        (error: Error) => error,
      );
      expect(failed?.message).to.match(/away/);
      await world.api.services.postgres.raw('drop trigger stop_import on tasks');
      expect((await taskOf(answer.body)).processed_records).to.equal(1_000);
      await run(answer.body);
      expect(counts(await taskOf(answer.body))).to.deep.equal(['COMPLETED', 2_500, 2_500, 2_500, 0]);
      expect(await usageOf('once')).to.equal('2500');
    });

    for (const [what, sign, type, count] of [
      ['JSON', 'x', 'JSON', 10],
      ['CSV of signs that take six bytes each', '\u0001', 'CSV', 3],
    ] as const)
      it(`rows of much text go into the log in pieces that it takes: ${what}`, async () => {
        const text = sign.repeat(900_000);
        const customer = `large-${type}`;
        const row = (id: number) => ({
          event_id: `${customer}-${id}`,
          event_name: 'calls',
          external_customer_id: customer,
          properties: { n: 1, text },
        });
        const rows = Array.from({ length: count }, (_, id) => row(id));
        const file =
          type === 'JSON'
            ? rows.map((one) => JSON.stringify(one)).join('\n')
            : `event_id,event_name,external_customer_id,properties.n,properties.text\n${rows
                .map(({ event_id }) => `${event_id},calls,${customer},1,"${text}"`)
                .join('\n')}`;
        const answer = await upload(file, { entity: 'EVENTS', type });
        const lengths: number[] = [];
        const log = told(world.api.services.log, (name, given) => {
          if (name === 'append') lengths.push(...(given[0] as { body: Buffer }[]).map(({ body }) => body.length));
        });
        await run(answer.body, {}, { log });
        expect(counts(await taskOf(answer.body))).to.deep.equal(['COMPLETED', count, count, count, 0]);
        expect(Math.max(...lengths)).to.be.below(MESSAGE_BYTES_MAX);
        expect(await usageOf(customer)).to.equal(String(count));
      });

    it('properties as JSON in a cell, as exports write them', async () => {
      const file =
        'event_id,event_name,external_customer_id,customer_id,timestamp,received_at,source,properties\n' +
        'x1,calls,cell,,2026-03-01T00:00:00Z,2026-03-01T00:00:01Z,,"{""n"": 0.10}"\n' +
        'x2,calls,cell,,2026-03-01T00:00:00Z,,,{broken\n';
      const { task, report } = await imported(file, { entity: 'EVENTS' });
      expect(counts(task)).to.deep.equal(['COMPLETED', 2, 2, 1, 1]);
      expect(report).to.deep.equal(['3,properties,validation_error,properties: must be JSON']);
      expect(await usageOf('cell')).to.equal('0.1');
    });
  });

  describe('records', () => {
    it('customers, with maps and lists; who is there already is reported', async () => {
      const file =
        'external_id,name,email,metadata.tier,metadata.a.b,tax_ids\n' +
        'c-1,First,first@example.com,gold,x,"[{""type"":""eu_vat"",""value"":""DE1""}]"\n' +
        'c-1,Again,,,,\n' +
        'c-2,=SUM(A1),no address,,,\n' +
        'c-3,true,,,,\n';
      const { task, report } = await imported(file, { entity: 'CUSTOMERS' });
      expect(report, task.error_summary!).to.deep.equal([
        '3,external_id,already_exists,a customer with external_id c-1 exists already',
        '4,email,validation_error,email: must be an email address',
      ]);
      expect(counts(task)).to.deep.equal(['COMPLETED', 4, 4, 2, 2]);
      const first = await world.get('/customers/external/c-1');
      expect(first).to.deep.include({ name: 'First', metadata: { tier: 'gold', 'a.b': 'x' } });
      expect((await world.get('/customers/external/c-3')).name).to.equal('true');
    });

    it('a row that is nested deep is refused, and those around it are taken', async () => {
      const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
      const rows = [1, 100_000, 65, 2].map(
        (levels, at) => `{"external_id":"deep-${at}","tax_rate_overrides":${nested(levels)}}`,
      );
      rows[0] = '{"external_id":"deep-0","metadata":{"a":"1"}}';
      rows[3] = '{"external_id":"deep-3"}';
      const { task, report } = await imported(rows.join('\n'), { entity: 'CUSTOMERS', type: 'JSON' });
      expect(counts(task)).to.deep.equal(['COMPLETED', 4, 4, 2, 2]);
      expect(report).to.deep.equal(
        [2, 3].map((row) => `${row},row,validation_error,row: is nested deeper than 64 levels`),
      );
      // In a cell it is no JSON that anybody means.
      const cell = `external_id,tax_rate_overrides\ndeep-4,"${nested(65).replaceAll('"', '""')}"\ndeep-5,`;
      const csv = await imported(cell, { entity: 'CUSTOMERS' });
      expect(counts(csv.task)).to.deep.equal(['COMPLETED', 2, 2, 1, 1]);
    });

    it('features with their meters, and prices', async () => {
      const features = JSON.stringify([
        {
          name: 'Imported',
          lookup_key: 'imported',
          type: 'metered',
          meter: { name: 'I', event_name: 'i', aggregation: { type: 'COUNT' } },
        },
        { name: 'Bad', type: 'metered', meter: { name: 'I', event_name: 'i', aggregation: { type: 'SUM' } } },
        { name: 'Misspelt', type: 'boolean', lokup_key: 'x' },
      ]);
      const made = await imported(features, { entity: 'FEATURES', type: 'JSON' });
      expect(counts(made.task)).to.deep.equal(['COMPLETED', 3, 3, 1, 2]);
      expect(made.report.map((line) => line.split(',')[1])).to.deep.equal(['meter.aggregation.field', 'lokup_key']);
      const [feature] = (await world.get('/features?lookup_key=imported')).items;
      const { id: plan_id } = await world.post('/plans', { name: 'Imported' });
      const prices =
        'entity_type,entity_id,type,billing_model,tier_mode,tiers,amount,currency,billing_period,invoice_cadence,meter_id,lookup_key\n' +
        `PLAN,${plan_id},FIXED,FLAT_FEE,,,12.340,usd,MONTHLY,ADVANCE,,imported-base\n` +
        `PLAN,${plan_id},USAGE,TIERED,SLAB,"[{""up_to"":10,""unit_amount"":""0.1""},{""up_to"":null,""unit_amount"":""0.05""}]",,usd,MONTHLY,ARREAR,${feature!.meter_id},\n` +
        `PLAN,plan_none,FIXED,FLAT_FEE,,,1,usd,MONTHLY,ADVANCE,,\n` +
        `PLAN,${plan_id},FIXED,FLAT_FEE,,,1,usd,MONTHLY,ADVANCE,,imported-base\n`;
      const { task, report } = await imported(prices, { entity: 'PRICES' });
      expect(
        report.map((line) => line.split(',').slice(0, 3).join()),
        report.join('\n'),
      ).to.deep.equal(['4,entity_id,not_found', '5,lookup_key,already_exists']);
      expect(counts(task)).to.deep.equal(['COMPLETED', 4, 4, 2, 2]);
      expect((await world.get('/prices/lookup/imported-base')).amount).to.equal('12.34');
    });

    it('each once, where a run breaks off', async () => {
      const file = `external_id\n${Array.from({ length: 40 }, (_, i) => `r-${i}`).join('\n')}\n`;
      const answer = await upload(file, { entity: 'CUSTOMERS' });
      const stopped = AbortSignal.abort(new Error('the process ends'));
      expect(await run(answer.body, { signal: stopped }).catch((error: Error) => error.message)).to.equal(
        'the process ends',
      );
      await Promise.all([run(answer.body).catch(() => {}), run(answer.body).catch(() => {})]);
      await run(answer.body);
      expect(counts(await taskOf(answer.body))).to.deep.equal(['COMPLETED', 40, 40, 40, 0]);
    });
  });

  describe('a file that cannot be read', () => {
    const ROWS: [what: string, file: string | Buffer, asked: Asked, why: RegExp, taken: number][] = [
      ['no rows', 'event_name,external_customer_id\n', { entity: 'EVENTS' }, /file: holds no records/, 0],
      ['blanks alone', ' \n ', { entity: 'EVENTS', type: 'JSON' }, /holds no records/, 0],
      ['an unknown column', 'event_name,costumer\na,b\n', { entity: 'EVENTS' }, /costumer: is no column/, 0],
      ['a column twice', 'external_id,external_id\na,b\n', { entity: 'CUSTOMERS' }, /external_id: stands twice/, 0],
      ['a column without a name', 'external_id,\na,b\n', { entity: 'CUSTOMERS' }, /column 2 has no name/, 0],
      [
        'a map and a part of it',
        'external_id,metadata,metadata.a\na,,b\n',
        { entity: 'CUSTOMERS' },
        /stands beside metadata/,
        0,
      ],
      [
        'no UTF-8 behind good rows',
        Buffer.concat([
          Buffer.from('external_id,name\nl-1,ö\nl-2,b\nl-3,J'),
          Buffer.from([0xfc]),
          Buffer.from('rgen\n'),
        ]),
        { entity: 'CUSTOMERS' },
        /line 4: is not UTF-8: save the file as UTF-8/,
        2,
      ],
      ['packed', gzipSync('external_id\na\n'), { entity: 'CUSTOMERS' }, /packed with gzip: send it unpacked/, 0],
      ['semicolons', 'external_id;name\na;b\n', { entity: 'CUSTOMERS' }, /must be separated by commas/, 0],
      [
        'a quote that stays open',
        'external_id,name\nq-1,a\nq-2,"b\n',
        { entity: 'CUSTOMERS' },
        /row 3: a quote is not closed/,
        1,
      ],
      [
        'an array that does not end',
        '[{"external_id":"q-3"},',
        { entity: 'CUSTOMERS', type: 'JSON' },
        /row 2: the array does not end/,
        1,
      ],
      [
        'something behind it',
        '[{"external_id":"q-4"}] 5',
        { entity: 'CUSTOMERS', type: 'JSON' },
        /stands behind the array/,
        1,
      ],
      [
        'a row of any length',
        `[{"external_id":"${'x'.repeat(1_100_000)}`,
        { entity: 'CUSTOMERS', type: 'JSON' },
        /longer than 1048576/,
        0,
      ],
    ];
    it('400 for bytes of another encoding', async () => {
      const answer = await upload(Buffer.from('external_id\n\x81\n', 'latin1'), { entity: 'CUSTOMERS' });
      expect([answer.status, answer.text], answer.text).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && text.includes('neither UTF-8 nor Windows-1252'),
      );
    });
    for (const [what, file, asked, why, taken] of ROWS) {
      it(`FAILED: ${what}`, async () => {
        const { task } = await imported(file, asked);
        expect(task.task_status).to.equal('FAILED');
        expect(task.error_summary).to.match(why);
        expect(task.successful_records).to.equal(taken);
        const result = await world.get(`/tasks/result?workflow_id=${task.workflow_id}`);
        expect(result.message).to.match(why);
      });
    }
  });

  describe('a file of which pieces are gone', () => {
    const database = () => world.api.services.postgres;
    const DAY_MS = 86_400_000;
    const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);
    const piecesOf = async ({ id }: Task) =>
      (await database()('import_chunks').where({ task_id: id }).orderBy('seq').select('seq')).map(({ seq }) => seq);
    /** Each row counts 1000: of one that is cut 1, 10 or 100. Three pieces of 256 KiB. */
    const events = (customer: string) =>
      `event_id,event_name,external_customer_id,properties.n\n${Array.from(
        { length: 20_000 },
        (_, id) => `${customer}-${id},calls,${customer},1000`,
      ).join('\n')}\n`;

    for (const [what, gone] of [
      ['in the middle', 1],
      ['at its end', 2],
      ['at its beginning', 0],
    ] as const)
      it(`is not read: ${what}`, async () => {
        const answer = await upload(events(`gap-${gone}`), { entity: 'EVENTS' });
        expect(await piecesOf(answer.body)).to.deep.equal([0, 1, 2]);
        await database()('import_chunks').where({ task_id: answer.body.id, seq: gone }).del();
        expect(await run(answer.body)).to.equal('failed');
        const task = await taskOf(answer.body);
        expect(counts(task)).to.deep.equal(['FAILED', null, 0, 0, 0]);
        expect(task.error_summary).to.match(/file: is no longer stored: upload it again/);
      });

    it('while it is read: the rows before are taken, the one that is cut is not', async () => {
      const answer = await upload(events('torn'), { entity: 'EVENTS' });
      await database().raw(
        `create or replace function tear_file() returns trigger language plpgsql as $$
         begin delete from import_chunks where task_id = new.id and seq > 0; return null; end $$;
         create trigger tear_file after update of processed_records on tasks for each row when (new.processed_records > 0) execute function tear_file()`,
      );
      expect(await run(answer.body)).to.equal('failed');
      await database().raw('drop trigger tear_file on tasks');
      const task = await taskOf(answer.body);
      expect(task.task_status).to.equal('FAILED');
      expect(task.error_summary).to.match(/file: is not kept whole any more: 262144 of \d+ bytes are there/);
      expect(task.successful_records).to.be.greaterThan(1_000);
      expect(await usageOf('torn')).to.equal(String(task.successful_records * 1_000));
    });

    it('is fetched again where it is behind a URL', async () => {
      files.serve('/again.csv', 'external_id\nagain-1\n"');
      const what = { task_type: 'IMPORT', entity_type: 'CUSTOMERS', file_type: 'CSV' };
      const { body } = await world.api.request('POST', '/tasks', {
        body: { ...what, file_url: `${files.url}/again.csv` },
      });
      expect(await run(body)).to.equal('failed');
      await database()('import_chunks').where({ task_id: body.id }).del();
      await world.api.request('PUT', `/tasks/${body.id}/status`, { body: { task_status: 'PROCESSING' } });
      expect(await run(await taskOf(body))).to.equal('failed');
      expect((await taskOf(body)).error_summary).to.match(/row 3: a quote is not closed/);
      expect(files.requested_paths.filter((path) => path === '/again.csv')).to.have.length(2);
    });

    it('goes a week after somebody has begun to read it, and not while it may be read', async () => {
      const { body } = await upload('external_id\nkept-1\n"', { entity: 'CUSTOMERS' });
      const old = () =>
        database()('import_chunks')
          .where({ task_id: body.id })
          .update({ created_at: inDays(-9) });
      await old();
      await database()('import_files')
        .where({ task_id: body.id })
        .update({ used_at: inDays(-9) });
      await purgeImportFiles(database(), new Date());
      expect(await piecesOf(body), 'PENDING').to.deep.equal([0]);
      expect(await run(body)).to.equal('failed');
      await purgeImportFiles(database(), inDays(6.9));
      expect(await piecesOf(body), 'its pieces are old, and it was read a moment ago').to.deep.equal([0]);
      await world.api.request('PUT', `/tasks/${body.id}/status`, { body: { task_status: 'PROCESSING' } });
      await purgeImportFiles(database(), inDays(30));
      expect(await piecesOf(body), 'PROCESSING').to.deep.equal([0]);
      expect(await run(await taskOf(body))).to.equal('failed');
      await purgeImportFiles(database(), inDays(7.1));
      expect(await piecesOf(body)).to.deep.equal([]);
      expect(await database()('import_files').where({ task_id: body.id })).to.deep.equal([]);
    });

    it('who is stopped while waiting for room appends nothing more', async () => {
      const { body } = await upload(events('stopped'), { entity: 'EVENTS' });
      const { services } = world.api;
      const asked: (string | symbol)[] = [];
      const log = told(services.log, async (name) => {
        asked.push(name);
        if (name !== 'lag') return;
        await world.api.request('PUT', `/tasks/${body.id}/status`, { body: { task_status: 'FAILED' } });
      });
      expect(await run(body, {}, { log })).to.equal('failed');
      expect(asked).to.include('lag').and.not.include('append');
      expect(await usageOf('stopped')).to.equal('0');
    });
  });

  describe('a file behind a URL', () => {
    async function ask(path: string) {
      const what = { task_type: 'IMPORT', entity_type: 'CUSTOMERS', file_type: 'CSV', metadata: { from: 'test' } };
      const body = { ...what, file_url: files.url + path };
      const answer = await world.api.request('POST', '/tasks', { body });
      expect(answer.status, answer.text).to.equal(202);
      return answer.body;
    }

    it('is fetched, and told with its digest', async () => {
      files.serve('/customers.csv', 'external_id\nu-1\nu-2\n');
      const asked = await ask('/customers.csv');
      expect(asked).to.include({ task_status: 'PENDING', sha256: null, file_name: null });
      expect(await run(asked)).to.equal('completed');
      const task = await taskOf(asked);
      expect(counts(task)).to.deep.equal(['COMPLETED', 2, 2, 2, 0]);
      expect(task).to.deep.include({
        size_bytes: 20,
        metadata: { from: 'test' },
        file_url: `${files.url}/customers.csv`,
      });
      expect(task.sha256).to.match(/^[0-9a-f]{64}$/);
    });

    it('is asked for once: who goes on reads the same bytes', async () => {
      files.serve('/changing.csv', 'external_id\nv-1\nv-2\n"');
      const asked = await ask('/changing.csv');
      expect(await run(asked)).to.equal('failed');
      files.serve('/changing.csv', 'external_id\nw-1\nw-2\n');
      await world.api.request('PUT', `/tasks/${asked.id}/status`, { body: { task_status: 'PROCESSING' } });
      expect(await run(await taskOf(asked))).to.equal('failed');
      expect((await taskOf(asked)).error_summary).to.match(/row 4: a quote is not closed/);
      expect(files.requested_paths.filter((path) => path === '/changing.csv')).to.have.length(1);
      // A week later it is gone, and another is not taken for it.
      await world.api.services.postgres.raw('delete from import_files where task_id = ?', [asked.id]);
      await world.api.request('PUT', `/tasks/${asked.id}/status`, { body: { task_status: 'PROCESSING' } });
      expect(await run(await taskOf(asked))).to.equal('failed');
      expect((await taskOf(asked)).error_summary).to.match(/another file than before/);
    });

    it('FAILED: it is not there, too long, or where nobody goes', async () => {
      files.serve('/long.csv', `external_id\n${'x'.repeat(1_048_576)}`);
      files.serve('/inward.csv', (response) => response.writeHead(302, { location: 'https://169.254.169.254/' }).end());
      for (const [path, why] of [
        ['/none.csv', 'file_url: 404 was answered'],
        ['/long.csv', 'file_url: the file is longer than 1048576 bytes'],
        ['/inward.csv', 'file_url: names a host that is not there, or that is at an address that is not public'],
      ] as const) {
        const asked = await ask(path);
        expect(await run(asked)).to.equal('failed');
        expect(await taskOf(asked)).to.include({ task_status: 'FAILED', error_summary: why });
      }
    });

    it('what may pass is tried again, and fails the task in the last try', async () => {
      files.serve('/failing.csv', (response) => response.writeHead(500).end());
      const asked = await ask('/failing.csv');
      expect(await run(asked).catch((error: Error) => error.message)).to.match(/500 was answered/);
      const trying = await taskOf(asked);
      expect(trying.task_status).to.equal('PROCESSING');
      expect(trying.error_summary).to.match(/500 was answered/);
      await run(asked, { is_last: true }).catch(() => {});
      expect((await taskOf(asked)).task_status).to.equal('FAILED');
    });

    it('what went wrong is told no more once it has succeeded', async () => {
      let times = 0;
      const csv = 'external_id\ntold-no-more\n';
      files.serve('/again.csv', (response) => (++times === 1 ? response.writeHead(500).end() : response.end(csv)));
      const asked = await ask('/again.csv');
      await run(asked).catch(() => {});
      expect((await taskOf(asked)).error_summary).to.match(/500 was answered/);
      await run(asked);
      expect(await taskOf(asked)).to.include({ task_status: 'COMPLETED', error_summary: null });
    });
  });

  it('stopped by hand it stops, and resumed it goes on', async () => {
    const answer = await upload('external_id\ns-1\ns-2\n', { entity: 'CUSTOMERS' });
    await world.api.request('PUT', `/tasks/${answer.body.id}/status`, { body: { task_status: 'FAILED' } });
    expect(await run(answer.body)).to.equal('failed');
    expect((await taskOf(answer.body)).processed_records).to.equal(0);
    const resumed = await world.api.request('PUT', `/tasks/${answer.body.id}/status`, {
      body: { task_status: 'PROCESSING' },
    });
    expect(resumed.status, resumed.text).to.equal(200);
    const task = await taskOf(answer.body);
    expect(task.workflow_id).not.to.equal(answer.body.workflow_id);
    expect(await run(task)).to.equal('completed');
    expect(counts(await taskOf(task))).to.deep.equal(['COMPLETED', 2, 2, 2, 0]);
  });

  it('stopped and resumed while a run is at work, that one leaves it to the one that was asked for last', async () => {
    const { body } = await upload('external_id\nagain-1\nagain-2\n', { entity: 'CUSTOMERS' });
    for (const task_status of ['FAILED', 'PROCESSING'])
      await world.api.request('PUT', `/tasks/${body.id}/status`, { body: { task_status } });
    expect([await run(body), (await taskOf(body)).task_status]).to.deep.equal(['failed', 'PROCESSING']);
    const task = await taskOf(body);
    expect([await run(task), counts(await taskOf(task))]).to.deep.equal(['completed', ['COMPLETED', 2, 2, 2, 0]]);
    const faults = await findTaskFaults(world.api.services.postgres, { ids: [body.id], limit: 10 });
    expect(faults).to.deep.equal([]);
  });

  for (const { entity, header, total, of } of [
    {
      entity: 'CUSTOMERS',
      header: 'external_id,name',
      total: 500,
      of: (row: number) => `turn-${row},"Zoë, ${'ü'.repeat(row % 200)}"`,
    },
    {
      entity: 'EVENTS',
      header: 'event_name,external_customer_id,event_id,properties.n',
      total: 6_000,
      of: (row: number) => `calls,turns,turn-${row},1`,
    },
  ])
    it(`whose place is wanted gives it up between two batches, and goes on behind them: ${entity}`, async () => {
      const rows = Array.from({ length: total }, (_, row) => (row % 100 === 7 ? 'refused' : of(row)));
      const { body } = await upload(`${header}\n${rows.join('\n')}\n`, { entity });
      const onceAsked = () => {
        let asked = 0;
        return async () => asked++ === 0;
      };
      let far = 0;
      let turns = 1;
      for (; (await run(body, { mayGoOn: onceAsked() })) === 'overtaken'; turns++) {
        const { task_status, processed_records } = await taskOf(body);
        expect(task_status).to.equal('PROCESSING');
        expect(processed_records, 'each turn does something').to.be.greaterThan(far);
        far = processed_records;
      }
      expect(turns).to.be.greaterThan(1);
      const [task, report] = [await taskOf(body), await reportOf(body)];
      const refused = total / 100;
      expect(counts(task)).to.deep.equal(['COMPLETED', total, total, total - refused, refused]);
      const numbers = report.map((line) => Number(line.split(',')[0]));
      expect(numbers).to.deep.equal(Array.from({ length: refused }, (_, nth) => nth * 100 + 9));
      if (entity === 'EVENTS') expect(await usageOf('turns')).to.equal(String(total - refused));
      else {
        const made = await world.api.services.postgres('customers').whereLike('external_id', 'turn-%');
        const cells = made.map(({ external_id, name }) => `${external_id},"${name}"`);
        expect(cells.toSorted()).to.deep.equal(rows.filter((row) => row !== 'refused').toSorted());
      }
    });

  it('an Idempotency-Key gives the same task to the same file', async () => {
    const asked = { entity: 'CUSTOMERS', headers: { 'idempotency-key': 'k' } };
    const [first, again] = [await upload('external_id\nk-1\n', asked), await upload('external_id\nk-1\n', asked)];
    expect(again.body.id).to.equal(first.body.id);
    expect((await upload('external_id\nk-2\n', asked)).status).to.equal(422);
  });

  it('nothing of the file is kept when it is done', async () => {
    const { task } = await imported('external_id\nkept\n', { entity: 'CUSTOMERS' });
    const { rows } = await world.api.services.postgres.raw('select from import_chunks where task_id = ?', [task.id]);
    expect(rows).to.deep.equal([]);
  });

  it('400 for a content type of no such file, or of another text than UTF-8; those of the description are taken', async () => {
    const typed = (type: string) =>
      upload('external_id\ntyped\n', { entity: 'CUSTOMERS', headers: { 'content-type': type } });
    for (const type of [
      'image/png',
      'text/plain',
      '',
      'text/csv; charset=latin1',
      'application/x-www-form-urlencoded',
    ]) {
      const { status, body } = await typed(type);
      expect([status, body.code], type).to.deep.equal([400, 'validation_error']);
    }
    for (const type of ['text/csv', 'Text/CSV; charset=UTF-8', 'application/json', 'application/x-ndjson'])
      expect((await typed(type)).status, type).to.equal(202);
  });

  describe('who may', () => {
    it('403 without the permission of the records, or of tasks', async () => {
      const reader = await world.api.keyWithRoles(['all_reader']);
      expect((await upload('external_id\nx\n', { entity: 'CUSTOMERS', key: reader })).status).to.equal(403);
      const ingestor = await world.api.keyWithRoles(['event_ingestor']);
      expect((await upload('a\n', { entity: 'EVENTS', key: ingestor })).status).to.equal(403);
    });

    it('FAILED where whoever asked for it may not write such records any more, and goes on for who may', async () => {
      const { key, scope, user_id } = await world.api.otherTenant(['all_writer']);
      const users = () => world.api.services.postgres('users').where({ id: user_id });
      const { body } = await upload('external_id\nlate\n', { entity: 'CUSTOMERS', key });
      const ask = async () => (await world.api.request('GET', `/tasks/${body.id}`, { key })).body;
      const perform = async () => {
        const place = { ...scope, workflow_id: (await ask()).workflow_id! };
        const signal = AbortSignal.timeout(60_000);
        const { services } = world.api;
        const how = { attempt: 1, is_last: false, clock: services.clock, signal, timeout_ms: 60_000 };
        return tryImport(services, place, { ...how, settings: services.config });
      };
      await users().update({ roles: ['all_reader'] });
      expect(await perform()).to.equal('failed');
      await users().update({ roles: ['all_writer'] });
      const failed = await ask();
      expect(counts(failed)).to.deep.equal(['FAILED', null, 0, 0, 0]);
      expect(failed.error_summary).to.equal('an import of CUSTOMERS needs the permission customer:write');
      await world.api.request('PUT', `/tasks/${body.id}/status`, { body: { task_status: 'PROCESSING' }, key });
      expect(await perform()).to.equal('completed');
      expect(counts(await ask())).to.deep.equal(['COMPLETED', 1, 1, 1, 0]);
    });

    it('404: the task and the report of another tenant', async () => {
      const { task } = await imported('external_id\nother\n', { entity: 'CUSTOMERS' });
      const { key, scope } = await world.api.otherTenant();
      for (const path of [`/tasks/${task.id}`, `/tasks/${task.id}/report`])
        expect((await world.api.request('GET', path, { key })).status).to.equal(404);
      const theirs = await upload('external_id\nother\n', { entity: 'CUSTOMERS', key });
      await tryImport(
        world.api.services,
        { ...scope, workflow_id: theirs.body.workflow_id! },
        {
          attempt: 1,
          is_last: true,
          clock: world.api.services.clock,
          signal: AbortSignal.timeout(60_000),
          timeout_ms: 60_000,
          settings: world.api.services.config,
        },
      );
      const { body } = await world.api.request('GET', `/tasks/${theirs.body.id}`, { key });
      expect(counts(body)).to.deep.equal(['COMPLETED', 1, 1, 1, 0]);
    });
  });

  const REFUSED: [what: string, body: object, field: string][] = [
    ['http', { file_url: 'http://example.com/a.csv' }, 'file_url'],
    ['a file of the machine', { file_url: 'file:///etc/passwd' }, 'file_url'],
    ['no URL', { file_url: 'customers.csv' }, 'file_url'],
    ['a password in it', { file_url: 'https://a:b@example.com/' }, 'file_url'],
    ['an export', { task_type: 'EXPORT' }, 'task_type'],
    ['what is not imported', { entity_type: 'INVOICE' }, 'entity_type'],
    ['Parquet', { file_type: 'PARQUET' }, 'file_type'],
  ];
  for (const [what, change, field] of REFUSED) {
    it(`400 names ${field}: ${what}`, async () => {
      const body = {
        task_type: 'IMPORT',
        entity_type: 'CUSTOMERS',
        file_type: 'CSV',
        file_url: 'https://example.com/a.csv',
        ...change,
      };
      const answer = await world.api.request('POST', '/tasks', { body });
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details!.field).to.equal(field);
    });
  }
  it('400 names body: an upload of nothing', async () => {
    expect((await upload('', { entity: 'EVENTS' })).body.details!.field).to.equal('body');
  });
});
