import { PaymentAttempt } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentAttemptModel extends PaymentAttempt {}

export class PaymentAttemptModel extends ScopedModel {
  static override tableName = 'payment_attempts';
  static override recordName = 'payment attempt';
  /** An attempt has no audit entry of its own: the entry of its payment includes it. */
  static override isAudited = false;
  static override record = PaymentAttempt;
  /** Provider's id of the charge, stored when the next attempt begins; null before. */
  declare gateway_payment_id: string | null;
}
