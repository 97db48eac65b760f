import { expect } from 'chai';
import fc from 'fast-check';
import { startTestApi, type TestApi } from '../../support/api.ts';

type Page = { items: { id: string }[]; pagination: { next_cursor: string | null; total: number } };

/** Nulls, equal values, and a creation time with microseconds, which a JS date would cut. */
const ROWS = [
  { name: 'b', description: 'x', display_order: 2, created_at: '2026-01-01T00:00:00.000001Z' },
  { name: 'a', description: null, display_order: 1, created_at: '2026-01-01T00:00:00.000002Z' },
  { name: 'b', description: 'y', display_order: null, created_at: '2026-01-01T00:00:00.000003Z' },
  { name: 'C', description: null, display_order: null, created_at: '2026-01-01T00:00:00.000003Z' },
  { name: 'ä', description: 'x', display_order: 10, created_at: '2026-01-02T00:00:00Z' },
  { name: 'a', description: '', display_order: 2, created_at: '2026-01-01T00:00:00.000002Z' },
];

describe('cursors of lists', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ now: '2026-02-01T00:00:00Z' });
    for (const row of ROWS) await addPlan(row);
  });
  after(() => api.stop());

  async function addPlan({ name, ...columns }: (typeof ROWS)[number]) {
    const { id } = (await api.request('POST', '/plans', { body: { name } })).body;
    await api.services.postgres('plans').where({ id }).update(columns);
    return id as string;
  }
  const search = (body: object) => api.request('POST', '/plans/search', { body });
  const page = async (body: object) => (await search(body)).body as Page;

  /** All ids, page by page; `between` runs after each page. */
  async function listAll(asked: { limit: number; sort: object }, between = async () => {}): Promise<string[]> {
    const ids: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { items, pagination } = await page(cursor === undefined ? asked : { ...asked, cursor });
      expect(items.length).to.be.within(1, asked.limit);
      ids.push(...items.map(({ id }) => id));
      cursor = pagination.next_cursor;
      await between();
    }
    return ids;
  }

  it('pages by cursor are the whole list, in any order of columns with nulls and equal values', () => {
    const column = fc.constantFrom('name', 'description', 'display_order', 'created_at');
    const direction = fc.constantFrom('asc', 'desc');
    const sort = fc.uniqueArray(fc.record({ field: column, direction }), {
      minLength: 1,
      selector: ({ field }) => field,
    });
    return fc.assert(
      fc.asyncProperty(sort, fc.integer({ min: 1, max: 6 }), async (order, limit) => {
        const whole = (await page({ sort: order })).items.map(({ id }) => id);
        expect(await listAll({ sort: order, limit })).to.deep.equal(whole);
      }),
      { numRuns: 40 },
    );
  });

  it('neither repeat nor skip a record while others are added', async () => {
    const before = (await page({})).items.map(({ id }) => id);
    const added: string[] = [];
    const add = async () => void added.push(await addPlan({ ...ROWS[4]!, created_at: '2026-03-01T00:00:00Z' }));
    const seen = await listAll({ limit: 2, sort: [{ field: 'created_at', direction: 'desc' }] }, add);
    expect(added.length).to.be.greaterThan(1);
    expect(seen).to.deep.equal(before);
  });

  it('tell the total of the conditions on each page', async () => {
    const first = await page({ limit: 2 });
    const next = await page({ limit: 2, cursor: first.pagination.next_cursor });
    expect(next.pagination.total).to.equal(first.pagination.total);
  });

  const refused: [what: string, change: (cursor: string) => object, field: string][] = [
    ['a cursor of another order', (cursor) => ({ cursor, order: 'asc' }), 'cursor'],
    ['a cursor of another column', (cursor) => ({ cursor, sort: 'name' }), 'cursor'],
    ['a text of somebody', () => ({ cursor: 'abc' }), 'cursor'],
    ['a number', () => ({ cursor: 'MQ' }), 'cursor'],
    ['a place that is too short', (cursor) => ({ cursor: change(cursor, (parts) => parts.slice(0, -1)) }), 'cursor'],
    ['an offset beside it', (cursor) => ({ cursor, offset: 1 }), 'offset'],
  ];
  for (const [what, asked, field] of refused)
    it(`refuse ${what}`, async () => {
      const { pagination } = await page({ limit: 1 });
      const answer = await search({ limit: 1, ...asked(pagination.next_cursor!) });
      expect(answer.status, answer.text).to.equal(400);
      expect(answer.body.details?.field).to.equal(field);
    });

  it('refuse a changed place as the caller’s error', async () => {
    const { pagination } = await page({ limit: 1 });
    const cursor = change(pagination.next_cursor!, ([order]) => [order!, 'no instant', 'x']);
    expect((await search({ cursor })).status).to.equal(400);
  });

  it('are absent on an empty page, and "" is none', async () => {
    const none = await page({ lookup_key: 'no such plan', cursor: '' });
    expect(none.pagination).to.deep.include({ total: 0, next_cursor: null });
  });
});

function change(cursor: string, by: (parts: string[]) => string[]): string {
  const parts = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as string[];
  return Buffer.from(JSON.stringify(by(parts))).toString('base64url');
}
