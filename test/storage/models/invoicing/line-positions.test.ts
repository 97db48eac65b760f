/** Lines of one instant stood in the order of their ids: the migration writes it down, and nothing reads ids for it after. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { loadWithLines } from '../../../../actions/invoicing/records/invoice-records.ts';
import { InvoiceModel } from '../../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../../storage/models/invoicing/invoice-line-item.ts';
import { type FreshDatabase, freshDatabase } from '../../../support/stores.ts';

const MIGRATION = readFileSync(join(import.meta.dirname, '../../../../sql/postgres/0061-line-positions.sql'), 'utf8');
const SCOPE = { tenant_id: 'tenant_a', environment_id: 'env_a' };
const [FIRST, LATER] = ['2026-03-01T00:00:00.000Z', '2026-03-01T00:00:00.001Z'];

describe('the positions of lines', () => {
  let database: FreshDatabase;
  before(async () => {
    database = await freshDatabase();
  });
  after(() => database.close());

  const invoice = (id: string) =>
    InvoiceModel.add(
      SCOPE,
      {
        ...{ id, customer_id: 'cust_1', invoice_type: 'ONE_OFF', invoice_status: 'DRAFT', payment_status: 'PENDING' },
        ...{ billing_reason: 'MANUAL', currency: 'USD' },
      },
      { database: database.postgres },
    );
  const line = (id: string, invoice_id: string, fields: object) => ({
    ...SCOPE,
    ...{ id, invoice_id, customer_id: 'cust_1', quantity: '1', amount: '1', currency: 'USD', created_at: FIRST },
    ...fields,
  });

  it('are, for lines from before, the order of their instants and ids', async () => {
    const { postgres } = database;
    await invoice('inv_1');
    await invoice('inv_2');
    await postgres.raw('alter table subscription_line_items drop column position');
    await postgres.raw('alter table invoice_line_items drop column position');
    await postgres('invoice_line_items').insert([
      line('d', 'inv_1', { created_at: LATER }),
      line('a', 'inv_1', { created_at: LATER }),
      line('z', 'inv_1', {}),
      line('c', 'inv_2', {}),
      line('b', 'inv_2', {}),
    ]);
    await postgres.raw(MIGRATION);
    const rows = await postgres('invoice_line_items').orderBy(['invoice_id', 'position']);
    expect(rows.map(({ id, position }) => `${id} ${position}`)).to.deep.equal(['z 0', 'a 1', 'd 2', 'b 0', 'c 1']);
  });

  it('are the order in which lines are read, whatever their ids and instants', async () => {
    const made = await invoice('inv_3');
    const lines = [line('z', 'inv_3', { created_at: LATER }), line('m', 'inv_3', {}), line('a', 'inv_3', {})];
    const records = lines.map((record, position) => ({ ...record, id: `third_${record.id}`, position }));
    await InvoiceLineItemModel.addAll(SCOPE, records, { database: database.postgres });
    const { line_items } = await loadWithLines(made, database.postgres);
    expect(line_items.map(({ id }) => id)).to.deep.equal(['third_z', 'third_m', 'third_a']);
  });

  it('are one per line', async () => {
    await invoice('inv_4');
    const twice = ['p', 'q'].map((id) => ({ ...line(id, 'inv_4', {}), position: 0 }));
    const refused = await InvoiceLineItemModel.addAll(SCOPE, twice, { database: database.postgres }).catch(
      (error: unknown) => error,
    );
    expect(refused).to.include({ code: 'already_exists' });
  });
});
