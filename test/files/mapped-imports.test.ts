/** Imports with mappings: the presets, saved mappings, tries, and the files of refused rows. docs/rules/imports.md. */
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { tryImport } from '../../actions/operations/imports/run-import.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { trimCompletedFiles } from '../../storage/models/operations/import-files.ts';
import type { Task } from '../support/answers.ts';
import { startWorld, type World } from '../support/world.ts';

/** Files in the form of the producers that stand beside the repository in some places; their sums are those of its README. */
const PRODUCERS = new URL('../../../shared/data/producers/', import.meta.url).pathname;

type Asked = { entity?: string; mapping?: string; type?: string };

describe('imports with a mapping', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-11-15T12:00:00Z' });
  });
  after(() => world.stop());

  const send = <Path extends '/tasks/upload' | '/tasks/upload/preview'>(
    path: Path,
    file: string | Buffer,
    { entity = 'EVENTS', mapping, type = 'CSV' }: Asked,
  ) =>
    world.api.request(
      'POST',
      `${path}?entity_type=${entity}&file_type=${type}${mapping ? `&mapping=${encodeURIComponent(mapping)}` : ''}` as Path,
      { body: Buffer.from(file as string), headers: { 'content-type': 'text/csv' } },
    );
  async function imported(file: string | Buffer, asked: Asked): Promise<Task> {
    const answer = await send('/tasks/upload', file, asked);
    expect(answer.status, answer.text).to.equal(202);
    return performed(answer.body);
  }
  async function performed({ id, workflow_id }: Task): Promise<Task> {
    const { services, scope } = world.api;
    const how = { attempt: 1, is_last: true, clock: services.clock, signal: AbortSignal.timeout(60_000) };
    const place = { ...scope, workflow_id: workflow_id! };
    await tryImport(services, place, { ...how, timeout_ms: 60_000, settings: services.config });
    return world.get(`/tasks/${id}`);
  }
  const refusedFile = async ({ id }: Task) => (await world.api.request('GET', `/tasks/${id}/refused`)).text;
  const countsOf = ({ task_status, successful_records, failed_records }: Task) => [
    task_status,
    successful_records,
    failed_records,
  ];
  async function sumOf(event_name: string, property_name: string, customers: readonly string[]): Promise<string> {
    await world.waitForPipeline();
    const range = { start_time: '2026-09-01T00:00:00Z', end_time: '2026-12-01T00:00:00Z' };
    const values = await Promise.all(
      customers.map(async (external_customer_id) => {
        const query = { event_name, external_customer_id, property_name, aggregation_type: 'SUM', ...range };
        return new Decimal((await world.post('/events/usage', query)).value);
      }),
    );
    return values.reduce((sum, value) => sum.plus(value)).toFixed();
  }

  describe('presets', () => {
    const FOCUS =
      'BilledCost,BillingCurrency,ChargeCategory,ChargeDescription,ChargePeriodStart,ConsumedQuantity,EffectiveCost,SubAccountId,Tags\n' +
      '0.1664000000,USD,Usage,"VM, ""small""",2026-10-01 22:00:00,4.0,0.1664000000,own-a,"{""team"": ""x""}"\n' +
      '-0.0007666667,USD,Credit,,2026-10-31 23:30:00,0.0333333333,-0.0007666667,own-b,\n';
    const AZURE =
      '\uFEFFSubscriptionId,Date,MeterCategory,Quantity,CostInBillingCurrency,Tags\r\n' +
      'own-c,10/20/2026,VM,24,2.304,"""env"": ""prod"""\r\n' +
      'own-c,10/09/2026,Storage,1.5e-05,0.0000002760,\r\n';
    const CUR =
      'identity/LineItemId,identity/TimeInterval,lineItem/UsageAccountId,lineItem/UsageStartDate,lineItem/UsageAmount,lineItem/UnblendedCost,resourceTags/user:team\n' +
      'own0,2026-10-01T00:00:00Z/2026-10-01T01:00:00Z,own-d,2026-10-01T00:00:00Z,1.0,0.01140,\n' +
      'own0,2026-10-01T01:00:00Z/2026-10-01T02:00:00Z,own-d,2026-10-01T01:00:00Z,1.0,0.01140,a\n';
    const CUR_2 = CUR.replace(
      /^.*/,
      'identity_line_item_id,identity_time_interval,line_item_usage_account_id,line_item_usage_start_date,line_item_usage_amount,line_item_unblended_cost,resource_tags',
    ).replaceAll('own', 'two');
    const LITELLM =
      'request_id,call_type,spend,total_tokens,prompt_tokens,completion_tokens,startTime,endTime,model,end_user,metadata\n' +
      'own-1,acompletion,3.96e-04,2060,1840,220,2026-10-05 14:02:10.480000,2026-10-05 14:02:10.990000,gpt,own-e,"{""tags"": [""prod""]}"\n' +
      'own-2,acompletion,0.171660,52404,51200,1204,2026-10-05 14:02:11.481000,2026-10-05 14:02:11.991000,gpt,own-e,{}\n';
    type Sums = Readonly<Record<string, string>>;
    const ROWS: [preset: string, file: string, event_name: string, events: number, customers: string[], sums: Sums][] =
      [
        ['FOCUS', FOCUS, 'focus_charge', 2, ['own-a', 'own-b'], { BilledCost: '0.1656333333' }],
        [
          'azure_cost',
          AZURE,
          'azure_charge',
          2,
          ['own-c'],
          { CostInBillingCurrency: '2.304000276', Quantity: '24.000015' },
        ],
        ['AWS_CUR', CUR, 'aws_line_item', 2, ['own-d'], { line_item_unblended_cost: '0.0228' }],
        ['AWS_DATA_EXPORTS', CUR_2, 'aws_line_item', 2, ['two-d'], { line_item_usage_amount: '2' }],
        ['LITELLM', LITELLM, 'llm_request', 2, ['own-e'], { spend: '0.172056', total_tokens: '54464' }],
        [
          'FOCUS',
          'focus-1.0.csv',
          'focus_charge',
          6,
          ['team-a', 'team-b'],
          { BilledCost: '5.8712615392', ConsumedQuantity: '56.0666666666' },
        ],
        [
          'AZURE_COST',
          'azure-amortized.csv',
          'azure_charge',
          5,
          ['00000000-0000-0000-0000-000000000000', '00000001-0000-0000-0000-000000000000'],
          { CostInBillingCurrency: '4.7974214614', Quantity: '60.403262' },
        ],
        [
          'AWS_CUR',
          'aws-cur.csv',
          'aws_line_item',
          4,
          ['222222222220', '222222222221'],
          { line_item_unblended_cost: '0.0444007383' },
        ],
        [
          'LITELLM',
          'litellm-spend-logs.csv',
          'llm_request',
          4,
          ['customer-0', 'customer-1'],
          { spend: '0.1720765024' },
        ],
      ];
    for (const [preset, given, event_name, events, customers, sums] of ROWS) {
      const isProducer = given.endsWith('.csv');
      if (isProducer && !existsSync(PRODUCERS + given)) continue;
      it(`${preset}: ${isProducer ? given : 'our own rows'}, to the digit`, async () => {
        const task = await imported(isProducer ? readFileSync(PRODUCERS + given) : given, { mapping: preset });
        expect(countsOf(task), task.error_summary!).to.deep.equal(['COMPLETED', events, 0]);
        expect(task.mapping).to.equal(preset.toUpperCase());
        for (const [property, sum] of Object.entries(sums))
          expect(await sumOf(event_name, property, customers), property).to.equal(sum);
      });
    }

    it('are listed with their terms', async () => {
      const { items } = await world.get('/tasks/mappings/presets');
      const names = items.map(({ name }: { name: string }) => name);
      expect(names).to.deep.equal(['FOCUS', 'AWS_CUR', 'AWS_DATA_EXPORTS', 'AZURE_COST', 'LITELLM']);
    });
  });

  const COLUMNS = [
    { field: 'event_name', value: 'orders' },
    { field: 'external_customer_id', columns: ['Kunde'] },
    { field: 'timestamp', columns: ['Datum'] },
    { field: 'properties.amount', columns: ['Betrag'], type: 'NUMBER' },
  ];
  const GERMAN = {
    delimiter: 'semicolon',
    decimal_separator: 'COMMA',
    date_format: 'DAY_FIRST',
    time_zone: 'Europe/Berlin',
    other_columns: 'IGNORE',
    fields: COLUMNS,
  };
  const german = (text: string) => Buffer.from(text, 'latin1');

  it('a saved one reads semicolons, decimal commas, local dates and Windows-1252; its refused rows come back', async () => {
    const saved = await world.post('/tasks/mappings', { name: 'Bestellungen', ...GERMAN });
    expect(saved).to.include({ delimiter: 'SEMICOLON', entity_type: 'EVENTS', preset: null, encoding: null });
    const file =
      'Kunde;Datum;Betrag;Notiz\nM\xfcller;20.10.2026;1.234,50;"a;b"\n\nM\xfcller;31.09.2026;1,00;x\nM\xfcller;20.10.2026;zwei;y\n';
    const task = await imported(german(file), { mapping: 'Bestellungen' });
    expect(countsOf(task)).to.deep.equal(['COMPLETED', 1, 2]);
    expect([task.encoding, task.mapping]).to.deep.equal(['WINDOWS-1252', 'Bestellungen']);
    expect(await sumOf('orders', 'amount', ['Müller'])).to.equal('1234.5');
    // The empty line is a row of a spreadsheet, too.
    expect(task.error_summary).to.match(
      /refused: row 4: timestamp: "31.09.2026" is no date .*; row 5: properties.amount/,
    );
    const refused = await refusedFile(task);
    expect(refused.split('\r\n')).to.deep.equal([
      'refused_reason;Kunde;Datum;Betrag;Notiz',
      '"timestamp: ""31.09.2026"" is no date in the form DAY_FIRST";Müller;31.09.2026;"1,00";x',
      '"properties.amount: ""zwei"" is no number with a decimal COMMA";Müller;20.10.2026;zwei;y',
      '',
    ]);
    const corrected = `\uFEFF${refused}`.replaceAll('31.09.', '30.09.').replaceAll('zwei', '2');
    const again = await imported(corrected, { mapping: 'Bestellungen' });
    expect([...countsOf(again), again.encoding]).to.deep.equal(['COMPLETED', 2, 0, 'UTF-8']);
    expect(await sumOf('orders', 'amount', ['Müller'])).to.equal('1237.5');
  });

  it('an accepted import retains its terms, and an archived name is free', async () => {
    const first = await world.post('/tasks/mappings', { name: 'free', ...GERMAN });
    const file = german('Kunde;Datum;Betrag\nfree;20.10.2026;1,5\n');
    const answer = await send('/tasks/upload', file, { mapping: 'free' });
    await world.api.request('DELETE', `/tasks/mappings/${first.id}`);
    expect((await send('/tasks/upload', file, { mapping: 'free' })).body.details!.field).to.equal('mapping');
    const second = await world.post('/tasks/mappings', { name: 'free', ...GERMAN, delimiter: 'TAB' });
    expect(second.id).not.to.equal(first.id);
    expect(countsOf(await performed(answer.body))).to.deep.equal(['COMPLETED', 1, 0]);
    const twice = await world.api.request('POST', '/tasks/mappings', { body: { name: 'free', ...GERMAN } });
    expect([twice.status, twice.body.code]).to.deep.equal([409, 'already_exists']);
    const { items } = await world.get('/tasks/mappings?name=free');
    expect(items.map(({ id }: { id: string }) => id)).to.deep.equal([second.id]);
  });

  it('a change sets the sent terms in the state that was read, and keeps those of the preset', async () => {
    const made = await world.api.request('POST', '/tasks/mappings', { body: { name: 'changing', preset: 'FOCUS' } });
    const change = (body: object, headers = {}) =>
      world.api.request('PUT', `/tasks/mappings/${made.body.id}`, { body, headers });
    const tag = { 'if-match': made.headers.get('etag')! };
    const changed = await change({ delimiter: 'TAB', encoding: 'UTF-16LE' }, tag);
    expect(changed.status, changed.text).to.equal(200);
    const { fields, time_zone } = made.body;
    const { updated_at } = changed.body;
    expect(changed.body).to.deep.equal({ ...made.body, delimiter: 'TAB', encoding: 'UTF-16LE', updated_at });
    expect((await change({ delimiter: 'PIPE' }, tag)).body.code).to.equal('version_conflict');
    const timed = fields.filter(({ field }: { field: string }) => field !== 'external_customer_id');
    const renamed = {
      name: 'renamed',
      encoding: null,
      fields: [...timed, { field: 'external_customer_id', columns: ['Tags.team'] }],
    };
    const { body: last } = await change(renamed);
    expect(last).to.include({ name: 'renamed', preset: 'FOCUS', delimiter: 'TAB', encoding: null, time_zone });
    expect(last.fields.at(-1)).to.deep.include({ field: 'external_customer_id', columns: ['Tags.team'] });
    for (const [body, field] of [
      [{ fields: timed }, 'fields'],
      [{ name: 'FOCUS' }, 'name'],
      [{ delimiter: null }, 'delimiter'],
    ] as const)
      expect((await change(body)).body.details, JSON.stringify(body)).to.include({ field });
    await world.post('/tasks/mappings', { name: 'taken', ...GERMAN });
    expect((await change({ name: 'taken' })).body.code).to.equal('already_exists');
    await world.api.request('DELETE', `/tasks/mappings/${made.body.id}`);
    expect((await change({ delimiter: 'TAB' })).body.code).to.equal('invalid_operation');
  });

  it('refused rows of JSON come back as lines with the reason, and digits', async () => {
    const row = (event_id: string, n: string, rest = '') =>
      `{"event_id":"${event_id}","event_name":"lines","external_customer_id":"json","timestamp":"2026-10-05T00:00:00Z","properties":{"n":${n}}${rest}}`;
    const file = [row('j-1', '1'), row('j-2', '0.10', ',"colour":"red"'), '{"event_name":', '7', '{}'].join('\n');
    const json = { type: 'JSON' };
    const task = await imported(file, json);
    expect(countsOf(task)).to.deep.equal(['COMPLETED', 1, 4]);
    const answer = await world.api.request('GET', `/tasks/${task.id}/refused`);
    expect(answer.headers.get('content-type')).to.match(/^application\/x-ndjson/);
    const lines = answer.text.split('\n');
    expect(lines).to.have.length(5);
    expect(lines[0]).to.match(/^\{"refused_reason":"colour: [^"]+","event_id":"j-2",.*"n":0\.10\},"colour":"red"\}$/);
    expect(JSON.parse(lines[1]!)).to.include({ refused_row: '{"event_name":' });
    expect(JSON.parse(lines[2]!)).to.include({ refused_row: '7' });
    expect(Object.keys(JSON.parse(lines[3]!))).to.deep.equal(['refused_reason']);
    const corrected = lines.slice(0, 2).join('\n').replace(',"colour":"red"', '');
    const again = await imported(corrected, json);
    expect(countsOf(again)).to.deep.equal(['COMPLETED', 1, 1]);
    expect(await sumOf('lines', 'n', ['json'])).to.equal('1.1');
    // The second refusal replaces the reason of the first.
    expect(JSON.parse(await refusedFile(again))).to.deep.equal({
      refused_reason: 'event_name: is required',
      refused_row: '{"event_name":',
    });
    expect(await refusedFile(await imported(row('j-3', '1'), json))).to.equal('');
  });

  it('customers, too', async () => {
    await world.post('/tasks/mappings', {
      name: 'crm',
      entity_type: 'CUSTOMERS',
      other_columns: 'IGNORE',
      fields: [
        { field: 'external_id', columns: ['Account No'] },
        { field: 'name', columns: ['Company'] },
        { field: 'metadata.segment', columns: ['Segment'], value: 'none' },
      ],
    });
    const file = 'Account No,Company,Segment,Owner\n=1,Acme,,x\n';
    const task = await imported(file, { entity: 'CUSTOMERS', mapping: 'crm' });
    expect(countsOf(task)).to.deep.equal(['COMPLETED', 1, 0]);
    const customer = await world.get('/customers/external/=1');
    expect(customer).to.deep.include({ name: 'Acme', metadata: { segment: 'none' } });
  });

  it('UTF-16 of a spreadsheet, without a mapping', async () => {
    const file = Buffer.from('\uFEFFexternal_id,name\nu-16,Zoë\n', 'utf16le');
    const task = await imported(file, { entity: 'CUSTOMERS' });
    expect([...countsOf(task), task.encoding]).to.deep.equal(['COMPLETED', 1, 0, 'UTF-16LE']);
    expect((await world.get('/customers/external/u-16')).name).to.equal('Zoë');
  });

  describe('a try', () => {
    it('shows events and refusals, and writes nothing', async () => {
      const file =
        'request_id,spend,startTime,end_user,model\n' +
        'try-1,3.96e-04,2026-10-05 14:02:10.480000,try,gpt\n' +
        'try-2,much,2026-10-05 14:02:10,try,gpt\n' +
        'try-3,1,2026-10-05 14:02:10,,gpt\n';
      const { status, body } = await send('/tasks/upload/preview', file, { mapping: 'LITELLM' });
      expect(status).to.equal(200);
      expect(body).to.deep.include({
        encoding: 'UTF-8',
        same_file_as: null,
        rows_read: 3,
        is_whole_file: true,
        accepted_rows: 1,
        refused_rows: 2,
        error_summary: null,
        accepted: [
          {
            row: 2,
            record: {
              event_id: 'try-1',
              event_name: 'llm_request',
              external_customer_id: 'try',
              timestamp: '2026-10-05T14:02:10.480000Z',
              properties: { spend: '3.96e-04', model: 'gpt' },
            },
          },
        ],
      });
      expect(body.refused.map(({ row, field }: { row: number; field: string }) => [row, field])).to.deep.equal([
        [3, 'properties.spend'],
        [4, 'external_customer_id'],
      ]);
      expect(await sumOf('llm_request', 'spend', ['try'])).to.equal('0');
      expect((await world.get('/tasks')).items.map(({ sha256 }) => sha256)).not.to.include(body.sha256);
    });

    it('says the fault that would fail the file, and reads a thousand rows', async () => {
      const { body } = await send('/tasks/upload/preview', 'event_name,costumer\na,b\n', {});
      expect(body.error_summary).to.match(
        /^costumer: is no column of such a file: .*, or properties.<name> for an entry of properties; a mapping can name others/,
      );
      const many = `external_id\n${Array.from({ length: 1_001 }, (_, n) => `n-${n}`).join('\n')}\n`;
      const { body: first } = await send('/tasks/upload/preview', many, { entity: 'CUSTOMERS' });
      expect(first).to.include({ rows_read: 1_000, is_whole_file: false, accepted_rows: 1_000, error_summary: null });
      expect(first.accepted).to.have.length(10);
    });
  });

  it('names the earlier import of the same file, in the answer, the task and the preview', async () => {
    const file = 'external_id\nsame-file\n';
    const first = await imported(file, { entity: 'CUSTOMERS' });
    expect(first.same_file_as).to.equal(null);
    const { body: tried } = await send('/tasks/upload/preview', file, { entity: 'CUSTOMERS' });
    expect(tried.same_file_as).to.equal(first.id);
    const { body: again } = await send('/tasks/upload', file, { entity: 'CUSTOMERS' });
    expect(again.same_file_as).to.equal(first.id);
    const other = await send('/tasks/upload', file, { entity: 'FEATURES' });
    expect(other.body.same_file_as).to.equal(null);
  });

  const REFUSED: [what: string, asked: Asked, why: RegExp][] = [
    ['a mapping that is not there', { mapping: 'none' }, /^mapping: names no mapping and no preset \(FOCUS, /],
    ['JSON', { mapping: 'FOCUS', type: 'JSON' }, /^mapping: is for CSV files/],
    ['a preset of other records', { mapping: 'FOCUS', entity: 'CUSTOMERS' }, /^mapping: makes EVENTS, not CUSTOMERS/],
  ];
  for (const [what, asked, why] of REFUSED)
    it(`400: ${what}`, async () => {
      for (const path of ['/tasks/upload', '/tasks/upload/preview'] as const) {
        const { status, body } = await send(path, 'a\nb\n', asked);
        expect([status, body.details!.field]).to.deep.equal([400, 'mapping']);
        expect(body.message).to.match(why);
      }
    });

  it('404: the refused rows of no task', async () => {
    expect((await world.api.request('GET', '/tasks/none/refused')).status).to.equal(404);
  });

  it('400: the refused rows of an old file, when newer ones need its room', async () => {
    const importRefused = (name: string) => imported(`external_id,name\n,${name}\n`, { entity: 'CUSTOMERS' });
    const old = await importRefused('old');
    const last = await importRefused('new');
    expect(await refusedFile(old)).to.include('old');
    const { services, scope } = world.api;
    await trimCompletedFiles(scope, services.postgres, Number(last.size_bytes));
    expect(await refusedFile(last)).to.include('new');
    expect(await refusedFile(old)).to.include('file: is no longer stored: the report has the reasons');
  });

  it('previews fewer rows if a mapping makes them long', async () => {
    const columns = ['event_name', 'external_customer_id', ...Array.from({ length: 20 }, (_, n) => `properties.p${n}`)];
    const fields = [
      COLUMNS[2],
      ...columns.map((field) => ({ field, columns: [field.includes('.') ? 'Text' : 'Kunde'] })),
    ];
    await world.post('/tasks/mappings', { name: 'long', ...GERMAN, fields });
    const file = `Kunde;Datum;Text\n${`a;20.10.2026;${'x'.repeat(50_000)}\n`.repeat(60)}`;
    const { body } = await send('/tasks/upload/preview', file, { mapping: 'long' });
    expect([body.is_whole_file, body.error_summary]).to.deep.equal([false, null]);
    expect(body.rows_read).to.equal(34);
  });

  it('404: the mapping of another tenant', async () => {
    const mine = await world.post('/tasks/mappings', { name: 'mine', ...GERMAN });
    const { key } = await world.api.otherTenant();
    expect((await world.api.request('GET', `/tasks/mappings/${mine.id}`, { key })).status).to.equal(404);
  });
});
