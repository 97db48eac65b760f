/**
 * Every list of the route table at ten thousand records, with as many in another environment and another tenant: each condition by
 * itself, each sort in both directions, each expansion, the first page and a deep one. What is sent to Postgres is explained: no
 * table is read from end to end, no more than the caller's own rows are read, and a condition reads as much as it finds, but for
 * those that are named in WALKS with the reason (docs/decisions/0023-indexes-and-statistics.md).
 */
import { expect } from 'chai';
import { z } from 'zod';
import type { Route } from '../../api/http/route.ts';
import { routes } from '../../api/resources.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { MANY, SEEDED, seedMany } from '../support/many-records.ts';
import { type Statement, StatementRecorder } from '../support/read-rows.ts';

/** Conditions that read an environment's records, and why no index is for them. */
const WALKS: Record<string, string> = {
  metadata: 'of what is written with each billing run: its pairs would be entered anew with every change',
  '/groups/search name': 'a part of it, as name_contains',
  name_contains: 'the middle of a text is in no index that all installations of Postgres have',
  '/entitlements entity_type': 'one of three, of which each has many',
  '/entitlements/search entity_type': 'one of three, of which each has many',
  '/prices entity_type': 'one of five, of which most have many',
  '/prices/search entity_type': 'one of five, of which most have many',
  '/groups/search entity_type': 'one of two',
  '/taxes/associations entity_type': 'one of four, with the id of which there is an index',
  '/subscriptions/lineitems/search entity_type': 'one of two',
  billing_periods: 'one of seven, told beside the plan or the customer that it is of',
  billing_period: 'one of seven, told beside the plan or the customer that it is of',
  endpoint_status: 'an environment has fifty endpoints at most',
  is_enabled: 'yes or no',
  addon_type: 'one of two',
  task_type: 'one of two',
  '/events/corrections action': 'one of two',
  '/events/corrections state': 'one of three',
  '/tasks/scheduled entity_type': 'one of five, of a few scheduled tasks',
  interval: 'one of four, of a few scheduled tasks',
  enabled: 'yes or no',
  provider_type: 'an environment has a few connections',
  active_at: 'two ends that are apart: most records are on either side of each',
  effective_date_for_update: 'one of several ends, whichever is set',
};
const FEW = 200;
/** What is in an environment, with what a tenant begins with. */
const OWN = MANY + 10;

/** By the name of a condition, or by the path of one list and the name. */
const VALUES: Record<string, unknown> = {
  priority: '1',
  active_at: '2025-02-01T00:00:00Z',
  effective_date_for_update: '2025-02-01T00:00:00Z',
  trial_end_due_lte: '2025-02-01T00:00:00Z',
  start_date_lt: '2025-01-08T00:00:00Z',
  period_start_gte: '2026-11-25T00:00:00Z',
  period_start_lte: '2025-01-05T00:00:00Z',
  period_end_gte: '2026-12-25T00:00:00Z',
  period_end_lte: '2025-02-04T00:00:00Z',
  amount_due_gt: '990',
  amount_remaining_gt: '0',
  external_customer_id: 'external_5007',
  payment_status: 'PENDING',
  invoice_type: 'ONE_OFF',
  invoice_status: 'DRAFT',
  subscription_status: 'trialing',
  event_names: 'plan.created',
  billing_periods: 'ANNUAL',
  billing_period: 'ANNUAL',
  endpoint_status: 'disabled',
  action: 'deleted',
  '/events/corrections action': 'void',
  '/events/corrections event_name': 'event_7',
  name_contains: 'Name 1007',
  addon_type: 'multiple_instance',
  workflow_status: 'Failed',
  task_status: 'FAILED',
  connection_ids: 'conn_000007a',
  event_types: 'invoice.paid',
  event_state: 'processed',
  provider_type: 'directory',
  parent_subscription_ids: 'subs_000007a',
  invoicing_customer_ids: 'cust_000007a',
  parent_customer_ids: 'cust_000011a',
  parent_price_id: 'price_000042a',
  addon_association_ids: 'addon_assoc_7',
  subscription_id: 'subs_000005a',
  lookupKey: 'cost-7',
  costsheetIDs: ['cost_000007a'],
  tax_rate_ids: 'taxrate_000007a',
  taxrate_ids: 'taxrate_000007a',
  taxrate_codes: 'TAX7',
  subscription_phase_ids: 'phase_7',
  subscription_ids: 'subs_000005a',
  credit_note_status: 'VOIDED',
  credit_note_type: 'REFUND',
  credits_available_gt: '990',
  expiry_date_before: '2025-01-05T00:00:00Z',
  expiry_date_after: '2026-12-25T00:00:00Z',
};
/** Said with another condition, or the same in other words. */
const APART = new Set([
  'period_start',
  'period_end',
  'current_period_start',
  'queryFilter',
  'timeRangeFilter',
  'tenantID',
  'environmentID',
]);
/** Lists whose answer is the records alone. */
const WITHOUT_POSITION = new Set<string>(['/taxes/rates']);
const GRAMMAR = new Set([
  'limit',
  'offset',
  'cursor',
  'order',
  'sort',
  'expand',
  'filters',
  'metadata',
  'status',
  'start_time',
  'end_time',
]);

/** The record whose list it is. */
function ofNoun(path: string): string {
  if (path.startsWith('/addons')) return 'addon_005007a';
  if (path.startsWith('/payments/customers')) return 'cust_000007a';
  if (path.startsWith('/subscriptions')) return 'subs_000007a';
  return path.startsWith('/wallets') ? 'wallet_000007a' : 'plan_005007a';
}

type Asked = Record<string, unknown>;
type Record_ = Record<string, unknown>;
const shapeOf = (route: Route) => ((route.query ?? route.body) as z.ZodObject).shape;
/** Pages of what is computed, and of no table: their figures are read whole, whatever the page. */
const COMPUTED = /^\/(costs\/analytics|dashboard\/)/;
const lists = routes.filter(({ path, query, body }) => {
  if (COMPUTED.test(path)) return false;
  const shape = query ?? body;
  return shape instanceof z.ZodObject && 'limit' in shape.shape && 'offset' in shape.shape;
});

describe('lists of ten thousand records', function () {
  this.timeout(120_000);
  let api: TestApi;
  let statements: StatementRecorder;

  before(async () => {
    api = await startTestApi();
    const environment = await api.request('POST', '/environments', { body: { name: 'Other', type: 'development' } });
    const stranger = await api.otherTenant();
    const elsewhere = { ...api.scope, environment_id: environment.body.id };
    await seedMany(api.services.postgres, [api.scope, elsewhere, stranger.scope]);
    statements = await StatementRecorder.open(api.services.postgres);
  });
  after(async () => {
    await statements.close();
    await api.stop();
  });

  it('are all lists and searches of the route table', () => expect(lists.length).to.be.greaterThan(40));

  for (const route of lists)
    it(`${route.method.toUpperCase()} ${route.path}`, async () => {
      const shape = shapeOf(route);
      const some = await itemsOf(route, { limit: 1, offset: 2500 });
      const record = some[0] ?? (await itemsOf(route, {}))[0] ?? {};
      const own = Object.keys(shape).filter((name) => !GRAMMAR.has(name) && !APART.has(name));
      for (const name of own) await conditionReadsWhatItFinds(route, name, valueOf(route, name, record));
      if ('metadata' in shape && record.metadata) await metadataReadsWhatItFinds(route, record.metadata as Record_);
      for (const column of await sortsOf(route)) {
        await sortsWhole(route, column);
        if (isText(record[column])) await filtersWhole(route, column, record[column]);
      }
      if (!('sort' in shape)) await continuesByCursor(route, {});
      for (const path of await allowed(route, 'expand')) await asksOnceForAll(route, path);
    });

  /** The words that a route takes in this place, by what it says of one that it does not. */
  async function allowed(route: Route, name: 'sort' | 'expand'): Promise<string[]> {
    if (!(name in shapeOf(route))) return [];
    return ((await ask(route, { [name]: 'no_such~' }, 'allowed')).body.details?.allowed as string[] | undefined) ?? [];
  }

  /** A list and its search sort by one grammar (standard-routes.ts), so that its columns are asked for once. */
  async function sortsOf(route: Route): Promise<string[]> {
    const hasSearch = route.method === 'get' && lists.some(({ path }) => path === `${route.path}/search`);
    return hasSearch ? ['created_at'] : allowed(route, 'sort');
  }

  async function conditionReadsWhatItFinds(route: Route, name: string, value: unknown) {
    const { answer, sent } = await during(route, { [name]: value });
    const total = totalOf(answer);
    for (const item of itemsIn(answer)) if (isOfRecord(name, item, value)) expect(item[name], name).to.equal(value);
    for (const one of sent) {
      const { reads, answered } = await explained(one, `${name}=${value}`);
      const found = /^select count\(/.test(one.sql) ? (total ?? MANY) : answered;
      const most = Math.max(0, ...reads.map(({ rows }) => rows));
      const isNamed = name in WALKS || `${route.path} ${name}` in WALKS;
      if (!isNamed) expect(most, `${name}=${value} finds ${found}: ${one.sql}`).to.be.at.most(4 * found + FEW);
    }
  }

  async function metadataReadsWhatItFinds(route: Route, metadata: Record_) {
    const [[key, value]] = Object.entries(metadata) as [[string, unknown]];
    const asked = route.method === 'get' ? { [`metadata[${key}]`]: value } : { metadata: { [key]: value } };
    const { answer, sent } = await during(route, asked);
    for (const item of itemsIn(answer)) expect(item.metadata).to.include({ [key]: value });
    for (const one of sent) await explained(one, 'metadata');
  }

  /** The last page from one end is the first one from the other, so that no record is left out or told twice. */
  async function sortsWhole(route: Route, column: string) {
    const { answer, sent } = await during(route, { sort: column, order: 'desc', limit: 20 });
    for (const one of sent) await explained(one, `sort ${column}`);
    const first = idsOf(answer);
    const total = totalOf(answer);
    if (total === undefined) return;
    const last = await during(route, { sort: column, order: 'asc', limit: 20, offset: Math.max(0, total - 20) });
    expect(new Set(first).size, column).to.equal(Math.min(20, total));
    expect(idsOf(last.answer).reverse(), `${route.path} by ${column}`).to.deep.equal(first);
    for (const order of ['asc', 'desc']) await continuesByCursor(route, { sort: column, order });
  }

  /** The page by cursor is the one by offset, for one taken from the middle of the list. */
  async function continuesByCursor(route: Route, sorted: Asked) {
    if (WITHOUT_POSITION.has(route.path)) return;
    const total = totalOf((await during(route, { ...sorted, limit: 1 })).answer) ?? OWN;
    const [limit, offset] = total > 2500 ? [20, 2480] : [Math.max(1, total >> 2), 0];
    const { answer } = await during(route, { ...sorted, limit, offset });
    const cursor = cursorOf(answer);
    const byOffset = await during(route, { ...sorted, limit, offset: offset + limit });
    if (cursor === null) return expect(idsOf(byOffset.answer), route.path).to.deep.equal([]);
    const byCursor = await during(route, { ...sorted, limit, cursor });
    expect(idsOf(byCursor.answer), `${route.path} ${JSON.stringify(sorted)}`).to.deep.equal(idsOf(byOffset.answer));
    for (const one of byCursor.sent) await explained(one, 'cursor');
  }

  async function filtersWhole(route: Route, field: string, text: string) {
    const filters = [{ field, operator: 'eq', data_type: 'string', value: { string: text } }];
    const stated = route.method === 'get' ? JSON.stringify(filters) : filters;
    const { answer, sent } = await during(route, { filters: stated, limit: 20 });
    expect(itemsIn(answer), `${route.path} with ${field}=${text}`).to.not.deep.equal([]);
    for (const item of itemsIn(answer)) expect(item[field]).to.equal(text);
    for (const one of sent) await explained(one, `filter ${field}`);
  }

  async function asksOnceForAll(route: Route, path: string) {
    const few = await during(route, { expand: path, limit: 60 });
    const many = await during(route, { expand: path, limit: 180 });
    expect(many.sent.length, `statements of ${route.path} with expand=${path}`).to.be.at.most(few.sent.length);
    for (const one of many.sent) await explained(one, `expand ${path}`);
  }

  /** Its plan: by indexes alone, and through no more than is the caller's own. */
  async function explained(one: Statement, what: string) {
    const plan = await statements.explain(one);
    const ours = plan.reads.filter(({ table }) => SEEDED.includes(table));
    const where = `${what}: ${JSON.stringify(ours)} ${one.sql}`;
    expect(
      ours.filter(({ way }) => way.startsWith('Seq Scan')),
      where,
    ).to.deep.equal([]);
    // What lies above the environments is of both of them.
    for (const { rows, table } of ours)
      expect(rows, where).to.be.at.most(/^(users|environments)$/.test(table) ? 2 * OWN : OWN);
    return { ...plan, reads: ours };
  }

  async function during(route: Route, asked: Asked) {
    const { result, statements: sent } = await statements.during((request_id) => ask(route, asked, request_id));
    expect(result.status, `${route.path} ${JSON.stringify(asked)}: ${result.text.slice(0, 300)}`).to.equal(200);
    return { answer: result.body as Answer, sent: sent.filter(({ sql }) => sql.startsWith('select')) };
  }

  async function itemsOf(route: Route, asked: Asked): Promise<Record_[]> {
    return itemsIn((await during(route, asked)).answer);
  }

  function ask(route: Route, asked: Asked, request_id: string) {
    const headers = { 'x-request-id': request_id };
    const path = route.path.replace(/:\w+/g, (name) =>
      name === ':external_id' ? 'external_5007' : ofNoun(route.path),
    );
    if (route.method !== 'get') return api.request('POST', path, { body: asked, headers });
    return api.request('GET', `${path}?${new URLSearchParams(asked as Record<string, string>)}`, { headers });
  }
});

type Answer = {
  items?: Record_[];
  environments?: Record_[];
  pagination?: { total: number; next_cursor: string | null };
  total?: number;
  next_cursor?: string | null;
};

const totalOf = (answer: Answer) => answer.pagination?.total ?? answer.total;

const cursorOf = (answer: Answer) => (answer.pagination ?? answer).next_cursor;

function itemsIn(answer: Answer | Record_[]): Record_[] {
  if (Array.isArray(answer)) return answer;
  const { schedules, connections } = answer as { schedules?: Record_[]; connections?: Record_[] };
  return answer.items ?? answer.environments ?? schedules ?? connections ?? [];
}

const idsOf = (answer: Answer) => itemsIn(answer).map((item) => item.id ?? item.workflow_id);

/** A condition that has the name of a field means it, but for a part of a name. */
const isOfRecord = (name: string, item: Record_, value: unknown) =>
  name in item && name !== 'name' && typeof value !== 'object' && typeof item[name] === typeof value;

/** Of a column that holds a text, and no instant or number, which are texts in an answer, too. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && /^(?!\d{4}-\d\d-)(?!-?[\d.]+$)./.test(value);

/** That of a record in the middle, unless it is stated; a list that nobody has a value of is a mistake of this file. */
function valueOf(route: Route, name: string, record: Record_): unknown {
  const single = name.replace(/ies$/, 'y').replace(/s$/, '');
  const own = [name, single, ...(/_ids?$/.test(name) ? ['id'] : [])].map((key) => record[key]);
  const value =
    VALUES[`${route.path} ${name}`] ??
    VALUES[name] ??
    own.find((one) => one !== undefined && one !== null && one !== '');
  const flag = shapeOf(route)[name]!.safeParse(true).success;
  expect(value !== undefined || flag, `a value for ${name} of ${route.path}`).to.equal(true);
  return value ?? true;
}
