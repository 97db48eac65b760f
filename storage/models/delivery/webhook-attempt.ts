import { type WebhookAttempt, webhookAttemptShape } from '../../../core/platform/webhook/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WebhookAttemptModel extends WebhookAttempt {}

export class WebhookAttemptModel extends ScopedModel {
  static override tableName = 'webhook_attempts';
  static override recordName = 'webhook attempt';
  /** Not audited, because users do not change an attempt. */
  static override isAudited = false;
  static override record = webhookAttemptShape;
}
