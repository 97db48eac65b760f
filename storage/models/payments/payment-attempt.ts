import { PaymentAttempt } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentAttemptModel extends PaymentAttempt {}

export class PaymentAttemptModel extends ScopedModel {
  static override tableName = 'payment_attempts';
  static override recordName = 'payment attempt';
  /** Audited with its payment. */
  static override isAudited = false;
  static override record = PaymentAttempt;
}
