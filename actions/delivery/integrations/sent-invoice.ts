/**
 * The amounts with which an invoice was first pushed to a provider (docs/integrations/README.md, "Money after the
 * invoice"). Payments and credit notes from before the push are included; later ones are pushed as separate records.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import type { SentInvoice } from '../../../core/platform/integration/pushed-lines.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { hasCallBegun } from '../../foundation/connections/mappings.ts';

/** Reads the amounts. The caller has locked the invoice, so no payment or credit note is booked meanwhile. */
export async function describeSentInvoice(database: Database, invoice: InvoiceModel): Promise<SentInvoice> {
  const { adjustment_amount, amount_paid, amount_remaining } = invoice;
  const payments = await listReceivedPayments(database, invoice);
  const notes = await CreditNoteModel.in(invoice, database)
    .where({ invoice_id: invoice.id })
    .whereNot('credit_note_status', 'DRAFT')
    .select('id');
  const contained_ids = [...payments, ...notes].map(({ id }) => id);
  return { adjustment_amount, amount_paid, amount_remaining, contained_ids };
}

export async function listReceivedPayments(database: Database, invoice: InvoiceModel): Promise<PaymentModel[]> {
  return await PaymentModel.in(invoice, database)
    .where({ destination_id: invoice.id, status: 'published' })
    .whereIn('payment_status', [...RECEIVED]);
}

/**
 * Whether the provider has the payment already, because it took or reported it. A payment reported by a provider that
 * takes none has only a `connection_id`, no `payment_gateway`.
 */
export function isTakenThere(
  { payment_gateway, connection_id }: Pick<PaymentModel, 'payment_gateway' | 'connection_id'>,
  { id, provider_type }: ConnectionModel,
): boolean {
  return payment_gateway === provider_type || connection_id === id;
}

/** A payment or credit note of an invoice. */
export type InvoiceMoney = { readonly id: string; readonly since: string; readonly invoice_id: string };

/**
 * Returns the mapping of the invoice if it was pushed without this payment or credit note. Null if the invoice was not pushed yet, or was
 * pushed with it.
 */
export function findUncontaining(
  mappings: ReadonlyMap<string, IntegrationMappingModel>,
  { id, since, invoice_id }: InvoiceMoney,
): IntegrationMappingModel | null {
  const mapping = mappings.get(invoice_id);
  if (!mapping || !hasCallBegun(mapping)) return null;
  const { sent_invoice, created_at } = mapping;
  const isContained =
    sent_invoice === null ? toInstant(since) < toInstant(created_at) : sent_invoice.contained_ids.includes(id);
  return isContained ? null : mapping;
}

/** Mappings of invoices at a connection, by invoice. */
export async function loadInvoiceMappings(
  scope: Scope,
  { connection_id, invoice_ids }: { connection_id: string; invoice_ids: readonly string[] },
  database: Database,
): Promise<ReadonlyMap<string, IntegrationMappingModel>> {
  const mappings = await IntegrationMappingModel.in(scope, database)
    .where({ connection_id, entity_type: 'invoice' })
    .whereNot('mapping_state', 'gone')
    .whereIn('entity_id', [...invoice_ids]);
  return new Map(mappings.map((mapping) => [mapping.entity_id, mapping]));
}
