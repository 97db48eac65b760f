/** Emits an event of an invoice again, or requests its mail, for receivers that missed it (docs/rules/webhooks.md). */
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { parseEventName, type SystemEventName } from '../../../core/platform/system-event/catalogue.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { emit } from '../../foundation/emit.ts';
import { loadWithLines } from '../records/invoice-records.ts';

/** Events that can be emitted again, with the condition on the invoice. */
const RESENDABLE_EVENTS: Partial<Record<SystemEventName, (invoice: Invoice) => boolean>> = {
  'invoice.finalized': ({ finalized_at }) => Boolean(finalized_at),
  'invoice.update.payment': ({ finalized_at }) => Boolean(finalized_at),
  'invoice.update.voided': ({ invoice_status }) => invoice_status === 'VOIDED',
  'invoice.communication.triggered': () => true,
};

type ResendEventInput = { readonly id: string; readonly event_name: string; readonly author: Author };

/** Emits the event again, or requests the mail. Returns the name of the event. */
export async function resendInvoiceEvent(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, event_name, author }: ResendEventInput,
): Promise<SystemEventName> {
  const name = parseEventName(event_name) as SystemEventName;
  const isTrue = RESENDABLE_EVENTS[name];
  if (!isTrue) throw invalid('event_name', 'cannot be emitted again', { allowed: Object.keys(RESENDABLE_EVENTS) });
  return postgres.transaction(async (transaction) => {
    const invoice = await InvoiceModel.fetch(scope, id, { database: transaction, lock: true });
    if (!isTrue(invoice)) throw notAllowed(`${name} is not true of this invoice, which is ${invoice.invoice_status}`);
    const customer = await CustomerModel.fetch(scope, invoice.customer_id, { database: transaction });
    const record = { ...(await loadWithLines(invoice, transaction)), customer };
    await emit(transaction, name, { record, by: author });
    return name;
  });
}
