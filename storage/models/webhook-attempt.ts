/** Table `webhook_attempts`. */
import { type WebhookAttempt, webhookAttemptShape } from '../../core/webhook/record.ts';
import { ScopedModel } from './model.ts';

export interface WebhookAttemptModel extends WebhookAttempt {}

export class WebhookAttemptModel extends ScopedModel {
  static override tableName = 'webhook_attempts';
  static override recordName = 'webhook attempt';
  static override record = webhookAttemptShape;
}
