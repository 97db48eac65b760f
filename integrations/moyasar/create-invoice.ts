/**
 * Creates an invoice of Moyasar once per reference. An invoice is a page on which its amount is paid; it is open from its creation, and has
 * no lines. Moyasar has no idempotency keys for invoices, so the reference is in the metadata, by which the invoice is found again.
 */

import { JsonNumber } from '../exact-json.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters } from '../pushed-records.ts';
import { fromSmallestUnits, toPayableUnits } from './amounts.ts';
import type { MoyasarClient } from './client.ts';
import type { MoyasarInvoice } from './records.ts';
import { findInvoiceStatus } from './states.ts';

const DESCRIPTION_MAX = 255;
const METADATA_MAX = 500;

export type NewInvoice = {
  /** Name of the reference in the metadata. */
  readonly reference_name: string;
  readonly reference: string;
  /** Our record, for messages. */
  readonly record_id: string;
  readonly amount: string;
  /** Currency code (ISO 4217), lowercase. */
  readonly currency: string;
  readonly description: string;
  readonly metadata: Readonly<Record<string, string | null>>;
  readonly success_url?: string | null;
  readonly back_url?: string | null;
  /** Instant after which the invoice can no longer be paid. */
  readonly expired_at?: string | null;
};

/** Creates the invoice, or returns the one of an earlier attempt. */
export async function createInvoiceOnce(client: MoyasarClient, invoice: NewInvoice): Promise<MoyasarInvoice> {
  const body = toBody(invoice);
  const found = (await findUsable(client, invoice)) ?? (await createAlone(client, invoice, body));
  try {
    checkTotal(found, invoice);
  } catch (error) {
    if (findInvoiceStatus(found) !== 'paid') await cancelInvoice(client, found.id);
    throw error;
  }
  return found;
}

/**
 * Finds the invoice of an earlier attempt. One with another total was never paid and is cancelled, so that a new one replaces it. So are
 * further ones, which interrupted concurrent attempts have left.
 */
async function findUsable(client: MoyasarClient, invoice: NewInvoice): Promise<MoyasarInvoice | null> {
  const [found = null, ...others] = await listUsable(client, invoice);
  for (const other of others) if (findInvoiceStatus(other) !== 'paid') await cancelInvoice(client, other.id);
  if (found === null || findInvoiceStatus(found) === 'paid' || hasTotal(found, invoice)) return found;
  await cancelInvoice(client, found.id);
  return null;
}

/** Lists invoices with the reference that can be paid or are paid, paid ones first. */
export async function listUsable(
  client: MoyasarClient,
  { reference_name, reference }: Pick<NewInvoice, 'reference_name' | 'reference'>,
): Promise<MoyasarInvoice[]> {
  const all = await client.listInvoices(reference_name, reference);
  const usable = all.filter((one) => findInvoiceStatus(one) !== 'void');
  return usable.toSorted((a, b) => Number(findInvoiceStatus(b) === 'paid') - Number(findInvoiceStatus(a) === 'paid'));
}

/** Creates the invoice. If a concurrent attempt also created one, this attempt cancels its own and is repeated, so that one remains. */
async function createAlone(
  client: MoyasarClient,
  invoice: NewInvoice,
  body: ReturnType<typeof toBody>,
): Promise<MoyasarInvoice> {
  const created = await create(client, invoice, body);
  const usable = await listUsable(client, invoice);
  if (usable.every(({ id }) => id === created.id)) return created;
  await cancelInvoice(client, created.id);
  throw new ProviderError('wait', `${invoice.record_id} was sent to Moyasar twice at once: one attempt is repeated`);
}

async function create(
  client: MoyasarClient,
  { currency }: NewInvoice,
  body: ReturnType<typeof toBody>,
): Promise<MoyasarInvoice> {
  try {
    return await client.createInvoice(body);
  } catch (error) {
    if (isRefused(error) && error.message.includes('currency:'))
      throw new ProviderError('person', `Moyasar takes no payments in ${currency}: ${error.message}`, { cause: error });
    throw error;
  }
}

/** Cancels the invoice, so that it can no longer be paid; no effect if it is void already. Throws if it is paid. */
export async function cancelInvoice(client: MoyasarClient, id: string): Promise<void> {
  try {
    await client.cancelInvoice(id);
  } catch (error) {
    if (!isRefused(error)) throw error;
    const current = await client.findInvoice(id);
    if (current !== null && findInvoiceStatus(current) !== 'void') throw error;
  }
}

function toBody({
  reference_name,
  reference,
  amount,
  currency,
  description,
  metadata,
  success_url,
  back_url,
  expired_at,
}: NewInvoice) {
  return {
    amount: new JsonNumber(String(toPayableUnits(amount, currency))),
    currency: currency.toUpperCase(),
    description: cutCharacters(description, DESCRIPTION_MAX),
    metadata: toMetadata({ [reference_name]: reference, ...metadata }),
    success_url: success_url ?? undefined,
    back_url: back_url ?? undefined,
    expired_at: expired_at ?? undefined,
  };
}

/** Builds metadata: empty values are omitted, long ones shortened. */
export function toMetadata(values: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value ? [[name, cutCharacters(value, METADATA_MAX)]] : [])),
  );
}

function hasTotal(there: MoyasarInvoice, { amount, currency }: NewInvoice): boolean {
  return there.currency.toLowerCase() === currency && Number(there.amount) === toPayableUnits(amount, currency);
}

function checkTotal(there: MoyasarInvoice, invoice: NewInvoice): void {
  if (hasTotal(there, invoice)) return;
  const currency = there.currency.toLowerCase();
  const found = `${fromSmallestUnits(there.amount, currency)} ${currency}`;
  throw new ProviderError(
    'person',
    `the total of ${invoice.record_id} is ${invoice.amount} ${invoice.currency}, but ${found} at Moyasar (${there.id})`,
  );
}
