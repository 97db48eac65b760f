/** Metrics and documentation are shown to everybody, on a port of their own, or nowhere. */
import { expect } from 'chai';
import { buildApp } from '../../api/app.ts';
import { readConfig } from '../../config.ts';
import { createHealthListener, openDoor } from '../../process/process-door.ts';
import { startTestApi, type TestApi } from '../support/api.ts';

describe('what is not for the world', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
  });
  after(() => api.stop());

  const OPEN = ['/health', '/ready', '/v1/meters'];
  const rows: [settings: Record<string, string>, outside: string[], inside: string[]][] = [
    [
      {},
      ['/metrics', '/docs/', '/docs/rules/events.md', '/v1/openapi.json'],
      ['/metrics', '/docs/', '/docs/rules/events.md', '/v1/openapi.json'],
    ],
    [
      { METRICS: 'internal' },
      ['/docs/', '/docs/rules/events.md', '/v1/openapi.json'],
      ['/metrics', '/docs/', '/docs/rules/events.md', '/v1/openapi.json'],
    ],
    [{ METRICS: 'off', DOCS: 'internal' }, [], ['/docs/', '/docs/rules/events.md', '/v1/openapi.json']],
    [{ METRICS: 'off', DOCS: 'off' }, [], []],
  ];
  for (const [settings, outside, inside] of rows) {
    it(`with ${JSON.stringify(settings)} stands at ${inside.join(' ') || 'no port'}`, async () => {
      const config = readConfig({ PORT: '0', INTERNAL_PORT: '0', ...settings });
      const door = await openDoor(config);
      door.open(buildApp({ ...api.services, config }));
      try {
        for (const [url, shown] of [
          [door.url, outside],
          [door.internal_url, inside],
        ] as const) {
          const open: string[] = [];
          for (const path of [...OPEN, '/metrics', '/docs/', '/docs/rules/events.md', '/v1/openapi.json']) {
            const { status, body } = await api.request('GET', `${url}${path}`);
            if (status === 200) open.push(path);
            else expect(body).to.deep.include({ code: 'not_found', message: `GET ${path} does not exist` });
          }
          expect(open).to.have.members([...OPEN, ...shown]);
        }
      } finally {
        await door.close();
      }
    });
  }

  it('a process without an interface shows its metrics by the same setting', async () => {
    const config = readConfig({ PORT: '0', INTERNAL_PORT: '0', METRICS: 'internal' });
    const door = await openDoor(config);
    door.open(createHealthListener({ ...api.services, config }));
    try {
      const at = async (url: string | undefined) => (await api.request('GET', `${url}/metrics`)).status;
      expect([await at(door.url), await at(door.internal_url)]).to.deep.equal([404, 200]);
    } finally {
      await door.close();
    }
  });

  it('needs a port where it is internal', () => {
    expect(() => readConfig({ DOCS: 'internal' })).to.throw('INTERNAL_PORT: is required');
  });
});
