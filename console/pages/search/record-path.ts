/** The page of a record that is found, also of one that another record owns. */
import { api, readData } from '../../client/client.ts';
import { type RecordRef, toRecordPath } from './hits.ts';

/** The path of a record. A price, a payment and a credit note name the record that they belong to. */
export async function findRecordPath(record: RecordRef): Promise<string> {
  const path = toRecordPath(record) ?? (await findOwnerPath(record));
  return path ?? (record.customer_id === null ? 'plans' : `customers/${encodeURIComponent(record.customer_id)}`);
}

async function findOwnerPath({ kind, id }: RecordRef): Promise<string | null> {
  const params = { path: { id } };
  switch (kind) {
    case 'price': {
      const price = await readData(api.GET('/prices/{id}', { params }));
      return price.entity_type === 'PLAN' ? `plans/${price.entity_id}/prices/${id}` : null;
    }
    case 'payment': {
      const payment = await readData(api.GET('/payments/{id}', { params }));
      return payment.destination_type === 'INVOICE' ? `invoices/${payment.destination_id}` : null;
    }
    case 'credit_note': {
      const note = await readData(api.GET('/creditnotes/{id}', { params }));
      return `invoices/${note.invoice_id}`;
    }
    case 'feature': {
      const feature = await readData(api.GET('/features/{id}', { params }));
      return feature.meter_id ? `meters/${feature.meter_id}` : null;
    }
    default:
      return null;
  }
}
