import { CreditNoteLineItem } from '../../../core/invoicing/credit-note/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CreditNoteLineItemModel extends CreditNoteLineItem {}

export class CreditNoteLineItemModel extends ScopedModel {
  static override tableName = 'credit_note_line_items';
  static override recordName = 'credit note line item';
  /** Lines are created with the credit note, whose total is audited. */
  static override isAudited = false;
  static override record = CreditNoteLineItem;
  /** Index among the lines of the note, from 0. */
  declare position: number;
}
