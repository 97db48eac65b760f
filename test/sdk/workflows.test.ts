/** The published client, unmodified, asks how far asynchronous work is. */
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startScheduler } from '../../scheduler/main.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { until } from '../support/until.ts';

describe('the published client: workflows', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  it('workflows: query; tasks: result', async () => {
    const sdk = new Flexprice({ serverURL: `${api.url}/v1`, apiKeyAuth: api.key });
    const customer = await sdk.customers.createCustomer({ externalId: 'acme' });
    const lineItems = [{ displayName: 'Set-up', quantity: '1', amount: '30' }];
    const amounts = { amountDue: '30', subtotal: '30', total: '30' };
    const invoice = await sdk.invoices.createInvoice({
      customerId: customer.id!,
      currency: 'usd',
      ...amounts,
      lineItems,
    });
    const { body } = await api.request<{ workflow_id: string; run_id: string }>(
      'POST',
      `/invoices/${invoice.id}/compute`,
    );
    const asked = { workflowId: body.workflow_id };

    const [running] = (await sdk.workflows.queryWorkflow(asked)).items!;
    expect(running).to.include({ runId: body.run_id, status: 'Running', entityId: invoice.id, taskQueue: 'invoice' });
    expect((await sdk.tasks.getTaskResult(body.workflow_id)).message).to.equal('Running');

    const scheduler = startScheduler(api.services, { clock: api.services.clock });
    try {
      const done = await until('the workflow has ended', async () => {
        const [run] = (await sdk.workflows.queryWorkflow(asked)).items!;
        return run?.status !== 'Running' && run;
      });
      expect(done).to.include({ status: 'Completed', durationMs: 0, totalDuration: '0s' });
    } finally {
      await scheduler.stop();
    }
    expect((await sdk.tasks.getTaskResult(body.workflow_id)).message).to.equal('Completed');
  });
});
