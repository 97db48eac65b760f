/** Lines of many records: as they would be read at once, in one snapshot, and in turn. */
import { expect } from 'chai';
import type { Knex } from 'knex';
import { InvoiceLineItemModel } from '../../../../storage/models/invoicing/invoice-line-item.ts';
import { LINES_AT_ONCE, loadLines } from '../../../../storage/models/invoicing/load-lines.ts';
import { connectPostgres } from '../../../../storage/postgres/pool/postgres.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';
import { type HoldingProxy, startHoldingProxy } from '../../../support/holding-proxy.ts';

describe('the lines of many invoices', () => {
  let api: TestApi;
  const ids: string[] = [];
  let customer_id: string;
  before(async () => {
    api = await startTestApi();
    customer_id = (await api.request('POST', '/customers', { body: { external_id: 'acme' } })).body.id;
    for (const count of [2, 3 * LINES_AT_ONCE + 7, LINES_AT_ONCE]) ids.push(await invoiceOf(count));
  });
  after(() => api.stop());

  /** Of two lines that were sent, and copies of the first behind them. */
  async function invoiceOf(count: number): Promise<string> {
    const body = {
      customer_id,
      currency: 'usd',
      invoice_type: 'ONE_OFF',
      ...{ amount_due: '2', total: '2', subtotal: '2' },
      line_items: ['a', 'b'].map((display_name) => ({ display_name, amount: '1', quantity: '1' })),
    };
    const { id } = (await api.request('POST', '/invoices', { body })).body;
    // Their ids are in another order than their positions.
    await api.services.postgres.raw(
      `insert into invoice_line_items
       select (jsonb_populate_record(line, jsonb_build_object('id', 'inv_line_' || md5(n::text) || right(line.id, 6), 'position', n, 'display_name', 'copy ' || n))).*
         from invoice_line_items line, generate_series(2, ? - 1) n where line.invoice_id = ? and line.position = 0`,
      [count, id],
    );
    return id;
  }

  const read = (database: Knex, invoice_ids: readonly string[]) =>
    loadLines(api.scope, { model: InvoiceLineItemModel, parent: 'invoice_id', ids: invoice_ids }, database);
  const names = (count: number) => Array.from({ length: count }, (_, n) => (n < 2 ? 'ab'[n] : `copy ${n}`));

  it('are those of each, in their order, however many', async () => {
    const found = await read(api.services.postgres, [...ids, 'inv_of_nobody']);
    expect([...found.keys()]).to.have.members(ids);
    for (const [index, count] of [2, 3 * LINES_AT_ONCE + 7, LINES_AT_ONCE].entries())
      expect(found.get(ids[index]!)!.map(({ display_name }) => display_name)).to.deep.equal(names(count));
    const { body } = await api.request('GET', '/invoices?limit=10');
    const shown = new Map(body.items.map((invoice) => [invoice.id, invoice.line_items!.length]));
    expect(ids.map((id) => shown.get(id))).to.deep.equal([2, 3 * LINES_AT_ONCE + 7, LINES_AT_ONCE]);
    const other = await api.otherTenant();
    expect(
      await loadLines(other.scope, { model: InvoiceLineItemModel, parent: 'invoice_id', ids }, api.services.postgres),
    ).to.be.empty;
  });

  describe('while they are computed anew', () => {
    let proxy: HoldingProxy;
    let slow: Knex;
    before(async () => {
      const { connectionSettings } = api.services.postgres.client as {
        connectionSettings: { connectionString: string };
      };
      proxy = await startHoldingProxy(connectionSettings.connectionString);
      slow = connectPostgres(proxy.url, { pool_max: 1 });
    });
    after(async () => {
      await slow.destroy();
      await proxy.close();
    });

    it('are as they were, and not half of them', async () => {
      const [, id] = ids as [string, string];
      const wentBy = proxy.hold('"id" > ');
      const reading = read(slow, [id]);
      await wentBy;
      await api.services.postgres('invoice_line_items').where({ invoice_id: id }).update({ status: 'archived' });
      proxy.release();
      expect((await reading).get(id)!.map(({ display_name }) => display_name)).to.deep.equal(
        names(3 * LINES_AT_ONCE + 7),
      );
      expect((await read(slow, [id])).get(id)).to.equal(undefined);
    });
  });
});
