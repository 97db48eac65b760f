/** Invoices of the service: waits for them, prints them, and compares them with the recomputation from the file. */
import { setTimeout as pause } from 'node:timers/promises';
import { NAMES, type SoldItem } from './catalogue.ts';
import type { Client } from './client.ts';
import { type ExpectedInvoice, formatDollars, parseCents } from './recompute.ts';
import { formatGrouped, renderTable } from './screen.ts';

type DemoInvoiceLine = { price_id: string | null; display_name: string | null; quantity: string; amount: string };
export type DemoInvoice = {
  id: string;
  invoice_number: string | null;
  invoice_status: 'DRAFT' | 'FINALIZED' | 'SKIPPED' | 'VOIDED';
  billing_reason: string;
  period_start: string;
  period_end: string;
  subtotal: string;
  total: string;
  line_items: DemoInvoiceLine[];
};

type Wait = {
  readonly subscription_id: string;
  readonly count: number;
  readonly patience_ms: number;
  /** Finalizes drafts on request, for a service whose finalization delay is hours. */
  readonly finalize: boolean;
};

/** Waits until all invoices are final: the scheduler drafts one for each past period. */
export async function waitForInvoices(client: Client, wait: Wait): Promise<DemoInvoice[]> {
  const until = performance.now() + wait.patience_ms;
  for (;;) {
    const invoices = await listInvoices(client, wait.subscription_id);
    const drafts = invoices.filter(({ invoice_status }) => invoice_status === 'DRAFT');
    if (invoices.length >= wait.count && drafts.length === 0) return invoices;
    if (wait.finalize) for (const { id } of drafts) await makeFinal(client, id);
    if (performance.now() > until)
      throw new Error(
        `there are ${invoices.length} of ${wait.count} invoices, ${drafts.length} of them drafts, after ${wait.patience_ms / 1000} s`,
      );
    await pause(200);
  }
}

async function makeFinal(client: Client, id: string): Promise<void> {
  await client.post(`/invoices/${id}/compute?sync=true`);
  await client.post(`/invoices/${id}/finalize`);
}

async function listInvoices(client: Client, subscription_id: string): Promise<DemoInvoice[]> {
  const invoice_status = ['DRAFT', 'FINALIZED', 'SKIPPED'];
  const all: DemoInvoice[] = [];
  for (;;) {
    const { items } = await client.post<{ items: DemoInvoice[] }>('/invoices/search', {
      subscription_id,
      invoice_status,
      limit: 100,
      offset: all.length,
      sort: [{ field: 'billing_sequence', direction: 'asc' }],
    });
    all.push(...items);
    if (items.length < 100) return all;
  }
}

export function showInvoice(invoice: DemoInvoice, soldByPrice: ReadonlyMap<string, SoldItem>): string {
  const day = (instant: string) => new Date(instant).toISOString().slice(0, 10);
  const title = `Invoice ${invoice.invoice_number ?? '(no number)'}, ${day(invoice.period_start)} to ${day(invoice.period_end)}, ${invoice.invoice_status}`;
  const lines = invoice.line_items.map((line) => [
    lineName(line, soldByPrice),
    formatGrouped(line.quantity),
    usd(line.amount),
  ]);
  return `  ${title}\n${renderTable([['', 'quantity', 'USD'], ...lines, ['Total', '', usd(invoice.total)]])}`;
}

function lineName({ price_id, display_name }: DemoInvoiceLine, soldByPrice: ReadonlyMap<string, SoldItem>): string {
  const sold = soldByPrice.get(price_id ?? '');
  return display_name ?? (sold ? NAMES[sold] : '?');
}

function usd(amount: string): string {
  const cents = parseCents(amount);
  return cents === null ? amount : formatGrouped(formatDollars(cents));
}

/** One line per disagreement between the invoices and the file. */
export function differences(
  invoices: readonly DemoInvoice[],
  expected: readonly ExpectedInvoice[],
  soldByPrice: ReadonlyMap<string, SoldItem>,
): string[] {
  const rest = new Set(invoices);
  const found = expected.flatMap((wanted) => {
    const invoice = invoices.find((candidate) => isFor(candidate, wanted));
    if (!invoice) return [`there is no ${wanted.reason} invoice from ${wanted.period_start} to ${wanted.period_end}`];
    rest.delete(invoice);
    return compareInvoice(invoice, wanted, soldByPrice);
  });
  return [...found, ...[...rest].map((invoice) => `invoice ${invoice.id} is one too many`)];
}

function isFor(invoice: DemoInvoice, wanted: ExpectedInvoice): boolean {
  return (
    invoice.billing_reason === wanted.reason &&
    Date.parse(invoice.period_start) === Date.parse(wanted.period_start) &&
    Date.parse(invoice.period_end) === Date.parse(wanted.period_end)
  );
}

function compareInvoice(
  invoice: DemoInvoice,
  wanted: ExpectedInvoice,
  soldByPrice: ReadonlyMap<string, SoldItem>,
): string[] {
  const found: string[] = [];
  const compare = (what: string, actual: string, cents: bigint) => {
    if (parseCents(actual) !== cents)
      found.push(`invoice ${invoice.id}, ${what}: it says ${actual}, the file says ${formatDollars(cents)}`);
  };
  for (const { sold, quantity, cents } of wanted.lines) {
    const lines = invoice.line_items.filter(({ price_id }) => soldByPrice.get(price_id ?? '') === sold);
    const [line] = lines;
    if (!line || lines.length > 1) {
      found.push(`invoice ${invoice.id} has ${lines.length} lines for ${NAMES[sold]} instead of one`);
      continue;
    }
    compare(`${NAMES[sold]}, quantity`, line.quantity, quantity * 100n);
    compare(`${NAMES[sold]}, amount`, line.amount, cents);
  }
  const unknown = invoice.line_items.length - wanted.lines.length;
  if (unknown > 0) found.push(`invoice ${invoice.id} has ${unknown} lines too many`);
  const total = wanted.lines.reduce((sum, { cents }) => sum + cents, 0n);
  compare('subtotal', invoice.subtotal, total);
  compare('total', invoice.total, total);
  const state = total === 0n ? 'SKIPPED' : 'FINALIZED';
  if (invoice.invoice_status !== state)
    found.push(`invoice ${invoice.id} is ${invoice.invoice_status} instead of ${state}`);
  return found;
}
