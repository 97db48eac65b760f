import { type WebhookDelivery, webhookDeliveryShape } from '../../../core/platform/webhook/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WebhookDeliveryModel extends WebhookDelivery {}

export class WebhookDeliveryModel extends ScopedModel {
  static override tableName = 'webhook_deliveries';
  static override recordName = 'webhook delivery';
  /** Not audited, because users do not change the progress of a delivery. */
  static override isAudited = false;
  static override record = webhookDeliveryShape;
  /** Sequence number of the system event, which orders the events of one record. */
  declare sequence: string;
  declare told_at: string;
  declare lease: string | null;
  declare leased_until: string | null;
}
