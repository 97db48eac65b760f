/** The published client, unmodified, imports a file and asks how far that is. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { type FilesServer, startFilesServer } from '../support/files-server.ts';
import { until } from '../support/until.ts';

describe('the published client: imports', () => {
  let api: TestApi;
  let files: FilesServer;
  before(async () => {
    files = await startFilesServer();
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config: { IMPORT_ALLOWED_ADDRESSES: '127.0.0.1' } });
  });
  after(async () => {
    await api.stop();
    await files.stop();
  });

  it('tasks: create, get, list, update the status, result', async () => {
    const sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    files.serve('/customers.csv', 'external_id,name\nacme,Acme\n,nobody\n');
    const asked = {
      taskType: 'IMPORT',
      entityType: 'CUSTOMERS',
      fileType: 'CSV',
      fileUrl: `${files.url}/customers.csv`,
      fileName: 'customers.csv',
      metadata: { from: 'crm' },
    } as const;
    const task = await sdk.tasks.createTask(asked);
    expect(task).to.include({ taskStatus: 'PENDING', processedRecords: 0, fileName: 'customers.csv' });
    expect((await sdk.tasks.getTaskResult(task.workflowId!)).message).to.equal('Running');

    const scheduler = startScheduler(api.services, { clock: api.services.clock });
    try {
      const done = await until('the file is imported', async () => {
        const now = await sdk.tasks.getTask(task.id!);
        return now.taskStatus === 'COMPLETED' && now;
      });
      expect(done).to.include({ totalRecords: 2, processedRecords: 2, successfulRecords: 1, failedRecords: 1 });
      expect(done.errorSummary).to.match(/row 3: external_id: is required/);
    } finally {
      await scheduler.stop();
    }
    expect((await sdk.tasks.getTaskResult(task.workflowId!)).message).to.equal('Completed');
    const { items } = await sdk.tasks.listTasks({ taskStatus: 'COMPLETED' });
    expect(items!.map(({ id }) => id)).to.deep.equal([task.id]);
    const stopped = await sdk.tasks.createTask(asked);
    await sdk.tasks.updateTaskStatus(stopped.id!, { taskStatus: 'FAILED' });
    expect((await sdk.tasks.getTask(stopped.id!)).taskStatus).to.equal('FAILED');
  });
});
