import { CreditNote } from '../../../core/invoicing/credit-note/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CreditNoteModel extends CreditNote {}

export class CreditNoteModel extends ScopedModel {
  static override tableName = 'credit_notes';
  static override recordName = 'credit note';
  static override record = CreditNote;
}
