/**
 * The account of a customer as text: events, changes and grants, the state of its subscriptions and wallets, and each
 * invoice with its lines, by date.
 */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import type { Invoice, InvoiceLine } from './answers.ts';
import type { World } from './world.ts';

/** Order at equal instants: first actions, then the state of subscriptions, then invoices and wallets. */
type Entry = { readonly at: string; readonly order: number; readonly lines: readonly string[] };

type AccountEntry = { readonly at: string; readonly text: string };

export type Account = { readonly text: string; readonly invoiced: string; readonly credit_adjustments: string };

/** `customers`: names of the customers whose subscriptions and wallets are shown. */
export async function buildAccount(
  world: World,
  customers: readonly string[],
  extra: readonly AccountEntry[],
): Promise<Account> {
  const invoices = (await Promise.all(customers.map((customer) => world.invoices(customer)))).flat();
  const given = (await Promise.all(customers.map((customer) => givenBack(world, customer)))).flat();
  const states = (await Promise.all(customers.map((customer) => statesOf(world, customer)))).flat();
  const entries: Entry[] = [
    ...extra.map(({ at, text: said }) => ({ at: iso(at), order: 0, lines: [said] })),
    ...states,
    ...invoices.map(invoiceEntry),
    ...given.map(({ created_at, amount, type }) => ({
      at: iso(created_at),
      order: 3,
      lines: [`${type === 'debit' ? 'out of' : 'into'} the wallet: ${plain(amount)}`],
    })),
  ];
  const sorted = entries.toSorted((a, b) => a.at.localeCompare(b.at) || a.order - b.order);
  return {
    text: sorted
      .map(({ at, lines: [head, ...rows] }) => [`${shown(at)}  ${head}`, ...rows.map(indented)].join('\n'))
      .join('\n'),
    invoiced: sumDecimals(invoices.map(({ total }) => new Decimal(total))).toFixed(),
    credit_adjustments: sumDecimals(
      given.filter(({ type }) => type === 'credit').map(({ amount }) => new Decimal(amount)),
    ).toFixed(),
  };
}

async function statesOf(world: World, customer: string): Promise<Entry[]> {
  const { postgres } = world.api.services;
  const events = await postgres('system_events')
    .where({ entity_id: world.id(`subscription ${customer}`) })
    .whereNot({ event_name: 'subscription.updated' })
    .orderBy('sequence');
  return events.map(({ created_at, event_name }) => ({
    at: iso(created_at),
    order: 1,
    lines: [`${event_name} (${customer})`],
  }));
}

function invoiceEntry(invoice: Invoice): Entry {
  const { billing_reason, invoice_number, invoice_status, total, finalized_at } = invoice;
  const name = invoice_status === 'SKIPPED' ? 'nothing to pay' : (invoice_number ?? invoice_status);
  const rested = finalized_at && iso(finalized_at) !== iso(invoice.created_at);
  const final = rested ? `, final at ${shown(finalized_at)}` : '';
  const head = `${name}: ${billing_reason}, ${span(invoice)}${final}: ${plain(total)}`;
  const rows = invoice.line_items.map((line) => [
    line.display_name!,
    span(line),
    plain(line.quantity),
    plain(line.amount),
  ]);
  return { at: iso(invoice.created_at), order: 2, lines: [head, ...table(rows)] };
}

/** Transactions of all wallets of the customer: credits and debits. */
async function givenBack(world: World, customer: string) {
  const wallets = await world.get(`/customers/${world.id(`customer ${customer}`)}/wallets`);
  const all = await Promise.all(wallets.map(({ id }) => world.get(`/wallets/${id}/transactions`)));
  return all.flatMap(({ items }) => items);
}

/**
 * Formats a table with columns as wide as their widest cell. Names and times are aligned to the left, numbers to the
 * right.
 */
function table(rows: readonly string[][]): string[] {
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row.map((cell, column) => (column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join('  '),
  );
}

function indented(line: string): string {
  return `${' '.repeat(22)}${line}`;
}

function span({ period_start, period_end }: Invoice | InvoiceLine): string {
  return `${shown(period_start!)}..${shown(period_end!)}`.replaceAll(' 00:00', '');
}

function shown(timestamp: string | Date): string {
  return iso(timestamp).slice(0, 16).replace('T', ' ');
}

function iso(timestamp: string | Date): string {
  return new Date(timestamp).toISOString();
}

function plain(amount: string): string {
  return new Decimal(amount).toFixed();
}
