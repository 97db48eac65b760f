import { PaymentAttempt } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentAttemptModel extends PaymentAttempt {}

export class PaymentAttemptModel extends ScopedModel {
  static override tableName = 'payment_attempts';
  static override recordName = 'payment attempt';
  /** Not audited on its own: the entry of its payment covers it. */
  static override isAudited = false;
  static override record = PaymentAttempt;
  /** Provider's id of the charge, stored when the next attempt begins; null before. */
  declare gateway_payment_id: string | null;
}
