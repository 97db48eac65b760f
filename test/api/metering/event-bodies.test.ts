/** Bodies that are short on the wire and hold millions of values: docs/rules/events.md, "A request is checked whole". */
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('bodies of events that hold too much', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const events = '{"events":[';
  const good = '"event_name":"call","external_customer_id":"a"';
  const many = (text: string) => `${text},`.repeat(300_000);
  const unknown = Array.from({ length: 300_000 }, (_, index) => `"k${index}":1`).join(',');
  const EVENTS = 'events: must not hold more than 1000 events';
  const VALUES = 'body: must not hold more than 200000 values: send smaller requests';

  // None of them ends as JSON does: so it is seen that it is refused before anything is made of it.
  const rows: [path: string, what: string, body: string, message: string, type?: string][] = [
    ['/events/bulk', 'empty events', `${events}${many('{}')}`, EVENTS],
    ['/events/bulk', 'an event of unknown keys', `${events}{${good},${unknown}`, VALUES],
    ['/events/bulk?verdicts=true', 'an event of many properties', `${events}{${good},"properties":{${unknown}`, VALUES],
    [
      '/events/bulk',
      'a batch of CloudEvents',
      `[${many('{}')}`,
      'body: must not hold more than 1000 events',
      'application/cloudevents-batch+json',
    ],
    ['/events/raw/bulk', 'events that are none', `${events}${many('0')}`, EVENTS],
    ['/events', 'unknown keys', `{${good},${unknown}`, VALUES],
    ['/events', 'a CloudEvent of unknown keys', `{"id":"1",${unknown}`, VALUES, 'application/cloudevents+json'],
    ['/events/e1/replace', 'unknown keys', `{"event":{${good},${unknown}`, VALUES],
  ];
  for (const [path, what, text, message, type = 'application/json'] of rows)
    it(`400 at ${path} for ${what}`, async () => {
      const headers = { 'content-encoding': 'gzip', 'content-type': type };
      const answer = await api.request('POST', path, { body: gzipSync(text), headers });
      expect([answer.status, answer.body.message]).to.deep.equal([400, message]);
    });

  it('202 for as many where nothing is wrong', async () => {
    const body = `${events}{${good},"properties":{${unknown}}}]}`;
    expect((await api.request('POST', '/events/bulk', { body })).status).to.equal(202);
  });
});
