/** Table `payment_methods`. */
import { PaymentMethod } from '../../core/payment/record.ts';
import { ScopedModel } from './model.ts';

export interface PaymentMethodModel extends PaymentMethod {}

export class PaymentMethodModel extends ScopedModel {
  static override tableName = 'payment_methods';
  static override recordName = 'payment method';
  static override record = PaymentMethod;
}
