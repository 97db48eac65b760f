/**
 * What is wrong with a request is said in a sentence that names the field: here by the hundred for every operation that there
 * is, with values of each kind in the place of each key of its example.
 */
import { expect } from 'chai';
import type { z } from 'zod';
import { requestExample } from '../../../api/http/openapi.ts';
import { routes } from '../../../api/resources.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { parseShape } from '../../../core/foundation/shaped.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const LONG = 'y'.repeat(300);
const VALUES = [undefined, null, 5, -1, 1.5, 1e99, 'x', '', LONG, true, [], ['x', 5], [{}], {}, { a: 5 }];
const IN_QUERY = ['', 'x', '-1', '1.5', '99999999999', '{}', '[{"field":5}]', ['a', 'b'], { a: 'x' }];

/** Words of the library that reads shapes, and of nobody who calls an API; `received` is a state, too. */
const NOT_OURS = /invalid|expected|received(?!,)|too (big|small)|unrecognized|>=|<=/i;

describe('what is said of a request that is refused', () => {
  it('names the field, in words that are ours, of every operation', () => {
    const said = routes.flatMap((route) => [
      ...refusals(route.body, requestExample(route)),
      ...refusalsOfQuery(route.query),
    ]);
    expect(said.length).to.be.greaterThan(5000);
    const odd = said.filter(({ field, message }) => NOT_OURS.test(message) || !/^[a-z]/.test(field ?? ''));
    expect([...new Set(odd.map(({ message }) => message))]).to.deep.equal([]);
  });

  describe('over HTTP', () => {
    let api: TestApi;
    before(async () => {
      api = await startTestApi();
    });
    after(() => api.stop());

    const METER = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } };
    const FILTER = { field: 'name', operator: 'contains', data_type: 'string', value: { string: 'a' } };
    const PRICE = {
      type: 'FIXED',
      billing_model: 'FLAT_FEE',
      amount: '1',
      billing_period: 'MONTHLY',
      invoice_cadence: 'ARREAR',
    };
    const TABLE: [method: string, path: string, body: unknown, message: string][] = [
      ['POST', '/meters', [], 'body: must be an object, not an array'],
      ['POST', '/meters', {}, 'name: is required'],
      ['POST', '/meters', { ...METER, name: 5 }, 'name: must be a string, not a number'],
      ['POST', '/meters', { ...METER, filters: ['x'] }, 'filters[0]: must be an object, not a string'],
      ['POST', '/plans', { name: LONG }, 'name: must not be longer than 255 characters'],
      ['POST', '/customers', { external_id: 'a', metadata: { a: 5 } }, 'metadata.a: must be a string, not a number'],
      ['POST', '/users', { type: 'robot' }, 'type: must be user or service_account'],
      ['POST', '/plans/search', { sort: 5 }, 'sort: must be an array or a string'],
      ['POST', '/plans/search', { limit: 0 }, 'limit: must be at least 1'],
      ['GET', '/plans?offset=00', undefined, 'offset: must be a whole number not below 0'],
      ['GET', '/plans?limit=007', undefined, 'limit: must be a whole number from 1 to 1000'],
      ['POST', '/plans/search', { filters: Array(101).fill(FILTER) }, 'filters: must not have more than 100 entries'],
      ['DELETE', '/plans/nobody', [], 'body: must be an object, and may be left out'],
      ['POST', '/invoices/nobody/finalize', 7, 'body: must be an object, and may be left out'],
      [
        'POST',
        '/secrets/api/keys',
        { name: 'k', type: 'private_key', service_account_id: '' },
        'service_account_id: must not be empty: leave it out for a key of your own',
      ],
      [
        'POST',
        '/subscriptions/nobody/lineitems',
        { price: { ...PRICE, lookup_key: LONG } },
        'price.lookup_key: must not be longer than 255 characters',
      ],
      ['GET', '/plans?limit=many', undefined, 'limit: must be a whole number from 1 to 1000'],
      ['GET', '/plans?order=up', undefined, 'order: must be asc or desc'],
    ];
    for (const [method, path, body, message] of TABLE) {
      it(`400 ${message}`, async () => {
        const { status, body: answer } = await api.request(method, path, { body });
        expect([status, answer.message]).to.deep.equal([400, message]);
        expect(answer.details!.field).to.equal(message.split(':')[0]);
      });
    }
  });
});

type Refusal = { message: string; field: string | undefined };

function refusals(shape: z.ZodType | undefined, example: unknown): Refusal[] {
  if (!shape) return [];
  const keys = Object.keys((shape as z.ZodObject).shape ?? {});
  const whole = { ...Object.fromEntries(keys.map((key) => [key, undefined])), ...(example as object) };
  return [...VALUES.slice(1), ...changed(whole, 0)].flatMap((body) => refusal(shape, body));
}

function refusalsOfQuery(shape: z.ZodType | undefined): Refusal[] {
  const names = Object.keys((shape as z.ZodObject | undefined)?.shape ?? {});
  return names.flatMap((name) => IN_QUERY.flatMap((value) => refusal(shape!, { [name]: value })));
}

/** Every fault of it. */
function refusal(shape: z.ZodType, value: unknown): Refusal[] {
  try {
    parseShape(shape, value, 'body');
    return [];
  } catch (error) {
    if (!(error instanceof FarthingError)) throw error;
    const { field, faults = [] } = error.details as { field: string; faults?: Refusal[] };
    return [{ message: error.message, field }, ...faults];
  }
}

/** The value with each value in the place of each of its parts, and with a key that it may not have. */
function* changed(value: unknown, depth: number): Generator<unknown> {
  if (typeof value !== 'object' || value === null || depth > 4) return;
  for (const [key, inner] of Object.entries(value))
    for (const other of [...VALUES, ...changed(inner, depth + 1)]) {
      const copy = structuredClone(value) as Record<string, unknown>;
      copy[key] = other;
      yield copy;
    }
}
