/**
 * Credit notes at Chargebee (apidocs.chargebee.com, "Credit notes", "Record refund for an invoice"). An adjustment lowers
 * what remains of an invoice. Money that was refunded elsewhere becomes a recorded refund, for which Chargebee creates a
 * credit note. Its notes, which the customer sees, contain our id.
 */

import type { ProviderRecord, PushedCreditNote, SearchedCreditNote } from '../account.ts';
import { sumMinorUnits } from '../minor-units.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { cutCharacters, hasBegun } from '../pushed-records.ts';
import { fromCents, toCents, toInteger } from './amounts.ts';
import { type ChargebeeClient, pickRecord } from './client.ts';
import { listCreditNotes } from './invoice-money.ts';
import type { ChargebeeCreditNote } from './records.ts';

const NOTE_MAX = 2_000;

/** Reasons of Chargebee, by the reasons of this service; the others are `other`. */
const REASONS: Readonly<Record<string, string>> = {
  ORDER_CHANGE: 'order_change',
  UNSATISFACTORY: 'product_unsatisfactory',
  SERVICE_ISSUE: 'service_unsatisfactory',
  SUBSCRIPTION_CANCELLATION: 'order_cancellation',
};

export async function pushChargebeeCreditNote(
  client: ChargebeeClient,
  note: PushedCreditNote,
): Promise<ProviderRecord> {
  const earlier = hasBegun(note) ? await findNote(client, note) : null;
  return checkNote(earlier ?? (await createNote(client, note)), note);
}

async function createNote(client: ChargebeeClient, note: PushedCreditNote): Promise<ChargebeeCreditNote> {
  const { currency, provider_invoice_id, key } = note;
  const total = toCents(note.total, currency);
  const sum = sumMinorUnits(note.lines.map(({ amount }) => toCents(amount, currency))).toNumber();
  if (sum !== total)
    throw new ProviderError(
      'person',
      `the lines of ${note.credit_note_number} add up to ${fromCents(sum, currency)}, its total is ${note.total}`,
    );
  const reason_code = REASONS[note.reason] ?? 'other';
  const customer_notes = toNote(note);
  if (note.effect === 'lowers_remaining') {
    await checkFits(client, note, total);
    const form = { reference_invoice_id: provider_invoice_id, type: 'adjustment', total, reason_code, customer_notes };
    return await client.create('credit_notes', 'credit_note', { form, key });
  }
  const date = Math.floor(Date.now() / 1_000);
  const transaction = { amount: total, payment_method: 'other', reference_number: note.credit_note_id, date };
  const form = { customer_notes, transaction, credit_note: { reason_code } };
  return pickRecord(await client.act(['invoice', provider_invoice_id, 'record_refund'], { form, key }), 'credit_note');
}

/** Refuses a credit note over more than what remains, because Chargebee would credit only a part. */
async function checkFits(client: ChargebeeClient, note: PushedCreditNote, total: number): Promise<void> {
  const { id, amount_due, currency_code } = await client.load('invoice', note.provider_invoice_id);
  if (total <= toInteger(amount_due)) return;
  throw new ProviderError(
    'person',
    `the credit note ${note.credit_note_number} over ${note.total} ${note.currency} does not fit the invoice ${id}, of which ${fromCents(amount_due, currency_code)} remains at Chargebee`,
  );
}

function toNote({ credit_note_number, credit_note_id, lines }: PushedCreditNote): string {
  const listed = lines.map(({ description, amount }) => `${description}: ${amount}`);
  return cutCharacters([`Credit note ${credit_note_number} (${credit_note_id})`, ...listed].join('\n'), NOTE_MAX);
}

const SENT = /^Credit note .*\((\w+)\)$/m;

/** Reads our id; null for a credit note that a person made. */
export function readCreditNoteId({ notes = [] }: ChargebeeCreditNote): string | null {
  return SENT.exec(notes.join('\n'))?.[1] ?? null;
}

async function findNote(
  client: ChargebeeClient,
  { provider_invoice_id, credit_note_id }: SearchedCreditNote,
): Promise<ChargebeeCreditNote | null> {
  const notes = await listCreditNotes(client, provider_invoice_id);
  return notes.find((note) => note.status !== 'voided' && readCreditNoteId(note) === credit_note_id) ?? null;
}

export async function findChargebeeCreditNote(
  client: ChargebeeClient,
  searched: SearchedCreditNote,
): Promise<ProviderRecord | null> {
  const found = await findNote(client, searched);
  return found === null ? null : { provider_entity_id: found.id, url: null };
}

function checkNote(there: ChargebeeCreditNote, { total, currency, credit_note_id }: PushedCreditNote): ProviderRecord {
  if (toInteger(there.total) === toCents(total, currency)) return { provider_entity_id: there.id, url: null };
  throw new ProviderError(
    'person',
    `the total of ${credit_note_id} is ${total} ${currency}, but ${fromCents(there.total, there.currency_code)} at Chargebee (${there.id})`,
  );
}

/** Voids the credit note. Its recorded refunds are deleted first, because Chargebee voids none that has a refund. */
export async function voidChargebeeCreditNote(client: ChargebeeClient, id: string, key: string): Promise<void> {
  const note = await client.read('credit_note', id);
  if (note === null || hasEnded(note)) return;
  for (const { txn_id } of note.linked_refunds ?? [])
    await client.act(['transaction', txn_id, 'delete_offline_transaction'], { key: `${key}:${txn_id}` });
  try {
    await client.act(['credit_note', id, 'void'], { key });
  } catch (error) {
    const current = isRefused(error) ? await client.read('credit_note', id) : null;
    if (current === null || !hasEnded(current)) throw error;
  }
}

function hasEnded({ status, deleted }: ChargebeeCreditNote): boolean {
  return status === 'voided' || deleted === true;
}
