import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

type Run = { workflow_id: string; run_id: string };

describe('workflows', () => {
  let api: TestApi;
  let invoice_id: string;
  let run: { workflow_id: string; run_id: string };

  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
    const { body: customer } = await api.request('POST', '/customers', { body: { external_id: 'acme', name: 'Acme' } });
    const line_items = [{ display_name: 'Set-up', quantity: '1', amount: '30' }];
    const body = {
      customer_id: customer.id,
      currency: 'usd',
      amount_due: '30',
      subtotal: '30',
      total: '30',
      line_items,
    };
    const made = await api.request('POST', '/invoices', { body });
    expect(made.status, made.text).to.equal(201);
    invoice_id = made.body.id;
    const { workflow_id, run_id } = (await api.request<Run>('POST', `/invoices/${invoice_id}/compute`)).body;
    run = { workflow_id, run_id };
  });
  after(() => api.stop());

  const search = async (body: object, options: { key?: string } = {}) =>
    api.request('POST', '/workflows/search', { body, ...options });

  const eq = (field: string, string: string) => ({ field, operator: 'eq', data_type: 'string', value: { string } });

  describe('200', () => {
    it('search: what was asked for, by each of its filters', async () => {
      const answer = await search({});
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.pagination).to.deep.equal({ total: 1, limit: 50, offset: 0, next_cursor: null });
      const [item] = answer.body.items;
      expect(item).to.include({
        ...run,
        workflow_type: 'ComputeInvoiceWorkflow',
        task_queue: 'invoice',
        status: 'Running',
        entity: 'invoice',
        entity_id: invoice_id,
        close_time: null,
        duration_ms: null,
        total_duration: null,
      });
      expect(Date.parse(item!.start_time)).to.equal(Date.parse('2026-03-15T12:00:00Z'));
      expect(run.workflow_id).to.match(/^wf_\w{26}$/);
      const filters: [object, number][] = [
        [{ workflow_id: run.workflow_id }, 1],
        [{ workflow_id: 'wf_other' }, 0],
        [{ workflow_type: 'ComputeInvoiceWorkflow', task_queue: 'invoice' }, 1],
        [{ workflow_type: 'EnvironmentCloneWorkflow' }, 0],
        [{ workflow_status: 'running' }, 1],
        [{ workflow_status: 'Failed' }, 0],
        [{ filters: [eq('workflow_status', 'RUNNING')] }, 1],
        [{ entity: 'invoice', entity_id: invoice_id }, 1],
        [{ entity_id: 'inv_other' }, 0],
      ];
      for (const [filter, total] of filters)
        expect((await search(filter)).body.pagination.total, JSON.stringify(filter)).to.equal(total);
    });

    it('summary and result of one run', async () => {
      const summary = await api.request('GET', `/workflows/${run.workflow_id}/${run.run_id}/summary`);
      expect(summary.status, summary.text).to.equal(200);
      expect(summary.body).to.include({ ...run, status: 'Running', activity_count: 0, failed_activities: 0 });
      const result = await api.request('GET', `/tasks/result?workflow_id=${run.workflow_id}`);
      expect(result.status).to.equal(200);
      expect(result.body).to.deep.equal({ message: 'Running', ...run });
    });
  });

  it('400: a status that there is not', async () => {
    expect((await search({ workflow_status: 'Sleeping' })).status).to.equal(400);
    expect((await api.request('GET', '/tasks/result')).status).to.equal(400);
  });

  it('403: without the permission', async () => {
    const key = await api.keyWithRoles(['event_ingestor']);
    expect((await search({}, { key })).status).to.equal(403);
  });

  it('404: of another tenant, or another run; and a search of it finds nothing', async () => {
    const { key } = await api.otherTenant();
    const { workflow_id, run_id } = run;
    const asked: [string, string | undefined][] = [
      [`/workflows/${workflow_id}/${run_id}/summary`, key],
      [`/tasks/result?workflow_id=${workflow_id}`, key],
      [`/workflows/${workflow_id}/run_other/summary`, undefined],
    ];
    for (const [path, as] of asked)
      expect((await api.request('GET', path, as === undefined ? {} : { key: as })).status, path).to.equal(404);
    expect((await search({}, { key })).body.items).to.deep.equal([]);
  });

  it('a request that is refused leaves no workflow: 404 for an unknown invoice, 400 for a final one', async () => {
    expect((await api.request('POST', '/invoices/inv_other/compute')).status).to.equal(404);
    await api.request('POST', `/invoices/${invoice_id}/finalize`);
    expect((await api.request('POST', `/invoices/${invoice_id}/compute`)).status).to.equal(400);
    expect((await search({})).body.pagination.total).to.equal(1);
    const jobs = await api.services.postgres('graphile_worker.jobs').select('key');
    expect(jobs).to.deep.equal([{ key: run.run_id }]);
  });
});
