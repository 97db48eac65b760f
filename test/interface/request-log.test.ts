import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('the log of requests', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  it('has no token that stands in a path, whether it belongs there or not', async () => {
    const token = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.eyJpZCI6Ing.c2lnbmF0dXJl`;
    for (const path of [
      `/documents/${token}`,
      '/documents/another',
      `/plans/${token}`,
      `/plans/${api.key}`,
      '/plans/plan_1',
    ])
      await api.request('GET', path);
    const logged = api.logged();
    expect(logged).to.not.contain(token);
    expect(logged).to.not.contain('/documents/another');
    expect(logged).to.not.contain(api.key);
    expect(logged).to.contain('/v1/documents/[redacted]');
    expect(logged).to.contain('/v1/plans/plan_1');
  });

  it('has no line of what is asked every few seconds, with parameters or without', async () => {
    for (const path of ['/ready', '/ready?for=queries', '/health?x', '/metrics', '/nowhere?for=queries'])
      await fetch(api.url + path);
    expect(api.logged())
      .to.contain('/nowhere')
      .and.not.match(/"path":"\/(?:ready|health|metrics)/);
  });
});
