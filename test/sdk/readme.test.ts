/** The example of the README that uses the published client, as it stands there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { startWorld, type World } from '../support/world.ts';

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
const ADDRESS = 'http://localhost:8080';

/** Its imports are handed in: waiting is until everything is counted, and the output is what it prints. */
const AsyncFunction = (async () => {}).constructor as new (
  ...parts: string[]
) => (...given: unknown[]) => Promise<void>;

describe('the README', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => world.stop());

  it('shows with the published client what comes out', async () => {
    const [, code = ''] = /```js\n([\s\S]*?)```/.exec(README) ?? [];
    expect(code).to.contain(ADDRESS);
    const events = ['call-1', 'call-2'].map((event_id) => ({
      event_id,
      event_name: 'api_call',
      external_customer_id: 'acme',
    }));
    await world.api.request('POST', '/events/bulk', { body: { events } });
    const printed: unknown[] = [];
    const script = code.replace(/^import .*$/gm, '').replace(ADDRESS, world.api.url);
    const run = new AsyncFunction('Flexprice', 'process', 'console', 'setTimeout', script);
    const surroundings = [{ env: { KEY: world.api.key } }, { log: (value: unknown) => printed.push(value) }];
    await run(Flexprice, ...surroundings, async (milliseconds: number) => {
      await world.waitForPipeline();
      world.at(new Date(Date.parse('2026-03-15T12:00:00Z') + milliseconds).toISOString());
    });
    expect(printed).to.deep.equal([3]);
  });
});
