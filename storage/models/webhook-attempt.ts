/** Table `webhook_attempts`. */
import { type WebhookAttempt, webhookAttemptShape } from '../../core/webhook/record.ts';
import { ScopedModel } from './model.ts';

export interface WebhookAttemptModel extends WebhookAttempt {}

export class WebhookAttemptModel extends ScopedModel {
  static override tableName = 'webhook_attempts';
  static override recordName = 'webhook attempt';
  /** How a try went, is no record that somebody changes. */
  static override isAudited = false;
  static override record = webhookAttemptShape;
}
