/**
 * Every route of the table × no key, a wrong key, another tenant, another environment, too small a role: so that a route that is
 * added is asked here without anybody's doing. Whoever is outside names every record of the one inside, and learns and changes nothing.
 */
import { expect } from 'chai';
import { requestExample } from '../../api/http/openapi.ts';
import type { Route } from '../../api/http/route.ts';
import { routes } from '../../api/resources.ts';
import { startTestApi, type TestAnswer, type TestApi } from '../support/api.ts';
import { isLogProcessed, isSettled } from '../support/settled.ts';
import { until } from '../support/until.ts';

const asked = routes.filter(({ access }) => access !== 'public');
/** What lies above the environments is the same from each of them. */
const isTenantWide = ({ access }: Route) => /^(tenant|user|self|environment):/.test(access);
const ID = /\b[a-z]+(?:_[a-z]+)*_01[0-9A-HJKMNP-TV-Z]{24}\b/g;

describe('the walls around a tenant and an environment', () => {
  let api: TestApi;
  let stranger: { key: string };
  let other: { key: string };
  /** The ids of the one inside, by table. */
  const inside = new Map<string, string[]>();

  before(async () => {
    api = await startTestApi({ pipeline: true });
    const made = async <Path extends string>(path: Path, body: unknown) => {
      const answer = await api.request('POST', path, { body });
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
      return answer.body;
    };
    const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } };
    await made('/features', { name: 'Calls', type: 'metered', meter });
    const plan = await made('/plans', { name: 'Pro', lookup_key: 'pro' });
    const terms = { type: 'FIXED', billing_model: 'FLAT_FEE', billing_period: 'MONTHLY', billing_cadence: 'RECURRING' };
    const price = { ...terms, invoice_cadence: 'ADVANCE', currency: 'usd', amount: '10' };
    await made('/prices', { ...price, entity_type: 'PLAN', entity_id: plan.id });
    const customer = await made('/customers', { external_id: 'acme', name: 'Acme' });
    const period = { billing_period: 'MONTHLY', currency: 'usd', start_date: '2026-03-01T00:00:00Z' };
    await made('/subscriptions', { customer_id: customer.id, plan_id: plan.id, ...period });
    await made('/groups', { name: 'Calls', entity_type: 'price', lookup_key: 'calls' });
    // The pipeline still counts the past of the meter, and then changes its rows.
    const { postgres, log } = api.services;
    await until('the meter is live', () => isSettled(postgres, () => isLogProcessed(log)));
    await rememberInside();
    stranger = await api.otherTenant();
    const { id: environment_id } = await made('/environments', { name: 'Other', type: 'development' });
    const wanted = { name: 'k', type: 'private_key', environment_id };
    other = { key: (await made('/secrets/api/keys', wanted)).api_key };
  });
  after(() => api.stop());

  async function rememberInside() {
    const { rows } = await api.services.postgres.raw(
      `select table_name from information_schema.columns where table_schema = 'public' and column_name in ('id', 'tenant_id', 'environment_id')
        group by 1 having count(*) = 3`,
    );
    for (const { table_name } of rows) {
      const records = await api.services.postgres(table_name).where(api.scope).select('id');
      if (records.length > 0)
        inside.set(
          table_name,
          records.map(({ id }) => String(id)),
        );
    }
    expect([...inside.keys()]).to.include.members(['customers', 'features', 'invoices', 'meters', 'plans', 'prices']);
    expect([...inside.keys()]).to.include.members(['secrets', 'subscriptions', 'subscription_line_items']);
  }

  const send = ({ method, path, body }: Route, options: { key: string | null; id?: string; withBody?: boolean }) =>
    api.request(method.toUpperCase(), path.replace(/:\w+/g, options.id ?? 'none_such'), {
      key: options.key,
      ...(body && options.withBody !== false ? { body: requestExample({ body } as Route) ?? {} } : {}),
    });

  /** Records of the tables that the path is about; where no table has its words, one of each. */
  function namedBy({ path }: Route): (string | undefined)[] {
    if (!path.includes(':')) return [undefined];
    const words = path.split('/').filter((word) => word && !word.startsWith(':'));
    const tables = [...inside.keys()].filter((table) => words.some((word) => table.replaceAll('_', '').includes(word)));
    return (tables.length > 0 ? tables : [...inside.keys()]).map((table) => inside.get(table)![0]);
  }

  /** All rows of the one inside, but for when a key was used last and what is written about requests. */
  async function picture(): Promise<Map<string, string[]>> {
    const rows = new Map<string, string[]>();
    for (const table of inside.keys()) {
      if (table === 'secrets') continue;
      const own = await api.services.postgres(table).where(api.scope).orderBy('id');
      rows.set(
        table,
        own.map((row) => JSON.stringify(row)),
      );
    }
    return rows;
  }

  /** Compares table by table, and names the rows that differ. */
  function expectEqualPictures(now: Map<string, string[]>, before: Map<string, string[]>): void {
    for (const [table, rows] of now)
      expect(
        rows.filter((row) => !before.get(table)!.includes(row)),
        `rows of ${table} that were not so before`,
      ).to.deep.equal([]);
    const count = (all: Map<string, string[]>) => [...all].map(([table, { length }]) => `${table} ${length}`);
    expect(count(now)).to.deep.equal(count(before));
  }

  /** Returns a check that names the requests after which the one inside has a new audit entry, and the request that wrote it. */
  async function watchAudit(): Promise<(request: string) => Promise<void>> {
    const list = () => api.services.postgres('audit_entries').where(api.scope).orderBy('id');
    const known = (await list()).map(({ id }) => id);
    return async (request) => {
      const added = await list().whereNotIn('id', known);
      expect(added, `audit entries after ${request}`).to.deep.equal([]);
    };
  }

  it('403 for who has no role that allows it, on every route', async () => {
    const key = await api.keyWithRoles([], { user_type: 'service_account' });
    for (const route of asked) {
      const { status, body } = await send(route, { key });
      expect([status, body.code], `${route.method} ${route.path}`).to.deep.equal([403, 'permission_denied']);
    }
  });

  for (const who of ['another tenant', 'another environment'] as const) {
    it(`${who} names every record, on every route, and learns and changes nothing`, async function () {
      this.timeout(240_000);
      const before = await picture();
      const expectNoChange = await watchAudit();
      const { key } = who === 'another tenant' ? stranger : other;
      const own = new Set([...inside.values()].flat());
      // By which key its own one was made, the audit log of the other environment says.
      if (who === 'another environment') for (const id of inside.get('secrets')!) own.delete(id);
      for (const route of asked.filter((one) => who === 'another tenant' || !isTenantWide(one))) {
        for (const id of namedBy(route)) {
          const answer = await send(route, { key, ...(id === undefined ? {} : { id }) });
          expectNothing(answer, { route, id, own });
        }
        await expectNoChange(`${route.method} ${route.path}`);
      }
      expectEqualPictures(await picture(), before);
    });
  }

  // At the end: an address that tries wrong keys is told to wait, with keys that were not seen yet, too.
  for (const [who, key] of [
    ['no key', null],
    ['a wrong key', 'sk_00000000000000000000000000'],
  ] as const) {
    it(`401 for ${who}, on every route`, async () => {
      for (const route of asked) {
        const { status } = await send(route, { key });
        expect(status, `${route.method} ${route.path}`).to.be.oneOf(key === null ? [401] : [401, 429]);
      }
    });
  }

  /** Refused by name, or without any name of those inside; never a fault of ours. */
  function expectNothing(
    answer: TestAnswer,
    { route, id, own }: { route: Route; id: string | undefined; own: Set<string> },
  ) {
    const where = `${route.method} ${route.path} ${id ?? ''}: ${answer.status} ${answer.text.slice(0, 200)}`;
    // No pipeline runs here, so an event that is not there may be on its way.
    if (answer.status === 503 && route.path.startsWith('/events/')) return;
    expect(answer.status, where).to.be.below(500).and.not.be.oneOf([401, 429]);
    const told = new Set(answer.text.match(ID) ?? []);
    expect(
      [...told].filter((known) => known !== id && own.has(known)),
      where,
    ).to.deep.equal([]);
    // The record that is named in the path is not there for who asks.
    if (id !== undefined && answer.status < 300) expect(told.has(id), where).to.equal(false);
    if (id !== undefined && route.method === 'get') expect(answer.status, where).to.be.oneOf([200, 400, 403, 404]);
  }
});
