import { Payment } from '../../../core/payments/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface PaymentModel extends Payment {}

export class PaymentModel extends ScopedModel {
  static override tableName = 'payments';
  static override recordName = 'payment';
  static override record = Payment;
  /** Instant before the first request with the key `gateway_tracking_id`, by the clock of the database. */
  declare requested_at: string | null;
  /** Failed attempts to close the void payment page at the provider (core/payments/page-closing.ts); 0 after a success. */
  declare close_failures: number;
  /** Failure of the last query of the outcome that further queries will not change; null without one. */
  declare query_failure: 'missing' | 'person' | null;
}
