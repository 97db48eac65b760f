import { expect } from 'chai';
import { purgeAuditLogJob } from '../../../../scheduler/jobs/purge-audit-log.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';

describe('the audit log', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2024-01-01T00:00:00Z' });
  });
  after(() => api.stop());

  it('is kept for the days of the setting, and longer where an environment has a clock of its own', async () => {
    const { postgres } = api.services;
    const entries = () => postgres('audit_entries').where({ entity_type: 'customer' });
    await api.request('POST', '/customers', { body: { external_id: 'old' } });
    api.setNow('2026-03-15T12:00:00Z');
    await api.request('POST', '/customers', { body: { external_id: 'new' } });
    const [old] = await entries().orderBy('created_at');
    await postgres('audit_entries').insert({ ...old, id: 'of a clock', environment_id: 'env_clock' });
    await postgres('test_clocks').insert({
      ...{ id: 'clock_1', tenant_id: api.scope.tenant_id, environment_id: 'env_clock' },
      frozen_time: '2024-01-01T00:00:00Z',
      advanced_from: '2024-01-01T00:00:00Z',
      advanced_at: '2024-01-01T00:00:00Z',
      progress: '{}',
    });
    const job = purgeAuditLogJob(api.services, { every_seconds: 3600, retention_days: 365 });
    expect((await job.run(new Date('2024-12-31T00:00:00Z'))).done).to.deep.equal({ purged: 0 });
    const { purged } = (await job.run(new Date('2026-03-16T00:00:00Z'))).done;
    expect(purged).to.be.greaterThan(0);
    const left = await entries().orderBy('created_at');
    expect(left.map(({ id }) => id))
      .to.have.length(2)
      .and.include('of a clock')
      .and.not.include(old.id);
  });
});
