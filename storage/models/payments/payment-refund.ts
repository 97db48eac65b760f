import { PaymentRefund } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentRefundModel extends PaymentRefund {}

export class PaymentRefundModel extends ScopedModel {
  static override tableName = 'payment_refunds';
  static override recordName = 'payment refund';
  static override record = PaymentRefund;
  /** Instant before the first request to the provider, by the clock of the database. */
  declare requested_at: string;
}
