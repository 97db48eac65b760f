/**
 * Scheduled exports, from the request to the file: to a directory, and to a server that speaks S3. The clock that only the test moves
 * says when they are due; the scheduler is the real one.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { parquetReadObjects } from 'hyparquet';
import S3rver from 's3rver';
import { addDueExports } from '../../actions/reporting/exports/due-exports.ts';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import { listDueScheduledTasks } from '../../storage/queue/due-exports.ts';
import type { Connection, ScheduledTask } from '../support/answers.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { startWorld, usage, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const KEYS = { aws_access_key_id: 'S3RVER', aws_secret_access_key: 'S3RVER' };

describe('scheduled exports', () => {
  const directory = mkdtempSync(join(tmpdir(), 'exports-'));
  const bucket = mkdtempSync(join(tmpdir(), 'exports-s3-'));
  let s3: S3rver;
  let endpoint_url: string;
  let world: World;
  let scheduler: Scheduler;
  let folder: Connection;
  let store: Connection;

  const post = <Path extends string>(path: Path, body: Fields = {}) => world.post(path, body);
  const refusal = async <Method extends string, Path extends string>(method: Method, path: Path, body?: Fields) => {
    const answer = await world.api.request(method, path, body ? { body } : {});
    expect(answer.status, answer.text).to.be.within(400, 499);
    return answer.body;
  };
  const schedule = (fields: Fields = {}) =>
    post('/tasks/scheduled', {
      connection_id: folder.id,
      entity_type: 'events',
      interval: 'hourly',
      job_config: {},
      ...fields,
    });
  const tasksOf = async ({ id }: ScheduledTask) =>
    (await world.get(`/tasks?scheduled_task_id=${id}&sort=range_start&order=asc&limit=1000`)).items;
  /** Asks Postgres until the tasks have ended: a request each time would cost more than the exports. */
  const ended = async (what: string, scheduled: ScheduledTask, count: number) => {
    await until(what, async () => {
      const { postgres } = world.api.services;
      const tasks = await postgres('tasks').where({ scheduled_task_id: scheduled.id }).select('task_status');
      return tasks.length === count && tasks.every(({ task_status }) => /COMPLETED|FAILED/.test(task_status));
    });
    return tasksOf(scheduled);
  };
  const due = (now: string) => addDueExports(world.api.services, { now: new Date(now), delay_seconds: 0 });
  const fileOf = async (task: { id: string }): Promise<Buffer> => {
    const { download_url } = await world.get(`/tasks/${task.id}/download`);
    const answer = await fetch(download_url);
    expect(answer.status).to.equal(200);
    return Buffer.from(await answer.arrayBuffer());
  };
  const below = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());

  before(async () => {
    s3 = new S3rver({
      port: 0,
      address: '127.0.0.1',
      silent: true,
      directory: bucket,
      configureBuckets: [{ name: 'exports', configs: [] }],
    });
    const { port } = (await s3.run()) as unknown as { port: number };
    endpoint_url = `http://127.0.0.1:${port}`;
    world = await startWorld({
      now: '2026-03-01T10:20:00Z',
      config: {
        EXPORT_DIRECTORY: directory,
        EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true',
        EXPORT_DELAY_SECONDS: '0',
        SECRETS_KEYS: 'a key of the settings that has 32 characters',
      },
    });
    await world.meter('tokens');
    await world.plan('Pro', [usage('tokens', '0.5')]);
    await world.subscribe('acme', 'Pro');
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    folder = await post('/connections', { name: 'Here', provider_type: 'directory' });
    store = await post('/connections', {
      name: 'Store',
      provider_type: 's3',
      encrypted_secret_data: { s3: KEYS },
    });
    await world.send(
      Array.from({ length: 300 }, (_, i) =>
        world.event('acme', 'tokens', { n: i, at: new Date(Date.UTC(2026, 2, 1, 10, i)).toISOString() }),
      ),
    );
    await world.waitForPipeline();
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
    await s3.close();
    for (const path of [directory, bucket]) rmSync(path, { recursive: true });
  });

  it('ranges follow each other without a gap and without an overlap, each in one file, whoever looks how often', async () => {
    const scheduled = await schedule();
    expect(scheduled).to.include({
      enabled: true,
      next_start: '2026-03-01T10:00:00Z',
      next_end: '2026-03-01T11:00:00Z',
    });
    await due('2026-03-01T10:59:59Z');
    expect(await tasksOf(scheduled)).to.deep.equal([]);
    world.at('2026-03-01T13:30:00Z');
    await Promise.all([1, 2, 3].map(() => due('2026-03-01T13:30:00Z')));
    const tasks = await ended('three files', scheduled, 3);
    expect(tasks.map(({ range_start, range_end }) => `${range_start} ${range_end}`)).to.deep.equal([
      '2026-03-01T10:00:00Z 2026-03-01T11:00:00Z',
      '2026-03-01T11:00:00Z 2026-03-01T12:00:00Z',
      '2026-03-01T12:00:00Z 2026-03-01T13:00:00Z',
    ]);
    const seen: string[] = [];
    for (const task of tasks) {
      expect(task, task.error_summary!).to.include({
        task_status: 'COMPLETED',
        task_type: 'EXPORT',
        entity_type: 'EVENTS',
      });
      const bytes = await fileOf(task!);
      expect(createHash('sha256').update(bytes).digest('hex')).to.equal(task.sha256);
      expect(bytes.length).to.equal(task.size_bytes);
      const records = csvRecords(bytes.toString());
      expect(records).to.have.length(60);
      expect(task).to.include({ total_records: 60, successful_records: 60, failed_records: 0 });
      expect(Date.parse(task.as_of!)).to.be.at.least(Date.parse(task.range_end!));
      seen.push(...records.map(({ event_id }) => event_id!));
    }
    expect(new Set(seen).size).to.equal(180);
    const names = below(directory).map(({ name }) => name);
    expect(names.sort()).to.deep.equal(tasks.map(({ file_name }) => file_name).sort());
  });

  it('disabled: nothing; enabled again: what passed meanwhile; archived: nothing, and its files stay', async () => {
    world.at('2026-03-01T14:10:00Z');
    const scheduled = await schedule({ interval: '30MIN', enabled: false });
    await due('2026-03-01T15:10:00Z');
    expect(await tasksOf(scheduled)).to.deep.equal([]);
    const enabled = await world.api.request('PUT', `/tasks/scheduled/${scheduled.id}`, { body: { enabled: true } });
    expect(enabled.body).to.include({ enabled: true, next_start: '2026-03-01T14:00:00Z' });
    world.at('2026-03-01T15:10:00Z');
    await due('2026-03-01T15:10:00Z');
    await ended('two files', scheduled, 2);
    const gone = await world.api.request('DELETE', `/tasks/scheduled/${scheduled.id}`);
    expect([gone.status, gone.text]).to.deep.equal([204, '']);
    await due('2026-03-01T18:10:00Z');
    expect(await tasksOf(scheduled)).to.have.length(2);
    for (const path of ['', '/run'])
      expect(
        (await refusal(path ? 'POST' : 'PUT', `/tasks/scheduled/${scheduled.id}${path}`, path ? {} : { enabled: true }))
          .code,
      ).to.equal('invalid_operation');
  });

  it('of each tenant in turn: who has many to catch up keeps nobody waiting', async () => {
    const { postgres } = world.api.services;
    const { id } = await schedule();
    const row = await postgres('scheduled_tasks').where({ id }).first();
    const copy = (own: string, tenant_id: string, next_end: string) => {
      const job_config = JSON.stringify(row.job_config);
      return postgres('scheduled_tasks').insert({
        ...row,
        job_config,
        id: own,
        tenant_id,
        next_start: '2018-01-01T00:00:00Z',
        next_end,
      });
    };
    for (const nth of [1, 2, 3]) await copy(`many_${nth}`, 'tenant_many', `2019-01-0${nth}T00:00:00Z`);
    await copy('one', 'tenant_one', '2020-01-01T00:00:00Z');
    const due = await listDueScheduledTasks(postgres, {
      over_at: new Date('2020-06-01T00:00:00Z'),
      limit: 3,
      left: [],
    });
    expect(due.map((one) => one.id)).to.deep.equal(['many_1', 'one', 'many_2']);
    await postgres('scheduled_tasks').whereIn('tenant_id', ['tenant_many', 'tenant_one']).delete();
  });

  it('S3: whole, packed, with columns of the metadata, behind an address that is signed', async () => {
    world.at('2026-03-01T16:00:00Z');
    const scheduled = await schedule({
      connection_id: store.id,
      entity_type: 'usage_analytics',
      job_config: {
        bucket: 'exports',
        endpoint_url,
        key_prefix: '/finance/daily/',
        compression: 'gzip',
        export_metadata_fields: [{ entity_type: 'customer', field_key: 'region', column_name: 'Region' }],
      },
    });
    const asked = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-03-01T16:00:00Z' };
    const run = await post(`/tasks/scheduled/${scheduled.id}/run`, asked);
    expect(run).to.include({ ...asked, mode: 'custom' });
    const [task] = await ended('the file', scheduled, 1);
    expect(task, task!.error_summary!).to.include({ task_status: 'COMPLETED', workflow_id: run.workflow_id });
    expect(task!.file_url).to.match(
      /^s3:\/\/exports\/finance\/daily\/usage_analytics\/20260301T000000Z_20260301T160000Z\.task_\w+\.csv\.gz$/,
    );
    const bytes = await fileOf(task!);
    expect(createHash('sha256').update(bytes).digest('hex')).to.equal(task!.sha256);
    const [record] = csvRecords(gunzipSync(bytes).toString());
    const analytics = await post('/events/analytics', { external_customer_ids: ['acme'], ...asked });
    expect(record).to.include({
      total_cost: analytics.total_cost,
      total_usage: analytics.items[0]!.total_usage,
      Region: '',
    });
  });

  it('Parquet by the schedule; run now without a range is of the last whole interval', async () => {
    world.at('2026-03-01T16:10:00Z');
    const scheduled = await schedule({ interval: '15MIN', job_config: { format: 'PARQUET', key_prefix: 'p' } });
    const answer = await world.api.request('POST', `/tasks/scheduled/${scheduled.id}/run`, {
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body).to.include({
      mode: 'automatic',
      start_time: '2026-03-01T15:45:00Z',
      end_time: '2026-03-01T16:00:00Z',
    });
    const body = { start_time: '2026-03-01T10:00:00Z', end_time: '2026-03-01T10:15:00Z' };
    await post(`/tasks/scheduled/${scheduled.id}/run`, body);
    const [first] = await ended('both files', scheduled, 2);
    const bytes = new Uint8Array(await fileOf(first!));
    expect(await parquetReadObjects({ file: bytes.buffer as ArrayBuffer })).to.have.length(15);
  });

  it('a run of a range that is over waits for what was accepted before it was asked for, and says as of when it is', async () => {
    const scheduled = await schedule({ interval: 'DAILY' });
    const day = { start_time: '2026-02-10T00:00:00Z', end_time: '2026-02-11T00:00:00Z' };
    // Whoever counts waits for these rows.
    const held = await world.api.services.postgres.transaction();
    await held('slices').forUpdate().select('partition');
    try {
      const events = [1, 2, 3].map((n) => world.event('acme', 'tokens', { n, at: '2026-02-10T05:00:00Z' }));
      await world.send(events);
      await post(`/tasks/scheduled/${scheduled.id}/run`, day);
      const told = await until('a try that was too early', async () => {
        const [task] = await tasksOf(scheduled);
        expect(task!.task_status, task!.error_summary!).to.not.equal('COMPLETED');
        return task!.error_summary !== null && task;
      });
      expect(told.error_summary).to.contain('what was accepted before it was asked for');
      expect(told.as_of).to.equal(null);
    } finally {
      await held.rollback();
    }
    const [task] = await ended('the file', scheduled, 1);
    expect(task, task!.error_summary!).to.include({ task_status: 'COMPLETED', total_records: 3 });
    expect(Date.parse(task!.as_of!)).to.be.at.least(Date.parse(task!.created_at));
  });

  it('what S3 refuses has failed, says why, and is done again when it is asked for', async () => {
    const scheduled = await schedule({
      connection_id: store.id,
      job_config: { bucket: 'no-such-bucket', endpoint_url },
    });
    await post(`/tasks/scheduled/${scheduled.id}/run`);
    const [task] = await ended('the failure', scheduled, 1);
    expect(task).to.include({ task_status: 'FAILED', file_url: '', total_records: null });
    expect(task!.error_summary).to.match(/S3 refused it: NoSuchBucket/);
    expect((await refusal('GET', `/tasks/${task!.id}/download`)).code).to.equal('not_found');
    const again = await world.api.request('PUT', `/tasks/${task!.id}/status`, { body: { task_status: 'PROCESSING' } });
    expect(again.status, again.text).to.equal(200);
    const [twice] = await until('the second failure', async () => {
      const tasks = await tasksOf(scheduled);
      return tasks[0]!.task_status === 'FAILED' && tasks[0]!.workflow_id !== task!.workflow_id && tasks;
    });
    expect(twice!.error_summary).to.match(/NoSuchBucket/);
    expect((await refusal('PUT', `/tasks/${task!.id}/status`, { task_status: 'COMPLETED' })).code).to.equal(
      'invalid_operation',
    );
  });

  it('an address of a file is good for a quarter of an hour, and no longer', async () => {
    const now = world.api.services.clock();
    const tasks = (await world.get('/tasks?task_status=COMPLETED&limit=1000')).items;
    const ofDirectory = tasks.find(({ file_url }) => file_url.startsWith('file:'));
    const { download_url } = await world.get(`/tasks/${ofDirectory!.id}/download`);
    const after = async (minutes: number) => {
      world.at(new Date(now.getTime() + minutes * 60_000).toISOString());
      const answer = await fetch(download_url);
      await answer.arrayBuffer();
      return answer.status;
    };
    expect([await after(14), await after(16)]).to.deep.equal([200, 404]);
    world.at(now.toISOString());
    const ofStore = tasks.find(({ file_url }) => file_url.startsWith('s3:'));
    const { download_url: signed } = await world.get(`/tasks/${ofStore!.id}/download`);
    expect(new URL(signed).searchParams.get('X-Amz-Expires')).to.equal('900');
  });

  it('credentials are sealed, and in no answer and no entry of the audit log', async () => {
    const [{ secret }] = await world.api.services.postgres('connections').where({ id: store.id }).select('secret');
    expect(secret).to.match(/^sealed:/);
    const shown = [
      await world.get(`/connections/${store.id}`),
      await world.get('/connections'),
      await world.get(`/audit-logs?entity_id=${store.id}`),
    ];
    expect(JSON.stringify(shown)).to.not.include('S3RVER');
    expect(shown[1]).to.include({ total: 2, limit: 50, offset: 0 });
  });

  it('400: what does not go together, by its name', async () => {
    const to_store = { connection_id: store.id, job_config: { bucket: 'exports', endpoint_url } };
    const cases: [Fields, string][] = [
      [{ interval: 'custom' }, 'interval'],
      [{ entity_type: 'nothing' }, 'entity_type'],
      [{ connection_id: store.id }, 'job_config.bucket'],
      [{ job_config: { bucket: 'exports' } }, 'job_config.bucket'],
      [
        { ...to_store, job_config: { bucket: 'exports', endpoint_url: endpoint_url.replace('//', '//user:S3RVER@') } },
        'job_config.endpoint_url',
      ],
      [{ job_config: { key_prefix: '../other' } }, 'job_config.key_prefix'],
      [{ job_config: { key_prefix: 'a/./b' } }, 'job_config.key_prefix'],
      [{ job_config: { key_prefix: `a/${'b'.repeat(256)}` } }, 'job_config.key_prefix'],
      [
        { ...to_store, job_config: { ...to_store.job_config, use_path_style: true, virtual_host_style: true } },
        'job_config.virtual_host_style',
      ],
      [
        { job_config: { export_metadata_fields: [{ entity_type: 'wallet', field_key: 'a' }] } },
        'job_config.export_metadata_fields.0.entity_type',
      ],
      [
        { job_config: { export_metadata_fields: [{ entity_type: 'customer', field_key: 'source' }] } },
        'job_config.export_metadata_fields.0.column_name',
      ],
    ];
    for (const [fields, field] of cases) {
      const body = { connection_id: folder.id, entity_type: 'events', interval: 'hourly', job_config: {}, ...fields };
      const refused = await refusal('POST', '/tasks/scheduled', body);
      expect(refused.details!.field, JSON.stringify(fields)).to.equal(field);
      expect(JSON.stringify(refused)).to.not.include('S3RVER');
    }
    for (const provider_type of ['tabs', 's3'])
      expect((await refusal('POST', '/connections', { name: 'x', provider_type })).details!.field).to.be.oneOf([
        'provider_type',
        'encrypted_secret_data.s3',
      ]);
    const { id } = await schedule({ interval: 'daily' });
    for (const [body, field] of [
      [{ start_time: '2026-03-01T00:00:00Z' }, 'end_time'],
      [{ start_time: '2026-03-01T00:00:00Z', end_time: '2027-03-01T00:00:00Z' }, 'end_time'],
      [{ start_time: '2025-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' }, 'start_time'],
    ] as const)
      expect((await refusal('POST', `/tasks/scheduled/${id}/run`, body)).details!.field).to.equal(field);
    expect((await refusal('DELETE', `/connections/${folder.id}`))!.message).to.match(/archive that first/);
  });

  it('another tenant: not found; who may not read the records: refused', async () => {
    const { key } = await world.api.otherTenant();
    const mine = await schedule();
    const [task] = (await world.get('/tasks?task_status=COMPLETED')).items;
    for (const path of [`/tasks/scheduled/${mine.id}`, `/connections/${store.id}`, `/tasks/${task!.id}/download`])
      expect((await world.api.request('GET', path, { key })).status, path).to.equal(404);
    const body = { connection_id: folder.id, entity_type: 'events', interval: 'hourly', job_config: {} };
    expect((await world.api.request('POST', '/tasks/scheduled', { key, body })).status).to.equal(404);
    const { download_url } = await world.get(`/tasks/${task!.id}/download`);
    const other = download_url.slice(0, -3) + (download_url.endsWith('abc') ? 'xyz' : 'abc');
    expect((await fetch(other)).status).to.equal(404);
  });
});

describe('exports without settings', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('a connection to the directory is refused by name', async () => {
    const body = { name: 'x', provider_type: 'directory' };
    const answer = await api.request('POST', '/connections', { body });
    expect(answer.status).to.equal(400);
    expect(answer.body.message).to.match(/EXPORT_DIRECTORY/);
  });

  it('an endpoint of S3 at a private address is refused by name', async () => {
    const connection = { name: 'Store', provider_type: 's3', encrypted_secret_data: { s3: KEYS } };
    const store = await api.request('POST', '/connections', { body: connection });
    const job_config = { bucket: 'exports', endpoint_url: 'https://169.254.169.254' };
    const body = { connection_id: store.body.id, entity_type: 'events', interval: 'hourly', job_config };
    const answer = await api.request('POST', '/tasks/scheduled', { body });
    expect([answer.status, answer.body.details!.field]).to.deep.equal([400, 'job_config.endpoint_url']);
  });
});
