/** The published client, unmodified: scheduled tasks, their runs, and the tasks that these make. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

describe('the published client: tasks', () => {
  const directory = mkdtempSync(join(tmpdir(), 'exports-'));
  let api: TestApi;
  let sdk: Flexprice;
  let connectionId: string;
  before(async () => {
    const config = { EXPORT_DIRECTORY: directory, EXPORT_DELAY_SECONDS: '0' };
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config });
    sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    const made = await api.request('POST', '/connections', { body: { name: 'Here', provider_type: 'directory' } });
    connectionId = made.body.id;
  });
  after(async () => {
    await api.stop();
    rmSync(directory, { recursive: true });
  });

  it('scheduled tasks: create, get, list, update, delete', async () => {
    const { scheduledTasks } = sdk;
    const stated = { connectionId, entityType: 'invoice', interval: 'daily', enabled: true } as const;
    const created = await scheduledTasks.createScheduledTask({ ...stated, jobConfig: { keyPrefix: 'finance' } });
    expect(created).to.deep.include({ ...stated, status: 'published' });
    expect(created.jobConfig).to.deep.include({ keyPrefix: 'finance', compression: 'none' });
    expect(await scheduledTasks.getScheduledTask(created.id!)).to.deep.equal(created);
    const listed = await scheduledTasks.listScheduledTasks({ connectionId, entityType: 'invoice', enabled: true });
    expect(listed.items).to.deep.equal([created]);
    expect(await scheduledTasks.updateScheduledTask(created.id!, { enabled: false })).to.include({ enabled: false });
    await scheduledTasks.deleteScheduledTask(created.id!);
    expect((await scheduledTasks.getScheduledTask(created.id!)).status).to.equal('archived');
    await scheduledTasks.scheduleUpdateBillingPeriod({});
  });

  it('run now; tasks: list, get, download, result, update of the status', async () => {
    const { scheduledTasks, tasks } = sdk;
    const what = { connectionId, entityType: 'credit_topups', interval: 'hourly', enabled: true } as const;
    const { id } = await scheduledTasks.createScheduledTask({ ...what, jobConfig: {} });
    const without = await scheduledTasks.triggerScheduledTaskRun(id!);
    expect(without).to.include({ startTime: '2026-03-15T11:00:00Z', endTime: '2026-03-15T12:00:00Z' });
    const range = { startTime: '2026-03-01T00:00:00Z', endTime: '2026-03-15T00:00:00Z' };
    expect(await scheduledTasks.triggerScheduledTaskRun(id!, range)).to.deep.include({ ...range, mode: 'custom' });
    const scheduler = startScheduler(api.services, { clock: api.services.clock });
    try {
      const done = await until('both tasks have ended', async () => {
        const { items } = await tasks.listTasks({ scheduledTaskId: id!, taskType: 'EXPORT', taskStatus: 'COMPLETED' });
        return items!.length === 2 && items;
      });
      const [task] = done;
      expect(await tasks.getTask(task!.id!)).to.deep.equal(task);
      expect(task).to.include({ totalRecords: 0, fileType: 'CSV', scheduledTaskId: id });
      const { download_url } = await tasks.downloadTaskExport(task!.id!);
      expect(await (await fetch(download_url!)).text()).to.match(/^id,moved_at,/);
      expect((await tasks.getTaskResult(without.workflowId!)).message).to.equal('Completed');
      const refused = await tasks.updateTaskStatus(task!.id!, { taskStatus: 'FAILED' }).then(
        () => null,
        (error: { statusCode?: number }) => error,
      );
      expect(refused?.statusCode).to.equal(400);
    } finally {
      await scheduler.stop();
    }
  });
});
