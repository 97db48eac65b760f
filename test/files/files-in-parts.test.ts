/**
 * Files of exports that are cut into parts (docs/rules/exports.md, "In parts"): all records, each in one part, each part whole, told with its
 * digest, read by the audit, and imported as the one file would be.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { parquetReadObjects } from 'hyparquet';
import S3rver from 's3rver';
import type { Finding } from '../../actions/operations/audit/findings.ts';
import { auditTasks } from '../../actions/operations/audit/tasks.ts';
import { listRequiredReads } from '../../actions/reporting/exports/export-kind.ts';
import { EXPORT_KINDS } from '../../actions/reporting/exports/kinds.ts';
import { EXPORT_JOB, SLOW_EXPORT_JOB } from '../../actions/reporting/exports/scheduled-tasks.ts';
import { type Scheduler, startScheduler } from '../../scheduler/main.ts';
import type { Connection, Task } from '../support/answers.ts';
import { csvRecords } from '../support/csv-records.ts';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

type Fields = Record<string, unknown>;

const EVENTS = 1500;
/** As many as the last of four parts has, and some. */
const VOIDED = 40;
const MIB = 1_048_576;
const RANGE = { start_time: '2026-03-01T10:00:00Z', end_time: '2026-03-01T11:00:00Z' };

describe('files of exports in parts', () => {
  const directory = mkdtempSync(join(tmpdir(), 'parts-'));
  const bucket = mkdtempSync(join(tmpdir(), 'parts-s3-'));
  let s3: S3rver;
  let endpoint_url: string;
  let world: World;
  let scheduler: Scheduler;
  let folder: Connection;
  let store: Connection;
  let stored: Task;

  /** A file of the range, once its task has ended. */
  async function exported(job_config: Fields, to: Connection) {
    const what = { connection_id: to.id, entity_type: 'events', interval: 'hourly', enabled: false, job_config };
    const { id } = await world.post('/tasks/scheduled', what);
    const { task_id } = await world.post(`/tasks/scheduled/${id}/run`, RANGE);
    return ended(task_id);
  }
  const ended = (id: string) =>
    until('the task has ended', async () => {
      const task = await world.get(`/tasks/${id}`);
      return /COMPLETED|FAILED/.test(task.task_status) && task;
    });
  async function partsOf(task: Task): Promise<Buffer[]> {
    const parts: Buffer[] = [];
    for (const { part, sha256, size_bytes } of task.files!) {
      const { download_url } = await world.get(`/tasks/${task.id}/download?part=${part}`);
      const bytes = Buffer.from(await (await fetch(download_url)).arrayBuffer());
      expect(createHash('sha256').update(bytes).digest('hex')).to.equal(sha256);
      expect(bytes.length).to.equal(size_bytes);
      parts.push(bytes);
    }
    return parts;
  }
  const names = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map(({ name }) => name)
      .sort();
  const audited = async (reads_stores: boolean) => {
    const found: Finding[] = [];
    const settings = world.api.services.config;
    const looked = await auditTasks(world.api.services, { settings, reads_stores, found: (one) => found.push(one) });
    return { kinds: found.map(({ kind }) => kind), ...looked };
  };

  before(async () => {
    const configureBuckets = [{ name: 'exports', configs: [] }];
    s3 = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: bucket, configureBuckets });
    const { port } = (await s3.run()) as unknown as { port: number };
    endpoint_url = `http://127.0.0.1:${port}`;
    world = await startWorld({
      now: '2026-03-01T12:00:00Z',
      config: { EXPORT_DIRECTORY: directory, EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true' },
    });
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    folder = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    const s3Keys = { aws_access_key_id: 'S3RVER', aws_secret_access_key: 'S3RVER' };
    store = await world.post('/connections', {
      name: 'Store',
      provider_type: 's3',
      encrypted_secret_data: { s3: s3Keys },
    });
    await world.customer('acme');
    await world.send(
      Array.from({ length: EVENTS }, (_, nth) => ({
        ...world.event('acme', 'tokens', { n: nth, at: new Date(Date.UTC(2026, 2, 1, 10, 0, nth)).toISOString() }),
        event_id: `event_${String(nth).padStart(4, '0')}`,
        properties: { n: nth, note: 'ä'.repeat(1_000) },
      })),
    );
    await world.waitForPipeline();
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
    await s3.close();
    for (const path of [directory, bucket]) rmSync(path, { recursive: true });
  });

  it('CSV: each record in one part, each part with a head and no longer than it may be; all of them are the one file', async () => {
    const whole = await exported({ bom: true }, folder);
    const task = await exported({ bom: true, max_file_size_mb: 1 }, folder);
    expect(task, task.error_summary!).to.include({ task_status: 'COMPLETED', total_records: EVENTS, sha256: null });
    expect(task.file_name).to.match(/^20260301T100000Z_20260301T110000Z\.task_\w+\.part-\*\.csv$/);
    expect(task.files!.map(({ part }) => part)).to.deep.equal([1, 2, 3, 4]);
    expect(task.files![1]!.file_name).to.equal(task.file_name!.replace('*', '0002'));
    const parts = await partsOf(task);
    expect(Math.max(...parts.map(({ length }) => length))).to.be.within(MIB - 3_000, MIB);
    expect(task.size_bytes).to.equal(parts.reduce((sum, { length }) => sum + length, 0));
    const [one] = names(directory).filter((name) => name === whole.file_name);
    const path = readdirSync(directory, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith(one!))!;
    const texts = [readFileSync(join(directory, path)), ...parts].map((bytes) => bytes.toString());
    for (const text of texts) expect(text.charCodeAt(0)).to.equal(0xfeff);
    const [all, ...cut] = texts.map((text) => csvRecords(text.slice(1)));
    expect(cut.flat()).to.deep.equal(all);
    expect(all).to.have.length(EVENTS);
  });

  it('S3, packed: the audit reads each part, where it is asked to, and finds the one that is another', async () => {
    stored = await exported({ bucket: 'exports', endpoint_url, compression: 'gzip', max_file_size_mb: 2 }, store);
    expect(stored, stored.error_summary!).to.include({ task_status: 'COMPLETED', total_records: EVENTS });
    expect(stored.file_url).to.match(/^s3:\/\/exports\/events\/.*\.part-\*\.csv\.gz$/);
    const parts = await partsOf(stored);
    expect(parts).to.have.length(2);
    expect(parts.flatMap((bytes) => csvRecords(gunzipSync(bytes).toString()))).to.have.length(EVENTS);
    const here = await audited(false);
    expect(await audited(true)).to.deep.equal({ ...here, kinds: [], files: here.files + 2 });
    const objects = readdirSync(bucket, { recursive: true, encoding: 'utf8' });
    const object = objects.find((name) => name.includes('part-0002') && name.endsWith('_object'))!;
    appendFileSync(join(bucket, object), 'x');
    expect((await audited(false)).kinds).to.deep.equal([]);
    expect((await audited(true)).kinds).to.deep.equal(['export_file_differs']);
    rmSync(join(bucket, object));
    expect(await audited(true)).to.include({ files: here.files + 1, files_gone: 1 });
  });

  it('a store that lets nobody read any more is counted, and is no difference', async () => {
    const { files, files_gone } = await audited(true);
    await world.api.services.postgres('connections').where({ id: store.id }).update({ status: 'archived' });
    expect(await audited(true)).to.include({ files: files - 1, files_gone: files_gone - 1, files_unread: 2 });
    await world.api.services.postgres('connections').where({ id: store.id }).update({ status: 'published' });
  });

  it('Parquet: parts that are read each by itself', async () => {
    const task = await exported({ format: 'PARQUET', max_file_size_mb: 1 }, folder);
    const parts = await partsOf(task);
    expect(parts.length).to.be.above(1);
    const records = await Promise.all(
      parts.map((bytes) => parquetReadObjects({ file: new Uint8Array(bytes).buffer as ArrayBuffer })),
    );
    expect(new Set(records.flat().map(({ event_id }) => event_id)).size).to.equal(EVENTS);
  });

  it('one part is one, without a record, too; which of several is wanted has to be said', async () => {
    const task = await exported({ max_file_size_mb: 1_000 }, folder);
    expect(task.files).to.have.length(1);
    expect((await world.get(`/tasks/${task.id}/download`)).download_url).to.match(/^http/);
    const refusal = async (id: string, query: string) => {
      const { status, body } = await world.api.request('GET', `/tasks/${id}/download${query}`);
      return [status, body.code, body.details?.field];
    };
    expect(await refusal(stored.id, '')).to.deep.equal([400, 'validation_error', 'part']);
    expect((await refusal(stored.id, '?part=3'))[0]).to.equal(404);
    const whole = await exported({}, folder);
    expect(whole.files).to.equal(null);
    expect(await refusal(whole.id, '?part=1')).to.deep.equal([400, 'validation_error', 'part']);
    const { items } = await world.get('/tasks?limit=1');
    expect(items[0]).to.not.have.property('files');
  });

  it('imported, part after part, they are what the one file is: nothing counts twice', async () => {
    const task = await exported({ max_file_size_mb: 1 }, folder);
    const { key } = await world.api.otherTenant();
    for (const bytes of await partsOf(task)) {
      const answer = await world.api.request('POST', '/tasks/upload?entity_type=EVENTS&file_type=CSV', {
        key,
        body: bytes,
        headers: { 'content-type': 'text/csv' },
      });
      expect(answer.status, answer.text).to.equal(202);
    }
    const tasks = await until('all parts are imported', async () => {
      const { items } = (await world.api.request('GET', '/tasks?limit=10', { key })).body;
      return items.length === task.files!.length && items.every((one) => one.task_status === 'COMPLETED') && items;
    });
    expect(tasks.reduce((sum, { successful_records }) => sum + successful_records, 0)).to.equal(EVENTS);
  });

  it('a try that had more parts, and had given them their names: what is left of it is taken away', async () => {
    const { postgres } = world.api.services;
    await postgres.raw(`
      create function fail_there() returns trigger language plpgsql as $$ begin raise exception 'not yet'; end $$;
      create trigger fail_there before update on tasks for each row when (new.task_status = 'COMPLETED') execute function fail_there()`);
    const job_config = { key_prefix: 'again', max_file_size_mb: 1 };
    const what = { connection_id: folder.id, entity_type: 'events', interval: 'hourly', enabled: false, job_config };
    const { id } = await world.post('/tasks/scheduled', what);
    const { task_id } = await world.post(`/tasks/scheduled/${id}/run`, RANGE);
    const own = () => names(directory).filter((name) => name.includes(task_id));
    await until('the first try has failed', async () => (await world.get(`/tasks/${task_id}`)).error_summary !== null);
    expect(own()).to.have.length(4);
    // Other jobs, such as a tick, may be in the queue as well.
    const triedIn = (time: string) =>
      postgres.raw(
        `update graphile_worker._private_jobs set run_at = now() + ?::interval where locked_at is null and task_id in
           (select id from graphile_worker._private_tasks where identifier in (?, ?))`,
        [time, EXPORT_JOB.task, SLOW_EXPORT_JOB.task],
      );
    // The next try comes behind all of this.
    await until('the next try is put off', async () => (await triedIn('1 hour')).rowCount === 1);
    // What is voided meanwhile is in no file: three parts are enough.
    for (let nth = 0; nth < VOIDED; nth++) {
      const body = { reason: 'a mistake' };
      const answer = await world.api.request('POST', `/events/event_${String(nth).padStart(4, '0')}/void`, { body });
      expect(answer.status, answer.text).to.equal(202);
    }
    await world.waitForPipeline();
    await postgres.raw('drop trigger fail_there on tasks');
    await triedIn('0');
    const task = await ended(task_id);
    expect(task, task.error_summary!).to.include({ task_status: 'COMPLETED', total_records: EVENTS - VOIDED });
    expect(own()).to.deep.equal(task.files!.map(({ file_name }) => file_name));
    expect(task.files).to.have.length(3);
    expect(await postgres('export_parts').select('part')).to.deep.equal([]);
  });

  it('400: less than a MiB; a mark of byte order in a file of Parquet', async () => {
    for (const [job_config, field] of [
      [{ max_file_size_mb: 0 }, 'job_config.max_file_size_mb'],
      [{ bom: true, format: 'PARQUET' }, 'job_config.bom'],
    ] as const) {
      const body = { connection_id: folder.id, entity_type: 'events', interval: 'hourly', job_config };
      const answer = await world.api.request('POST', '/tasks/scheduled', { body });
      expect([answer.status, answer.body.details?.field]).to.deep.equal([400, field]);
    }
  });

  it('columns of the metadata of customers are read by who may read customers', () => {
    const region = { entity_type: 'customer', field_key: 'region', column_name: null } as const;
    expect(listRequiredReads(EXPORT_KINDS.events, [])).to.deep.equal(['event']);
    expect(listRequiredReads(EXPORT_KINDS.events, [region, region])).to.deep.equal(['event', 'customer']);
  });
});
