/**
 * What the documentation page offers under "Try it out" is executed for every operation, against a service that holds one
 * record of each kind: it succeeds, or the answer says in an error record what is not there.
 */
import { expect } from 'chai';
import { startTestApi, type TestApi } from '../support/api.ts';
import type { ApiDocument, ApiOperation } from '../support/openapi.ts';

/** What the page asks a visitor to fill in. */
const TYPED: Record<string, string> = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-02-01T00:00:00Z' };

/** What a visitor can run into with the examples as they are. Anything else must succeed. */
const SENSIBLE = [
  /not found$/,
  // What only a provider can send.
  /^the signature is not valid/,
  // This service has no key for credentials.
  /^credentials of an account are stored only if this service has a key for them/,
  // The session of a browser is for the pages of the console; this page calls with a key.
  /^this request belongs to no session$/,
  /^a request of a browser session needs the header X-Farthing-Console: 1$/,
  // These operations need a connection to a provider.
  /: this environment has no connection to stripe$/,
  /^(id|customer_id): is required( as a query parameter)?, or (external_customer_id|external_id|customer_lookup_key|lookup_key) instead of it$/,
];

describe('"Try it out" of every operation', () => {
  let api: TestApi;
  let document: ApiDocument;
  before(async () => {
    api = await startTestApi({ pipeline: true });
    document = (await api.request<ApiDocument>('GET', '/openapi.json', { key: null })).body;
  });
  after(() => api.stop());

  it('succeeds, or says what is not there', async () => {
    const surprises: string[] = [];
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const { asked, body } = offered(path, operation);
        const answer = await api.request(method.toUpperCase(), asked, body === undefined ? {} : { body });
        const message: string = answer.body?.message ?? '';
        const succeeds = Object.hasOwn(operation.responses, answer.status) && answer.status < 300;
        const isSensible =
          [400, 401, 403, 404].includes(answer.status) && SENSIBLE.some((pattern) => pattern.test(message));
        if (!succeeds && !isSensible) surprises.push(`${operation.operationId} ${asked}: ${answer.status} ${message}`);
      }
    }
    expect(surprises).to.deep.equal([]);
  });
});

/** The page fills in examples and defaults, leaves the rest of a query empty, and asks for what stands in the path. */
function offered(path: string, { parameters = [], requestBody }: ApiOperation): { asked: string; body: unknown } {
  const query = new URLSearchParams();
  let asked = path;
  for (const { name, in: where, schema = {}, example = schema.example, required } of parameters) {
    const value = example ?? schema.default ?? (required ? (TYPED[name] ?? 'unknown') : undefined);
    if (where === 'path') asked = asked.replace(`{${name}}`, encodeURIComponent(value as string));
    if (where === 'query' && value !== undefined) query.set(name, String(value));
  }
  const body = requestBody?.content!['application/json']!.example;
  return { asked: query.size > 0 ? `${asked}?${query}` : asked, body };
}
