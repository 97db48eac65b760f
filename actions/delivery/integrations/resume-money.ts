/** Makes payments and credit notes pending again that were refused while their invoice was not at the provider. */
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { addPushJob, markPending } from '../../../storage/queue/pending-pushes.ts';

export async function resumeMoney(
  { postgres }: Postgres,
  invoice: IntegrationMappingModel,
  connection: ConnectionModel,
): Promise<void> {
  const ids = {
    payment: PaymentModel.in(invoice, postgres).where({ destination_id: invoice.entity_id }).select('id'),
    credit_note: CreditNoteModel.in(invoice, postgres).where({ invoice_id: invoice.entity_id }).select('id'),
  };
  for (const entity_type of ['payment', 'credit_note'] as const) {
    const refused = await IntegrationMappingModel.in(invoice, postgres)
      .where({ connection_id: connection.id, entity_type, mapping_state: 'intended' })
      .whereNotNull('push_error')
      .where('entity_id', 'in', ids[entity_type])
      .select('entity_id');
    if (refused.length === 0) continue;
    const entity_ids = refused.map(({ entity_id }) => entity_id);
    await postgres.transaction(async (transaction) => {
      await markPending(transaction, invoice, { connection_id: connection.id, entity_type, entity_ids });
      await addPushJob(transaction, connection);
    });
  }
}
