import { Payment } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentModel extends Payment {}

export class PaymentModel extends ScopedModel {
  static override tableName = 'payments';
  static override recordName = 'payment';
  static override record = Payment;
}
