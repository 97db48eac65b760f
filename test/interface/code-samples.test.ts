/**
 * The samples of the documentation are run: by a shell, and with the published client. What each sends is what the story of the examples
 * sends to the service (examples.test.ts), so that it works there.
 */
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { z } from 'zod';
import { buildCodeSamples, type CodeSample } from '../../api/http/code-samples.ts';
import { type Example, readExamples } from '../../api/http/examples.ts';
import { openApiDocument, requestExample } from '../../api/http/openapi.ts';
import type { Route } from '../../api/http/route.ts';
import { routes } from '../../api/resources.ts';
import { findIgnoredKeys } from '../../core/foundation/ignored-keys.ts';
import { hasMethod, sentByClient, toClientRequest } from '../support/client-call.ts';
import type { ApiDocument } from '../support/openapi.ts';

type Sampled = { readonly route: Route; readonly example: Example; readonly samples: readonly CodeSample[] };

const SERVER = 'http://localhost:8080/v1';

describe('the code samples of the documentation', () => {
  const exampleOfRoute = readExamples(routes);
  const all = routes.map((route): Sampled => {
    const example = exampleOfRoute(route);
    return { route, example, samples: buildCodeSamples(route, requestExample(route), example) };
  });

  it('stand in the OpenAPI document: of each operation one with curl, and one with the published client where that has a method', () => {
    const { paths } = openApiDocument(routes) as unknown as ApiDocument;
    for (const { route, samples } of all) {
      const operation = paths[route.path.replace(/:(\w+)/g, '{$1}')]![route.method]!;
      expect(operation['x-codeSamples'], route.operation_id).to.deep.equal(samples);
      const labels = samples.map(({ label }) => label);
      expect(labels, route.operation_id).to.deep.equal(hasMethod(route) ? ['curl', '@flexprice/sdk'] : ['curl']);
    }
    expect(all.filter(({ route }) => hasMethod(route)).length).to.be.greaterThan(160);
  });

  it('curl: a shell that runs them asks as the example does', () => {
    const asked = runInShell(all.map(({ samples }) => samples[0]!.source));
    expect(asked).to.have.length(all.length);
    for (const [at, { route, example }] of all.entries()) {
      const { url, method = 'GET', headers, body, output } = askedOf(asked[at]!);
      expect([method, url], route.operation_id).to.deep.equal([route.method.toUpperCase(), SERVER + example.path]);
      expect(headers.includes('x-api-key: the-key'), route.operation_id).to.equal(route.access !== 'public');
      const signatures = headers
        .filter((header) => header.endsWith(': the-signature'))
        .map((header) => header.split(':')[0]);
      const signed = (route.signed ?? []).filter((name) => name.endsWith('signature'));
      expect(signatures, route.operation_id).to.deep.equal(signed);
      const [file] = Object.entries(route.takes_file ?? {});
      const type = file?.[0] ?? 'application/json';
      if (body !== undefined) expect(headers, route.operation_id).to.include(`content-type: ${type}`);
      if (file) expect(body, route.operation_id).to.equal(file[1]);
      else expect(body && JSON.parse(body), route.operation_id).to.deep.equal(requestExample(route));
      const isPdf = example.file?.startsWith('%PDF') === true && example.answer === undefined;
      expect(output !== undefined, route.operation_id).to.equal(isPdf);
    }
  });

  it('curl: what a shell could take for its own arrives as it was written', () => {
    const { route } = all.find(({ samples }) => samples[0]!.source.includes('-X POST'))!;
    const body = { name: `Acme's "$KEY" \`date\` \\ and 'more'` };
    const [asked] = runInShell([buildCodeSamples(route, body, { path: "/plans?name='$KEY'" })[0]!.source]);
    expect(askedOf(asked!)).to.include({ url: `${SERVER}/plans?name='$KEY'`, body: JSON.stringify(body, null, 2) });
  });

  for (const { route, example, samples } of all.filter(({ route }) => hasMethod(route))) {
    it(`@flexprice/sdk: ${route.operation_id} asks as the example does, and reads what is answered`, async () => {
      const answer = { status: route.success, body: example.answer, type: 'application/json' };
      const sent = await sentByClient(samples[1]!.source, answer);
      const { pathname, searchParams } = new URL(sent.path, SERVER);
      const [path] = example.path!.split('?');
      // It has the version twice in a few addresses.
      expect([sent.method, pathname.replace(/^\/v1\/v1\//, '/v1/')]).to.deep.equal([
        route.method.toUpperCase(),
        `/v1${path}`,
      ]);
      const { query, body } = toClientRequest(route, example.path!, requestExample(route));
      const texts = Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
      expect(withoutItsDefaults(Object.fromEntries(searchParams), texts)).to.deep.equal(texts);
      const own = hasNoBody.has(route.operation_id) ? undefined : body;
      expect(withoutItsDefaults(sent.body, own)).to.deep.equal(own);
      if (route.body) {
        expect(z.safeParse(route.body, sent.body).error).to.equal(undefined);
        expect(findIgnoredKeys(route.body, sent.body)).to.deep.equal([]);
      }
    });
  }
});

/** The parameters of each call of curl. */
function runInShell(sources: readonly string[]): string[][] {
  const recorded = `curl() { printf '%s\\000' "$@"; printf 'END\\000'; }\nset -eu\n${sources.join('\n')}\n`;
  const signers = ['WEBHOOK', 'STRIPE', 'X_RAZORPAY', 'INTUIT'];
  const signatures = Object.fromEntries(signers.map((name) => [`${name}_SIGNATURE`, 'the-signature']));
  const basic = { AUTHORIZATION: 'Basic dGhlOnBhc3N3b3Jk' };
  const env = { KEY: 'the-key', WEBHOOK_ID: 'the-id', WEBHOOK_TIMESTAMP: '1', ...basic, ...signatures };
  const { stdout, stderr, status } = spawnSync('/bin/sh', { input: recorded, encoding: 'utf8', env, maxBuffer: 1e8 });
  expect([status, stderr]).to.deep.equal([0, '']);
  return stdout
    .split('END\0')
    .slice(0, -1)
    .map((call) => call.split('\0').slice(0, -1));
}

/** What curl understands of them. */
function askedOf(parameters: readonly string[]) {
  const of = (name: string) => parameters.flatMap((one, at) => (parameters[at - 1] === name ? [one] : []));
  const [url, ...more] = parameters.filter((one, at) => !one.startsWith('-') && !parameters[at - 1]?.startsWith('-'));
  expect(more).to.deep.equal([]);
  return { url, method: of('-X')[0], headers: of('-H'), body: of('--data-binary')[0], output: of('-o')[0] };
}

/** What the client says of its own accord, where the example says nothing of it. */
function withoutItsDefaults(sent: unknown, asked: unknown): unknown {
  if (typeof sent !== 'object' || sent === null) return sent;
  const own = Object.entries(sent).filter(
    ([key, value]) =>
      !(ITS_DEFAULTS.get(key) === String(value) && (asked as Record<string, unknown> | undefined)?.[key] === undefined),
  );
  return Array.isArray(sent) ? sent : Object.fromEntries(own);
}

const ITS_DEFAULTS = new Map(
  Object.entries({
    allow_expired_prices: 'false',
    from_cache: 'false',
    include_real_time_balance: 'false',
    limit: '50',
    offset: '0',
    save_card_and_make_default: 'false',
  }),
);
/** What may be said there the client does not say. */
const hasNoBody = new Set(['voidInvoice']);
