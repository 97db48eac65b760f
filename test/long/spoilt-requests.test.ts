/**
 * Requests made from the OpenAPI document, many of them spoilt: whatever is sent, no answer is a failure of ours, none takes for
 * ever, and each has a status and a shape that the document declares. One seed in every run; `SEEDS=2-50` looks further.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';
import type { ApiDocument, ApiOperation, Json } from '../support/openapi.ts';
import { samples } from '../support/samples.ts';
import { type Chance, createChance, seedsToRun } from '../support/seeds.ts';

type Operation = { readonly method: string; readonly path: string; readonly operation: ApiOperation };
type Asked = { readonly path: string; readonly body: unknown };

/** Requests to each operation and seed. */
const EACH = samples(6);
const WITHIN_MS = 20_000;

describe('requests from the OpenAPI document, spoilt by chance', function () {
  this.timeout(300_000);
  let api: TestApi;
  let operations: Operation[];
  let checker: Ajv2020;
  /** Ids of what is there, of every kind. */
  const ids: string[] = [];

  before(async () => {
    api = await startTestApi({ pipeline: true });
    const document = (await api.request<ApiDocument>('GET', '/openapi.json', { key: null })).body;
    operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
    );
    checker = new Ajv2020({ strict: false, validateFormats: false });
    checker.addSchema(document, 'openapi');
    for (const { method, path, operation } of operations) {
      if (method !== 'POST' || path.includes('{')) continue;
      const body = operation.requestBody?.content!['application/json']!.example;
      const answer = await api.request(method, path, body === undefined ? {} : { body });
      if (typeof answer.body?.id === 'string') ids.push(answer.body.id);
    }
    expect(ids).not.to.be.empty;
  });
  after(() => api.stop());

  for (const seed of seedsToRun(1))
    it(`have the answers that it declares (seed ${seed})`, async () => {
      const chance = createChance(seed);
      const surprises: string[] = [];
      for (const each of operations)
        for (let count = 0; count < EACH; count++) {
          const asked = spoiltRequest(each, ids, chance);
          const surprise = await surpriseOf(each, asked);
          if (surprise) surprises.push(`${each.method} ${asked.path} ${textOf(asked.body)}: ${surprise}`);
        }
      expect(surprises).to.deep.equal([]);
    });

  /** What is wrong with the answer, if anything. */
  async function surpriseOf({ method, path, operation }: Operation, asked: Asked): Promise<string | undefined> {
    const began = performance.now();
    const answer = await api.request(method, asked.path, asked.body === undefined ? {} : { body: asked.body });
    const took_ms = performance.now() - began;
    const told = answer.text.slice(0, 300);
    if (took_ms > WITHIN_MS) return `${answer.status} after ${took_ms} ms`;
    if (answer.status >= 500) return `${answer.status} ${told}`;
    // A path that was spoilt may be another operation's, or nobody's.
    if (!isOf(path, asked.path)) return undefined;
    const declared = operation.responses[answer.status];
    if (!declared) return `${answer.status} is not declared: ${told}`;
    if (!declared.content?.['application/json'] || answer.body === null) return undefined;
    const shape = [
      'paths',
      path,
      method.toLowerCase(),
      'responses',
      String(answer.status),
      'content',
      'application/json',
    ];
    const { $ref } = declared;
    const pointer = $ref ? $ref : `#/${[...shape, 'schema'].map(escaped).join('/')}`;
    const isShaped = checker.getSchema(`openapi${pointer}`)!;
    return isShaped(answer.body) ? undefined : `${answer.status} ${checker.errorsText(isShaped.errors)}: ${told}`;
  }
});

/** Whether the path that was asked for has the parts of the operation's path. */
function isOf(path: string, asked: string): boolean {
  const parts = path.split('/');
  const given = asked.split('?')[0]!.split('/');
  return parts.length === given.length && parts.every((part, at) => part.startsWith('{') || part === given[at]);
}

/** Of a JSON pointer within the fragment of an address. */
function escaped(key: string): string {
  return encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** The example of the operation, or what its shape allows, with up to three places spoilt. */
function spoiltRequest({ path, operation }: Operation, ids: readonly string[], chance: Chance): Asked {
  const query = new URLSearchParams();
  let asked = path;
  for (const { name, in: where, schema = {}, example = schema.example } of operation.parameters ?? []) {
    if (where === 'path') {
      const id = chance.whole(1, 4) === 1 ? String(nasty(chance)) : chance.pick(ids);
      asked = asked.replace(`{${name}}`, encodeURIComponent(wellFormed(id)) || '%20');
    }
    if (where !== 'query' || chance.whole(1, 3) > 1) continue;
    const value = chance.whole(1, 2) === 1 ? (example ?? schema.default ?? chance.pick(ids)) : nasty(chance);
    query.set(name, wellFormed(typeof value === 'object' ? JSON.stringify(value) : String(value)));
  }
  const whole = structuredClone(operation.requestBody?.content!['application/json']!.example);
  const body = whole === undefined ? undefined : spoilt(whole, ids, chance);
  return { path: query.size > 0 ? `${asked}?${query}` : asked, body };
}

function spoilt(body: Json, ids: readonly string[], chance: Chance): unknown {
  if (chance.whole(1, 30) === 1) return nasty(chance);
  for (let count = chance.whole(0, 3); count > 0; count--) {
    const places = placesIn(body);
    if (places.length === 0) return body;
    const { within, key } = chance.pick(places);
    const what = chance.whole(1, 4);
    if (what === 1 && !Array.isArray(within)) delete within[key];
    else if (what === 2) within[key] = chance.pick(ids);
    else if (what === 3 && typeof within[key] === 'object') within[key] = [within[key]].flat().slice(1);
    else within[key] = nasty(chance);
  }
  return body;
}

/** Every key of every object and every index of every array in it. */
function placesIn(value: unknown): { within: Record<string, unknown>; key: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const within = value as Record<string, unknown>;
  return Object.keys(within).flatMap((key) => [{ within, key }, ...placesIn(within[key])]);
}

function nasty(chance: Chance): unknown {
  const kind = chance.pick(NASTY);
  return typeof kind === 'function' ? (kind as (chance: Chance) => unknown)(chance) : structuredClone(kind);
}

const NASTY: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  1e308,
  -1e-308,
  2_147_483_648,
  '',
  ' ',
  '0',
  '-0',
  '-1',
  '1e999',
  '1e-999',
  '0x10',
  'NaN',
  'Infinity',
  '9'.repeat(400),
  `0.${'3'.repeat(400)}`,
  'a'.repeat(70_000),
  '\u0000',
  '\ufeff',
  '\ud800',
  '‮reversed',
  '💸'.repeat(300),
  "'; drop table plans; --",
  '{{7*7}}',
  '%00',
  '../../etc/passwd',
  '__proto__',
  'constructor',
  '2026-02-30T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999Z',
  '275761-01-01T00:00:00Z',
  '2026-01-01',
  'America/Nowhere',
  'USD',
  'usd',
  'zzz',
  'PUBLISHED',
  'archived',
  [],
  {},
  [[]],
  [null],
  [{}],
  { a: 1 },
  { __proto__: null, constructor: 1 },
  Array.from({ length: 2_000 }, (_, index) => `x${index}`),
  (chance: Chance) => chance.whole(-1_000, 1_000),
  (chance: Chance) => String(chance.next() * 10 ** chance.whole(-10, 30)),
  (chance: Chance) => new Date(chance.whole(-8.64e15, 8.64e15)).toISOString(),
  (chance: Chance) => String.fromCodePoint(...Array.from({ length: 8 }, () => chance.whole(1, 0xd7ff))),
  (chance: Chance) => nested(chance.whole(1, 60)),
];

function nested(depth: number): unknown {
  return depth === 0 ? 1 : depth % 2 ? [nested(depth - 1)] : { a: nested(depth - 1) };
}

/** Half of a surrogate pair cannot stand in an address. */
function wellFormed(text: string): string {
  return Buffer.from(text.slice(0, 2_000)).toString();
}

function textOf(body: unknown): string {
  return body === undefined ? '' : JSON.stringify(body).slice(0, 400);
}
