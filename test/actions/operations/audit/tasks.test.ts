/** The audit of tasks: it finds nothing where nothing differs, and each kind of damage by its name (docs/operations.md, "What the audit finds"). */
import { appendFileSync, mkdtempSync, readdirSync, rmSync, truncateSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Finding } from '../../../../actions/operations/audit/findings.ts';
import { auditTasks, sampleTasks } from '../../../../actions/operations/audit/tasks.ts';
import { addDueExports } from '../../../../actions/reporting/exports/due-exports.ts';
import { type Scheduler, startScheduler } from '../../../../scheduler/main.ts';
import { until } from '../../../support/until.ts';
import { startWorld, type World } from '../../../support/world.ts';

describe('audit: tasks', () => {
  const directory = mkdtempSync(join(tmpdir(), 'audited-exports-'));
  let world: World;
  let scheduler: Scheduler;
  let file: string;

  before(async () => {
    world = await startWorld({
      now: '2026-03-01T10:20:00Z',
      config: { EXPORT_DIRECTORY: directory, EXPORT_DELAY_SECONDS: '0' },
    });
    scheduler = startScheduler(world.api.services, { clock: world.api.services.clock });
    const { id: connection_id } = await world.post('/connections', { name: 'Here', provider_type: 'directory' });
    const fields = { connection_id, entity_type: 'events', interval: 'hourly', job_config: {} };
    const scheduled = await world.post('/tasks/scheduled', fields);
    await world.api.request('POST', '/tasks/upload?entity_type=CUSTOMERS&file_type=CSV&file_name=f.csv', {
      body: Buffer.from('external_id,name\na,A\n,B\n'),
      headers: { 'content-type': 'text/csv' },
    });
    world.at('2026-03-01T13:10:00Z');
    await addDueExports(world.api.services, { now: new Date('2026-03-01T13:10:00Z'), delay_seconds: 0 });
    await until('all tasks', async () => {
      const { items } = await world.get('/tasks?limit=100');
      return items.length === 4 && items.every(({ task_status }) => task_status === 'COMPLETED');
    });
    expect(scheduled.id).to.match(/^schedtask_/);
    const [first] = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    file = join(first!.parentPath, first!.name);
  });
  after(async () => {
    await scheduler.stop();
    await world.stop();
    rmSync(directory, { recursive: true });
  });

  const raw = (statement: string) => world.api.services.postgres.raw(statement);
  const audited = (found: (finding: Finding) => void) =>
    auditTasks(world.api.services, { settings: world.api.services.config, reads_stores: false, found });
  async function kinds(): Promise<string[]> {
    const findings: Finding[] = [];
    await audited((finding) => findings.push(finding));
    return findings.map(({ kind }) => kind).sort();
  }
  async function sampled(): Promise<string[]> {
    const findings: Finding[] = [];
    await sampleTasks(world.api.services, (finding) => findings.push(finding));
    return findings.map(({ kind }) => kind).sort();
  }

  it('nothing, and how much it has looked at', async () => {
    const found: Finding[] = [];
    const looked = await audited((finding) => found.push(finding));
    expect([found, looked]).to.deep.equal([
      [],
      { exports: 3, imports: 1, scheduled_tasks: 1, files: 3, files_gone: 0, files_unread: 0 },
    ]);
  });

  const second = `range_start = '2026-03-01T11:00:00Z'`;
  for (const [what, damage, mend, kind] of [
    [
      'a gap between the files of a schedule',
      `update tasks set range_start = range_start + interval '1 minute' where ${second}`,
      `update tasks set range_start = range_start - interval '1 minute' where range_start = '2026-03-01T11:01:00Z'`,
      'export_ranges_differ',
    ],
    [
      'a schedule that goes on elsewhere',
      `update scheduled_tasks set next_start = next_start + interval '1 minute'`,
      `update scheduled_tasks set next_start = next_start - interval '1 minute'`,
      'export_ranges_differ',
    ],
    [
      'other counts than its run has told',
      `update tasks set total_records = 1, processed_records = 1, successful_records = 1 where ${second}`,
      `update tasks set total_records = 0, processed_records = 0, successful_records = 0 where ${second}`,
      'export_counts_differ',
    ],
    [
      'a row that was refused and is in no report',
      `update import_faults set task_id = 'x' || task_id`,
      `update import_faults set task_id = substr(task_id, 2)`,
      'import_report_differs',
    ],
    [
      'an import that says less than it has done',
      `update tasks set successful_records = successful_records - 1 where task_type = 'IMPORT'`,
      `update tasks set successful_records = successful_records + 1 where task_type = 'IMPORT'`,
      'import_report_differs',
    ],
  ] as const)
    it(`${what}, of all and of some`, async () => {
      await raw(damage);
      expect([await kinds(), await sampled()]).to.deep.equal([[kind], [kind]]);
      await raw(mend);
      expect([await kinds(), await sampled()]).to.deep.equal([[], []]);
    });

  it('a file whose bytes are others; one that was taken away is counted, and is no difference', async () => {
    const { size_bytes } = (await world.get('/tasks?task_type=EXPORT')).items[0]!;
    appendFileSync(file, 'x');
    expect(await kinds()).to.deep.equal(['export_file_differs']);
    truncateSync(file, size_bytes!);
    expect(await kinds()).to.deep.equal([]);
    unlinkSync(file);
    const looked = await audited(() => expect.fail('a difference'));
    expect([looked.files, looked.files_gone]).to.deep.equal([2, 1]);
  });
});
