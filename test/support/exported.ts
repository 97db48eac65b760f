/**
 * Checks that the usage export with amounts equals the invoices and the preview of a customer (docs/rules/usage.md,
 * "Amounts in the export").
 */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { InvoiceLine } from './answers.ts';
import { csvRecords } from './csv-records.ts';
import type { World } from './world.ts';

type ExportRows = Record<string, string>[];

/** Rows of usage exports by query. Tests share an export as long as nothing changes. */
export type Exports = Map<string, Promise<ExportRows>>;

export function downloadOnce(world: World, exports: Exports, query: string): Promise<ExportRows> {
  const download = exports.get(query) ?? downloadExport(world, query);
  exports.set(query, download);
  return download;
}

async function downloadExport(world: World, query: string): Promise<ExportRows> {
  const { status, text } = await world.api.request('GET', `/events/usage/export?${query}`);
  expect(status, text).to.equal(200);
  return csvRecords(text);
}

/**
 * Compares the export of the range with the charges, once whole and once split by day. `range` covers everything that
 * was invoiced. Corrections are compared once they are invoiced.
 */
export async function expectExport(world: World, customer: string, range: string): Promise<void> {
  const charged = await chargedOf(world, customer);
  for (const split of ['', '&split=day']) {
    const all = await downloadExport(world, `amounts=true&${range}${split}`);
    const rows = all.filter((row) => row.external_customer_id === customer && row.amount);
    const said = rows.map((row) => [row.invoice_id!, row.amount!] as const);
    expect(byInvoice(said), `${customer} ${split}`).to.deep.equal(charged);
  }
}

/** Amounts of the usage lines of each invoice, and of the preview, which has no id. */
async function chargedOf(world: World, customer: string): Promise<Record<string, string>> {
  const all = [...(await world.invoices(customer)), await world.preview(customer)];
  const lines = all.flatMap(({ id, line_items }) => line_items.map((line) => ({ ...line, id })));
  const isThere = ({ id, price_type, display_name }: InvoiceLine) =>
    price_type === 'USAGE' && !display_name!.includes('true-up') && (id !== '' || !display_name!.includes('late'));
  return byInvoice(lines.filter(isThere).map(({ id, amount }) => [id, amount] as const));
}

/** Sums by invoice, without those that are 0. */
function byInvoice(amounts: readonly (readonly [string, string])[]): Record<string, string> {
  const ids = [...new Set(amounts.map(([id]) => id))].sort();
  const sums = ids.map((id) => {
    const sum = sumDecimals(amounts.filter(([one]) => one === id).map(([, amount]) => new Decimal(amount)));
    return [id, sum.toFixed()] as const;
  });
  return Object.fromEntries(sums.filter(([, sum]) => sum !== '0'));
}
