/** Table `credit_note_line_items`. */
import { CreditNoteLineItem } from '../../core/credit-note/record.ts';
import { ScopedModel } from './model.ts';

export interface CreditNoteLineItemModel extends CreditNoteLineItem {}

export class CreditNoteLineItemModel extends ScopedModel {
  static override tableName = 'credit_note_line_items';
  static override recordName = 'credit note line item';
  /** They are made with their note, whose total tells of them. */
  static override isAudited = false;
  static override record = CreditNoteLineItem;
  /** Its place among the lines of its note, from 0. */
  declare position: number;
}
