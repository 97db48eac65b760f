/**
 * Creates an invoice of Whop once. Whop ignores keys for invoices and stores no metadata of them, so our id is in the label of the first line.
 * An invoice is open from its creation: Whop opens drafts only at a time.
 */
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type { PushedInvoice, SearchedInvoice } from '../account.ts';
import { type ExactJson, JsonNumber } from '../exact-json.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromWhopAmount, toWhopAmount } from './amounts.ts';
import { OLDEST_FIRST, type WhopAccess, type WhopClient } from './client.ts';
import type { WhopInvoice } from './records.ts';
import { findInvoiceStatus } from './states.ts';
import { cutLabel, isMarked, toMarkedLabel, toPlanNotes } from './texts.ts';

/** Difference that is allowed between the clocks of the database and of Whop. */
export const CLOCK_SLACK_MS = 600_000;

type WhopContext = { readonly client: WhopClient; readonly access: WhopAccess };

/** Creates the invoice, or returns the one of an earlier attempt. */
export async function createInvoiceOnce(context: WhopContext, invoice: PushedInvoice): Promise<WhopInvoice> {
  const body = toBody(context.access, invoice);
  const [earlier] = await listUsable(context, invoice);
  const found = earlier ?? (await createAlone(context, invoice, body));
  if (hasTotal(found, invoice)) return found;
  if (findInvoiceStatus(found) !== 'paid') await voidInvoice(context.client, found.id);
  const there = `${computeTotal(found).toFixed()} ${found.current_plan.currency}`;
  throw new ProviderError(
    'person',
    `the total of ${invoice.invoice_id} is ${invoice.total} ${invoice.currency}, but ${there} at Whop (${found.id})`,
  );
}

/** Lists invoices of an earlier attempt that can be paid or are paid, paid ones first. */
export async function listUsable(
  { client, access }: WhopContext,
  invoice: Pick<SearchedInvoice, 'invoice_id' | 'key_created_at'>,
): Promise<WhopInvoice[]> {
  const created_after = new Date(invoice.key_created_at.getTime() - CLOCK_SLACK_MS).toISOString();
  const found: WhopInvoice[] = [];
  const parameters = { company_id: access.company_id, created_after, ...OLDEST_FIRST };
  for await (const one of client.list<WhopInvoice>('invoices', parameters))
    if (one.line_items?.some(({ label }) => isMarked(label, invoice)) && findInvoiceStatus(one) !== 'void')
      found.push(one);
  return found.toSorted((a, b) => Number(findInvoiceStatus(b) === 'paid') - Number(findInvoiceStatus(a) === 'paid'));
}

/** Creates the invoice. If a concurrent attempt also created one, this attempt voids its own and is repeated, so that one remains. */
async function createAlone(context: WhopContext, invoice: PushedInvoice, body: ExactJson): Promise<WhopInvoice> {
  const created = await create(context, invoice, body);
  const usable = await listUsable(context, invoice);
  if (usable.every(({ id }) => id === created.id)) return created;
  await voidInvoice(context.client, created.id);
  throw new ProviderError('wait', `${invoice.invoice_id} was sent to Whop twice at once: one attempt is repeated`);
}

async function create(
  { client }: WhopContext,
  { key, currency }: PushedInvoice,
  body: ExactJson,
): Promise<WhopInvoice> {
  try {
    return await client.post<WhopInvoice>('invoices', { body, key });
  } catch (error) {
    if (isRefused(error) && /currency/i.test(error.message))
      throw new ProviderError('person', `Whop takes no payments in ${currency}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Voids the invoice, so that it can no longer be paid; no effect if it is void already. Throws if it is paid. */
export async function voidInvoice(client: WhopClient, id: string): Promise<void> {
  try {
    await client.post(`invoices/${id}/void`);
  } catch (error) {
    if (!isRefused(error)) throw error;
    const current = await client.find<WhopInvoice>('invoices', id);
    if (current !== null && findInvoiceStatus(current) !== 'void') throw error;
  }
}

function toBody({ company_id, product_id }: WhopAccess, invoice: PushedInvoice): ExactJson {
  const { invoice_id, invoice_number, addressee, currency, total, due_date, key_created_at } = invoice;
  if (!addressee?.email || !addressee.name)
    throw new ProviderError('person', 'Whop addresses invoices by name and email: the customer lacks one of them');
  const due = due_date ?? new Date(key_created_at.getTime() + DAY_MS).toISOString();
  return {
    ...{ company_id, collection_method: 'send_invoice', due_date: due, charge_buyer_fee: false },
    ...{ email_address: addressee.email, customer_name: addressee.name },
    ...(product_id === undefined ? { product: { title: `Invoice ${invoice_number}` } } : { product_id }),
    plan: {
      ...{ plan_type: 'one_time', initial_price: toWhopAmount(total, currency), currency: currency.toLowerCase() },
      ...{ adaptive_pricing_enabled: false, internal_notes: toPlanNotes(invoice_id) },
    },
    line_items: toLineItems(invoice),
  };
}

/** Builds the lines. Whop does not say whether a line may be negative; with such a line the invoice has one line over its total. */
function toLineItems(invoice: PushedInvoice): ExactJson[] {
  const { lines, total, currency } = invoice;
  const isNegative = lines.some(({ amount }) => new Decimal(amount).isNegative());
  const one = { description: lines.map(({ description }) => description).join(', '), amount: total };
  return (isNegative || lines.length === 0 ? [one] : lines).map(({ description, amount }, index) => ({
    label: index === 0 ? toMarkedLabel(description, invoice) : cutLabel(description),
    unit_price: toWhopAmount(amount, currency),
    quantity: new JsonNumber('1'),
  }));
}

/** Computes the total from the lines, because an invoice has no other amount that can be read exactly. */
export function computeTotal({ line_items }: WhopInvoice): Decimal {
  return sumDecimals((line_items ?? []).map(({ total }) => fromWhopAmount(total)));
}

function hasTotal(there: WhopInvoice, { total, currency }: PushedInvoice): boolean {
  return there.current_plan.currency.toLowerCase() === currency && computeTotal(there).eq(total);
}
