import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

type Item = { name: string };

describe('lists and searches', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi();
    for (const [at, name] of [
      ['2026-01-01T00:00:00Z', 'Alpha 100%'],
      ['2026-01-02T00:00:00Z', 'alphabet'],
      ['2026-01-03T00:00:00Z', 'Beta_1'],
      ['2026-01-04T00:00:00Z', 'Beta21'],
    ] as const) {
      api.setNow(at);
      await api.request('POST', '/meters', { body: { name, event_name: name, aggregation: { type: 'COUNT' } } });
    }
  });
  after(() => api.stop());

  const ask = async (query: Record<string, unknown>) => {
    const parameters = Object.entries(query).map(([key, value]) => [
      key,
      typeof value === 'object' ? JSON.stringify(value) : String(value),
    ]);
    return api.request('GET', `/meters?${new URLSearchParams(parameters as [string, string][])}`);
  };
  const names = async (query: Record<string, unknown>) => (await ask(query)).body.items.map((item: Item) => item.name);
  const condition = (field: string, operator: string, data_type: string, value: object) => ({
    filters: [{ field, operator, data_type, value }],
  });

  const rows: [what: string, query: Record<string, unknown>, expected: string[]][] = [
    ['newest first', {}, ['Beta21', 'Beta_1', 'alphabet', 'Alpha 100%']],
    ['in the other order', { order: 'ASC', limit: 2 }, ['Alpha 100%', 'alphabet']],
    ['by a column', { sort: 'id', order: 'asc', limit: 1, offset: 2 }, ['Beta_1']],
    ['eq', condition('name', 'eq', 'string', { string: 'alphabet' }), ['alphabet']],
    ['contains, in any case', condition('name', 'contains', 'string', { string: 'ALPHA' }), ['alphabet', 'Alpha 100%']],
    ['contains a percent sign', condition('name', 'contains', 'string', { string: '0%' }), ['Alpha 100%']],
    ['contains an underscore', condition('name', 'contains', 'string', { string: 'a_1' }), ['Beta_1']],
    ['not_contains', condition('name', 'not_contains', 'string', { string: 'alpha' }), ['Beta21', 'Beta_1']],
    ['in', condition('name', 'in', 'array', { array: ['Beta21', 'alphabet'] }), ['Beta21', 'alphabet']],
    ['not_in', condition('name', 'not_in', 'array', { array: ['Beta21', 'alphabet'] }), ['Beta_1', 'Alpha 100%']],
    ['before', condition('created_at', 'before', 'date', { date: '2026-01-02T00:00:00Z' }), ['Alpha 100%']],
    [
      'after, with an offset',
      condition('created_at', 'after', 'date', { date: '2026-01-03T05:30:00+05:30' }),
      ['Beta21'],
    ],
    [
      'start_time and end_time, both included',
      { start_time: '2026-01-02T00:00:00Z', end_time: '2026-01-03T00:00:00Z' },
      ['Beta_1', 'alphabet'],
    ],
  ];
  for (const [what, query, expected] of rows) it(what, async () => expect(await names(query)).to.deep.equal(expected));

  it('a condition on the status replaces the default, published', async () => {
    const [, gone] = await Promise.all(
      ['Sold', 'Gone'].map(async (name) => (await api.request('POST', '/plans', { body: { name } })).body),
    );
    await api.request('DELETE', `/plans/${gone!.id}`);
    const listed = async (body: object) =>
      (
        await api.request('POST', '/plans/search', { body: { sort: [{ field: 'name', direction: 'asc' }], ...body } })
      ).body.items.map(({ name }) => name);
    const archived = condition('status', 'eq', 'string', { string: 'archived' });
    expect(await listed({})).to.deep.equal(['Sold']);
    expect(await listed(archived)).to.deep.equal(['Gone']);
    const both = condition('status', 'in', 'array', { array: ['archived', 'published'] });
    expect(await listed(both)).to.deep.equal(['Gone', 'Sold']);
    expect(await listed({ ...archived, status: 'published' }), 'both are conditions').to.deep.equal([]);
  });

  it('conditions add up', async () => {
    const filters = [
      ...condition('name', 'contains', 'string', { string: 'alpha' }).filters,
      ...condition('created_at', 'after', 'date', { date: '2026-01-01T00:00:00Z' }).filters,
    ];
    expect(await names({ filters })).to.deep.equal(['alphabet']);
  });

  it('pages hold each record once, and the total counts all', async () => {
    const seen: string[] = [];
    for (const offset of [0, 1, 2, 3, 4]) {
      const { body } = await ask({ limit: 1, offset });
      expect(body.pagination).to.deep.include({ total: 4, limit: 1, offset });
      seen.push(...body.items.map((item: Item) => item.name));
    }
    expect(new Set(seen).size).to.equal(4);
    expect(seen).to.have.length(4);
  });

  const refused: [string, Record<string, unknown>, string][] = [
    ['an unknown column', condition('tenant_id', 'eq', 'string', { string: 'x' }), 'filters'],
    ['a column name that is SQL', condition('name) or (1=1', 'eq', 'string', { string: 'x' }), 'filters'],
    ['an unknown operator', condition('name', 'like', 'string', { string: 'x' }), 'filters[0].operator'],
    ['an operator that does not fit the type', condition('name', 'gt', 'string', { string: 'x' }), 'filters'],
    ['a value of another type', condition('name', 'eq', 'string', { number: 1 }), 'filters'],
    ['a type that the column has not', condition('created_at', 'eq', 'string', { string: 'x' }), 'filters'],
    ['filters that are no JSON', { filters: '[{' }, 'filters'],
    ['sorting by an unknown column', { sort: 'tenant_id' }, 'sort'],
    ['an end before the start', { start_time: '2026-01-02T00:00:00Z', end_time: '2026-01-01T00:00:00Z' }, 'end_time'],
    [
      'an end before the start in another zone',
      { start_time: '2026-01-02T00:00:00Z', end_time: '2026-01-02T01:00:00+05:30' },
      'end_time',
    ],
    ...['0x10', '1e2', 'true', '', ' 7', '2.5', '0', '1001'].map((limit): [string, Record<string, unknown>, string] => [
      `a limit of "${limit}"`,
      { limit },
      'limit',
    ]),
    ['an offset of 0x1', { offset: '0x1' }, 'offset'],
    ['metadata where there is none', { 'metadata[a]': '1' }, 'metadata'],
  ];
  for (const [what, query, field] of refused) {
    it(`400 for ${what}`, async () => {
      const { status, body } = await ask(query);
      expect([status, body.code, body.details!.field]).to.deep.equal([400, 'validation_error', field]);
    });
  }

  it('400 for a limit that is no number in a body', async () => {
    const { status, body } = await api.request('POST', '/plans/search', { body: { limit: true } });
    expect([status, body.details!.field]).to.deep.equal([400, 'limit']);
  });
});
