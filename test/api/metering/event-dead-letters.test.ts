import { expect } from 'chai';
import { type RunningPipeline, startPipeline } from '../../../pipeline/pipeline.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { until } from '../../support/until.ts';

describe('dead letters', () => {
  let api: TestApi;
  let pipeline: RunningPipeline;
  before(async () => {
    api = await startTestApi();
    const { services } = api;
    const { logger, clock } = services;
    pipeline = await startPipeline(services, { owner: 't', slice_events_max: 100, logger, clock });
    const events = [{ event_name: 'call' }, { external_customer_id: 'acme', event_id: 'nameless' }, { nothing: 1 }];
    expect((await api.request('POST', '/events/raw/bulk', { body: { events } })).status).to.equal(202);
    await until('they are dead', async () => (await list()).body.pagination.total === 3);
  });
  after(async () => {
    await pipeline.stop();
    await api.stop();
  });

  const list = (query: '' | `?${string}` = '', options = {}) =>
    api.request('GET', `/events/dead-letters${query}`, options);
  const replay = (body: unknown, options = {}) =>
    api.request('POST', '/events/dead-letters/replay', { body, ...options });

  it('200: lists them by pages, with the bytes as they came and the reason', async () => {
    const { status, body } = await list('?limit=2&offset=1');
    expect(status).to.equal(200);
    expect(body.pagination).to.deep.equal({ total: 3, limit: 2, offset: 1, next_cursor: null });
    expect(body.items).to.have.length(2);
    const all = (await list()).body.items;
    const nameless = all.find((item) => item.event_id === 'nameless');
    expect(JSON.parse(nameless!.body)).to.deep.equal({ external_customer_id: 'acme', event_id: 'nameless' });
    expect(nameless).to.deep.include({ reason: 'event_name: is required', replayed_at: null });
  });

  it('202: replays what is valid now, and says of the others why not', async () => {
    const { status, body } = await replay({ all: true });
    expect(status).to.equal(202);
    expect(body.verdicts.map(({ verdict }: { verdict: string }) => verdict)).to.deep.equal(Array(3).fill('refused'));
    const named = await replay({ ids: ['7-7-7'] });
    expect(named.body.verdicts).to.deep.equal([
      { id: '7-7-7', event_id: null, verdict: 'unknown', message: 'there is no such dead letter' },
    ]);
  });

  it('refuses by verdict what repeats an id with other content in one request', async () => {
    const event = (event_id: string, n: number | string) =>
      `{"event_id":"${event_id}","event_name":"call","external_customer_id":"ä","properties":{"n":${n}}}`;
    const sent = [event('one', 1), event('one', 2), event('two', 1), event('one', 1), event('two', '1.0')];
    const body = Buffer.from(`{"events":[${sent.join()}]}`);
    const headers = { 'content-type': 'application/json' };
    const answer = await api.request<{ verdicts: { verdict: string; field: string | null }[] }>(
      'POST',
      '/events/bulk?verdicts=true',
      { body, headers },
    );
    expect(answer.status, answer.text).to.equal(202);
    expect(answer.body.verdicts.map(({ verdict, field }) => `${verdict} ${field}`)).to.deep.equal([
      'accepted null',
      'refused event_id',
      'accepted null',
      'accepted null',
      'refused event_id',
    ]);
  });

  it('400 without saying which, 403 for who may only send, and nothing of another tenant', async () => {
    expect((await replay({})).status).to.equal(400);
    expect((await replay({ ids: ['1-1-1'], all: true })).status).to.equal(400);
    const key = await api.keyWithRoles(['event_ingestor']);
    expect((await replay({ all: true }, { key })).status).to.equal(403);
    const other = await api.otherTenant();
    expect((await list('', { key: other.key })).body.pagination.total).to.equal(0);
  });
});
