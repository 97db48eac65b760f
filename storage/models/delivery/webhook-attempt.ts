import { type WebhookAttempt, webhookAttemptShape } from '../../../core/platform/webhook/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WebhookAttemptModel extends WebhookAttempt {}

export class WebhookAttemptModel extends ScopedModel {
  static override tableName = 'webhook_attempts';
  static override recordName = 'webhook attempt';
  /** Users do not change the result of an attempt. */
  static override isAudited = false;
  static override record = webhookAttemptShape;
}
