/** What the README says of the published client: its example, and the operations that are not there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Flexprice } from '@flexprice/sdk';
import { expect } from 'chai';
import { routes } from '../../api/resources.ts';
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

  it('names each operation of the client that is not there, and no other', () => {
    const [, listed = ''] = /- operations of the published client: ([\s\S]*?)\n(?:-|\n)/.exec(README) ?? [];
    const named = [...listed.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect(named).to.deep.equal(listMissing());
  });
});

const FUNCTIONS = join(import.meta.dirname, '../../node_modules/@flexprice/sdk/esm/funcs');

/** Operations in the code of the client without a route. Some of its paths repeat the prefix of the address. */
function listMissing(): string[] {
  const toShape = (place: string) => place.replaceAll(/:\w+|\{\w+\}/g, '{}');
  const served = new Set(routes.map(({ method, path }) => toShape(`${method.toUpperCase()} ${path}`)));
  const places = readdirSync(FUNCTIONS)
    .filter((file) => file.endsWith('.js'))
    .map((file) => readPlace(readFileSync(join(FUNCTIONS, file), 'utf8')));
  expect(places.length).to.be.greaterThan(150);
  return [...new Set(places)].filter((place) => !served.has(toShape(place))).sort();
}

function readPlace(source: string): string {
  const method = /method: "(\w+)"/.exec(source)![1];
  const path = /pathToFunc\("([^"]+)"\)/.exec(source)![1]!;
  return `${method} ${path.replace(/^\/v1/, '')}`;
}
