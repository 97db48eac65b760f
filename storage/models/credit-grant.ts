/** Table `credit_grants`. */
import { type CreditGrant, creditGrantShape } from '../../core/credit-grant/record.ts';
import { ScopedModel } from './model.ts';

export interface CreditGrantModel extends CreditGrant {}

export class CreditGrantModel extends ScopedModel {
  static override tableName = 'credit_grants';
  static override recordName = 'credit grant';
  static override record = creditGrantShape;
}
