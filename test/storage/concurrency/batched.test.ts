/** What many do side by side in one transaction goes to the database as one statement, and each has its own answer. */
import { expect } from 'chai';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { joinBatch, mapBatched, waitAtBarrier } from '../../../storage/concurrency/batched.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { loadColumnTypes } from '../../../storage/models/foundation/column-types.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const ELSEWHERE = { tenant_id: 'tenant_a', environment_id: 'env_b' };
const MADE = { user_id: 'user_1', now: new Date('2026-03-01T00:00:00Z') };
const LATER = { user_id: 'user_2', now: new Date('2026-03-02T00:00:00.123Z') };

describe('records side by side in one transaction', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
    // A process asks once for the types of the columns of a table: before the statements are counted.
    await Promise.all(
      ['customers', 'system_events'].map((tableName) => loadColumnTypes({ tableName }, [], database.postgres)),
    );
  });
  after(() => database.close());

  const customer = (id: string, fields: object = {}) => ({
    id,
    external_id: id,
    name: id,
    timezone: 'UTC',
    ...fields,
    ...createdBy(MADE),
  });
  const add = (ids: readonly string[], fields: object = {}) =>
    CustomerModel.addAll(
      SCOPE,
      ids.map((id) => customer(id, fields)),
      { database: database.postgres },
    );

  /** What came of it, and the statements that it took. */
  async function inOne<Item, Made>(
    items: readonly Item[],
    work: (transaction: Transaction, item: Item) => Promise<Made>,
  ): Promise<{ made: Made[]; statements: string[] }> {
    const statements: string[] = [];
    const made = await database.postgres.transaction(async (transaction) => {
      transaction.on('query', ({ sql }: { sql: string }) => {
        if (!/^(?:BEGIN|COMMIT)/.test(sql)) statements.push(sql);
      });
      return mapBatched(transaction, items, (item) => work(transaction, item));
    });
    return { made, statements };
  }

  it('added: one statement, one for what is told of them, each its own, exact in text, number and JSON', async () => {
    const metadata = { z: '1', a: '12345678901234567890.10' };
    const { made, statements } = await inOne(['add 1', 'add 2', 'add 3'], (transaction, id) =>
      CustomerModel.add(SCOPE, customer(id, { metadata, name: `"${id}"\n` }), { database: transaction }),
    );
    expect(statements).to.have.length(2);
    expect(made.map(({ id, name }) => [id, name])).to.deep.equal(
      ['add 1', 'add 2', 'add 3'].map((id) => [id, `"${id}"\n`]),
    );
    await add(['add alone'], { metadata });
    const stored = await CustomerModel.byId(SCOPE, ['add 1', 'add alone'], database.postgres);
    const { id: _1, external_id: _2, name: _3, ...one } = stored.get('add 1')!;
    const { id: _4, external_id: _5, name: _6, ...alone } = stored.get('add alone')!;
    expect(one).to.deep.equal(alone);
    expect(made[0]).to.deep.equal(stored.get('add 1'));
    const { rows } = await database.postgres.raw(
      `select entity_id, action, user_id, after ->> 'name' as name from audit_entries where entity_id like 'add _' order by entity_id`,
    );
    expect(rows).to.deep.equal(
      ['add 1', 'add 2', 'add 3'].map((entity_id) => ({
        entity_id,
        action: 'created',
        user_id: 'user_1',
        name: `"${entity_id}"\n`,
      })),
    );
  });

  it('appended: one statement, and what is JSON stays as it was, with its keys in their order', async () => {
    const payloads = [{ z: '"quoted"\n\\', a: ['ü', '漢', '\u{1F600}'], n: 12.5 }, { '': {}, x: null }, {}];
    const event = (index: number) => ({
      id: `append ${index}`,
      event_name: 'customer.created',
      entity_type: 'customer',
      entity_id: `it's {${index}}`,
      payload: payloads[index],
      ...createdBy(MADE),
    });
    const { statements } = await inOne([0, 1, 2], (transaction, index) =>
      SystemEventModel.append(SCOPE, event(index), { database: transaction }),
    );
    expect(statements).to.have.length(1);
    const { rows } = await database.postgres.raw(
      `select id, entity_id, payload::text, tenant_id, created_at from system_events where id like 'append _' order by sequence`,
    );
    expect(rows).to.deep.equal(
      payloads.map((payload, index) => ({
        id: `append ${index}`,
        entity_id: `it's {${index}}`,
        payload: JSON.stringify(payload),
        tenant_id: 'tenant_a',
        created_at: '2026-03-01T00:00:00Z',
      })),
    );
  });

  it('changed: to values of their own by one statement; what is the same is not written, and not told', async () => {
    const records = await add(['change 1', 'change 2', 'change 3']);
    const names = ['new 1', 'change 2', 'new 3'];
    const { made, statements } = await inOne(records, (transaction, record) =>
      CustomerModel.change(
        record,
        { name: names[records.indexOf(record)]!, metadata: { at: record.id } },
        { by: LATER, database: transaction },
      ),
    );
    expect(statements).to.have.length(2);
    expect(
      made.map(({ name, metadata, updated_at, updated_by }) => [name, metadata, updated_at, updated_by]),
    ).to.deep.equal(
      names.map((name, index) => [name, { at: `change ${index + 1}` }, '2026-03-02T00:00:00.123Z', 'user_2']),
    );
    const again = await inOne(made, (transaction, record) =>
      CustomerModel.change(record, { name: 'new 1' }, { by: MADE, database: transaction }),
    );
    expect(again.made.map(({ updated_by }) => updated_by)).to.deep.equal(['user_2', 'user_1', 'user_1']);
    const { rows } = await database.postgres.raw(
      `select entity_id, before ->> 'name' as before, after ->> 'name' as after from audit_entries
        where entity_id like 'change _' and action = 'updated' order by created_at desc, entity_id`,
    );
    expect(
      rows.map(({ entity_id, before, after }: Record<string, string>) => [entity_id, before, after]),
    ).to.deep.equal([
      ['change 1', 'change 1', 'new 1'],
      ['change 2', 'change 2', 'change 2'],
      ['change 3', 'change 3', 'new 3'],
      ['change 2', 'change 2', 'new 1'],
      ['change 3', 'new 3', 'new 1'],
    ]);
  });

  it('looked up, locked and listed: each has what it asked for, of its own environment', async () => {
    await add(['look 1', 'look 2']);
    await CustomerModel.add(ELSEWHERE, customer('look 3'), { database: database.postgres });
    const { made, statements } = await inOne(['look 1', 'look 2', 'look 3'], async (transaction, id) => ({
      byId: [...(await CustomerModel.byId(SCOPE, [id, 'look 1', null], transaction)).keys()],
      list: (await CustomerModel.listBy(SCOPE, { column: 'external_id', value: id }, transaction)).map((one) => one.id),
      fetched: await CustomerModel.fetch(SCOPE, id, { database: transaction, lock: true }).then(
        (one) => one.id,
        (error) => error.message,
      ),
    }));
    expect(statements).to.have.length(3);
    expect(statements[2]).to.contain('order by "id" asc for update');
    expect(made).to.deep.equal([
      { byId: ['look 1'], list: ['look 1'], fetched: 'look 1' },
      { byId: ['look 2', 'look 1'], list: ['look 2'], fetched: 'look 2' },
      { byId: ['look 1'], list: [], fetched: made[2]!.fetched },
    ]);
    expect(made[2]!.fetched).to.contain('look 3');
  });

  it('of two kinds at one time: a statement for each kind', async () => {
    const { statements } = await inOne(['1', '2', '3', '4'], async (transaction, id) => {
      if (Number(id) % 2 === 0) await CustomerModel.byId(SCOPE, [id], transaction);
      else await PlanModel.byId(SCOPE, [id], transaction);
    });
    expect(statements).to.have.length(2);
  });

  it('one that fails: nothing of any of them, and nobody goes on behind the end', async () => {
    await add(['taken']);
    const ended: string[] = [];
    const failing = database.postgres.transaction((transaction) =>
      mapBatched(transaction, ['fail 1', 'taken', 'fail 2'], async (id) => {
        try {
          if (id === 'fail 2') await CustomerModel.byId(SCOPE, [id], transaction);
          await CustomerModel.add(SCOPE, customer(id), { database: transaction, conflict: `${id} is there` });
        } finally {
          ended.push(id);
        }
      }),
    );
    const error = await failing.catch((thrown: Error) => thrown);
    expect(error).to.be.an('error');
    expect(ended).to.have.members(['fail 1', 'taken', 'fail 2']);
    expect((await CustomerModel.byId(SCOPE, ['fail 1', 'fail 2'], database.postgres)).size).to.equal(0);
  });

  it('in step: who comes later is waited for, who goes another way or fails is not, and then all ask as one', async () => {
    await add(['step 1', 'step 2', 'step 3']);
    const statements: string[] = [];
    // Those of the second come when the database has answered them something else.
    const groups = [() => Promise.resolve(), () => database.postgres.raw('select 1')];
    const asking = database.postgres.transaction(async (transaction) => {
      transaction.on('query', ({ sql }: { sql: string }) => void statements.push(sql));
      await mapBatched(transaction, ['step 1', 'step 2', 'step 3', 'elsewhere', 'fails'], async (id) => {
        if (id === 'elsewhere') return;
        if (id === 'fails') throw new Error('one of them');
        await groups[Number(id.at(-1)) % 2]!();
        await waitAtBarrier(transaction);
        await CustomerModel.byId(SCOPE, [id], transaction);
        // Whoever does several things itself holds nobody up either.
        await mapBatched(transaction, id === 'step 1' ? [1, 2, 3] : [1], () => waitAtBarrier(transaction));
      });
    });
    expect(await asking.catch(({ message }: Error) => message)).to.equal('one of them');
    expect(statements.filter((sql) => sql.includes('"customers"'))).to.have.length(1);
  });

  it('in another transaction each goes by itself', async () => {
    let asked_max = 0;
    await database.postgres.transaction(async (transaction) => {
      const ask = (asked: number) =>
        joinBatch(transaction, { key: 'alone', query: asked }, async (all) => {
          asked_max = Math.max(asked_max, all.length);
          return all;
        });
      expect(await Promise.all([ask(1), ask(2)])).to.deep.equal([1, 2]);
      await waitAtBarrier(transaction);
    });
    expect(asked_max).to.equal(1);
  });
});
