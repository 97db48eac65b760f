/** What every table does the same way: a change, many rows, a lookup. */
import { expect } from 'chai';
import { createdBy } from '../../../../core/foundation/stamp.ts';
import { CustomerModel } from '../../../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../../../storage/models/catalog/feature.ts';
import { PlanModel } from '../../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../../storage/models/catalog/price.ts';
import { EnvironmentModel } from '../../../../storage/models/foundation/environment.ts';
import { TenantModel } from '../../../../storage/models/foundation/tenant.ts';
import { WorkflowRunModel } from '../../../../storage/models/foundation/workflow-run.ts';
import { InvoiceModel } from '../../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../../storage/models/invoicing/invoice-line-item.ts';
import { MeterModel } from '../../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../../storage/models/subscriptions/subscription-line-item.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const ELSEWHERE = { tenant_id: 'tenant_a', environment_id: 'env_b' };
const MADE = { user_id: 'user_1', now: new Date('2026-03-01T00:00:00Z') };
const LATER = { user_id: 'user_2', now: new Date('2026-03-02T00:00:00Z') };

const MODELS = [
  CustomerModel,
  FeatureModel,
  InvoiceLineItemModel,
  InvoiceModel,
  MeterModel,
  PlanModel,
  PriceModel,
  SubscriptionLineItemModel,
  SubscriptionModel,
  WorkflowRunModel,
];

describe('a table of a tenant and environment', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  for (const model of MODELS)
    it(`${model.tableName}: what its record has as JSON, the table has as JSON, and nothing else`, async () => {
      const { rows } = await database.postgres.raw(
        `select column_name from information_schema.columns
          where table_schema = 'public' and table_name = ? and data_type in ('json', 'jsonb')`,
        [model.tableName],
      );
      const columns = rows.map(({ column_name }: { column_name: string }) => column_name);
      expect(model.jsonAttributes).to.have.members(columns);
    });

  const customers = (ids: readonly string[]) =>
    CustomerModel.addAll(
      SCOPE,
      ids.map((id) => ({ id, external_id: id, name: id, timezone: 'UTC', ...createdBy(MADE) })),
      { database: database.postgres },
    );
  const meter = (id: string) =>
    MeterModel.add(
      SCOPE,
      {
        id,
        name: id,
        event_name: id,
        aggregation: { type: 'COUNT' },
        filters: [],
        reset_usage: 'BILLING_PERIOD',
        ...createdBy(MADE),
      },
      { database: database.postgres },
    );

  it('takes more rows than one statement has parameters for, and answers them in their order', async () => {
    const ids = Array.from({ length: 4_000 }, (_, n) => `many_${4_000 - n}`);
    const added = await customers(ids);
    expect(added.map(({ id }) => id)).to.deep.equal(ids);
    expect(added[0]).to.include({ ...SCOPE, created_by: 'user_1' });
    expect(await customers([])).to.deep.equal([]);
  });

  it('adds all rows or none', async () => {
    const found = await database.postgres
      .transaction((transaction) =>
        CustomerModel.addAll(
          SCOPE,
          [{ id: 'one' }, { id: 'one' }].map((row) => ({ ...row, external_id: 'one', name: '', ...createdBy(MADE) })),
          {
            database: transaction,
          },
        ),
      )
      .catch((error: unknown) => error);
    expect(found).to.include({ code: 'already_exists' });
    expect((await CustomerModel.byId(SCOPE, ['one'], database.postgres)).size).to.equal(0);
  });

  it('finds records by id, each once, and none of another environment', async () => {
    await customers(['a', 'b']);
    const found = await CustomerModel.byId(SCOPE, ['b', 'a', 'b', null, undefined, '', 'unknown'], database.postgres);
    expect([...found.keys()].sort()).to.deep.equal(['a', 'b']);
    expect(found.get('a')).to.be.instanceOf(CustomerModel).and.include({ external_id: 'a' });
    expect((await CustomerModel.byId(ELSEWHERE, ['a'], database.postgres)).size).to.equal(0);
  });

  it('stamps a change with who made it, or with the time alone', async () => {
    const [made] = await customers(['changed']);
    const renamed = await CustomerModel.change(made!, { name: 'new' }, { by: LATER, database: database.postgres });
    expect(renamed).to.include({ name: 'new', updated_at: '2026-03-02T00:00:00Z', updated_by: 'user_2' });
    const now = new Date('2026-03-03T00:00:00Z');
    const again = await CustomerModel.change(renamed, { name: 'newer' }, { by: { now }, database: database.postgres });
    expect(again).to.include({ name: 'newer', updated_at: '2026-03-03T00:00:00Z', updated_by: 'user_2' });
    expect(again.created_at).to.equal(made!.created_at);
  });

  it('changes the version that was read, and refuses when another came in between', async () => {
    const read = await meter('meter_1');
    const by = { by: LATER, database: database.postgres };
    const changed = await MeterModel.change(read, { name: 'first' }, by);
    expect(changed).to.include({ name: 'first', version: read.version + 1 });
    const refused = await MeterModel.change(read, { name: 'second' }, by).catch((error: unknown) => error);
    expect(refused).to.include({ code: 'version_conflict' });
    expect(await MeterModel.fetch(SCOPE, 'meter_1', by)).to.include({ name: 'first', version: read.version + 1 });
  });

  it('says what a change would make twice', async () => {
    const [one] = await customers(['first', 'second']);
    const by = { by: LATER, database: database.postgres, conflict: 'taken' };
    const refused = await CustomerModel.change(one!, { external_id: 'second' }, by).catch((error: unknown) => error);
    expect(refused).to.include({ code: 'already_exists', message: 'taken' });
  });

  it('changes and finds what lies above the environments', async () => {
    const stamp = { created_at: MADE.now.toISOString(), updated_at: MADE.now.toISOString() };
    await TenantModel.add({ id: 'tenant_a', name: 'A', ...stamp }, { database: database.postgres });
    const record = { id: 'env_1', tenant_id: 'tenant_a', name: 'Test', type: 'development', ...createdBy(MADE) };
    const made = await EnvironmentModel.add(record, { database: database.postgres });
    const renamed = await EnvironmentModel.change(made, { name: 'Stage' }, { by: LATER, database: database.postgres });
    expect(renamed).to.include({ name: 'Stage', updated_by: 'user_2' });
    expect((await EnvironmentModel.byId('tenant_a', ['env_1'], database.postgres)).get('env_1')!.name).to.equal(
      'Stage',
    );
    expect((await EnvironmentModel.byId('tenant_b', ['env_1'], database.postgres)).size).to.equal(0);
  });
});
