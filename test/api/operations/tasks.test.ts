/** Tasks: what they answer, which moves they allow, and what becomes of one whose run ends without success. */
import { expect } from 'chai';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { TaskModel } from '../../../storage/models/reporting/task.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('tasks', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  const add = (fields: object = {}) =>
    TaskModel.add(
      api.scope,
      {
        id: newId('task', api.services.clock().getTime()),
        task_type: 'IMPORT',
        entity_type: 'EVENTS',
        file_url: 'https://example.com/events.csv',
        file_type: 'CSV',
        task_status: 'PENDING',
        ...createdBy({ user_id: 'somebody', now: api.services.clock() }),
        ...fields,
      },
      { database: api.services.postgres },
    );
  const move = (id: string, task_status: string) =>
    api.request('PUT', `/tasks/${id}/status`, { body: { task_status } });

  it('200: every move that the table allows, with its instant', async () => {
    const { id } = await add();
    expect((await move(id, 'processing')).body).to.deep.equal({ message: 'the task is PROCESSING' });
    expect((await api.request('GET', `/tasks/${id}`)).body).to.include({
      task_status: 'PROCESSING',
      started_at: '2026-03-15T12:00:00Z',
      completed_at: null,
    });
    await move(id, 'FAILED');
    expect((await api.request('GET', `/tasks/${id}`)).body).to.include({
      task_status: 'FAILED',
      failed_at: '2026-03-15T12:00:00Z',
      error_summary: 'it was stopped by hand',
    });
    await move(id, 'PROCESSING');
    await move(id, 'COMPLETED');
    expect((await api.request('GET', `/tasks/${id}`)).body).to.include({
      task_status: 'COMPLETED',
      failed_at: null,
      error_summary: null,
      completed_at: '2026-03-15T12:00:00Z',
    });
  });

  it('400: a move that the table does not allow, of a completed one any', async () => {
    const { id } = await add();
    for (const to of ['PENDING', 'COMPLETED']) {
      const refused = await move(id, to);
      expect(refused.status).to.equal(400);
      expect(refused.body).to.deep.include({ code: 'invalid_operation' });
      expect(refused.body.details!.allowed).to.deep.equal(['PROCESSING', 'FAILED']);
    }
    await move(id, 'PROCESSING');
    await move(id, 'COMPLETED');
    for (const to of ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'])
      expect((await move(id, to)).status).to.equal(400);
    expect((await move(id, 'DONE')).body.message).to.match(/^task_status: /);
  });

  it('the database refuses such a move on any other path', async () => {
    const { id } = await add();
    const forced = TaskModel.in(api.scope, api.services.postgres)
      .where({ id })
      .patch({ task_status: 'COMPLETED', completed_at: '2026-03-15T12:00:00Z' });
    const error = await forced.then(
      () => null,
      (refused: Error) => refused,
    );
    expect(error?.message).to.match(/cannot move from PENDING to COMPLETED/);
  });

  it('the list: by each of its conditions', async () => {
    const { id } = await add({ entity_type: 'FEATURES', scheduled_task_id: 'schedtask_1', created_by: 'another' });
    for (const asked of ['entity_type=features', 'scheduled_task_id=schedtask_1', 'created_by=another']) {
      const { body } = await api.request('GET', `/tasks?${asked}&task_type=IMPORT&task_status=PENDING`);
      expect(
        body.items.map((task: { id: string }) => task.id),
        asked,
      ).to.deep.equal([id]);
    }
  });

  it('404: of another tenant', async () => {
    const { id } = await add();
    const { key } = await api.otherTenant();
    expect((await api.request('GET', `/tasks/${id}`, { key })).status).to.equal(404);
    expect((await api.request('PUT', `/tasks/${id}/status`, { key, body: { task_status: 'FAILED' } })).status).to.equal(
      404,
    );
  });
});
