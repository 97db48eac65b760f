/** Table `invoices`. */
import { Invoice } from '../../core/invoice/record.ts';
import { ScopedModel } from './model.ts';

export interface InvoiceModel extends Invoice {}

export class InvoiceModel extends ScopedModel {
  static override tableName = 'invoices';
  static override recordName = 'invoice';
  static override record = Invoice;
}
