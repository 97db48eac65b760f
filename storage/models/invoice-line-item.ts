/** Table `invoice_line_items`. */
import type { InvoiceLineItem } from '../../core/invoice/record.ts';
import { ScopedModel } from './model.ts';

export interface InvoiceLineItemModel extends InvoiceLineItem {}

export class InvoiceLineItemModel extends ScopedModel {
  static override tableName = 'invoice_line_items';
  static override recordName = 'invoice line item';
  static override get jsonAttributes() {
    return ['commitment_info', 'metadata', 'computed_from'];
  }
  /** Its place among the lines of its invoice, from 0. */
  /** Null where a version before this one wrote it. */
  declare position: number | null;
}
