/** Table `invoice_line_items`. */
import { InvoiceLineItem } from '../../core/invoice/record.ts';
import { ScopedModel } from './model.ts';

export interface InvoiceLineItemModel extends InvoiceLineItem {}

export class InvoiceLineItemModel extends ScopedModel {
  static override tableName = 'invoice_line_items';
  static override recordName = 'invoice line item';
  /** They are made with their invoice, whose totals tell of them. */
  static override isAudited = false;
  static override record = InvoiceLineItem;
  /** Its place among the lines of its invoice, from 0. */
  /** Null where a version before this one wrote it. */
  declare position: number | null;
}
