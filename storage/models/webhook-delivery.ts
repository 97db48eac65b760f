/** Table `webhook_deliveries`. */
import { type WebhookDelivery, webhookDeliveryShape } from '../../core/webhook/record.ts';
import { ScopedModel } from './model.ts';

export interface WebhookDeliveryModel extends WebhookDelivery {}

export class WebhookDeliveryModel extends ScopedModel {
  static override tableName = 'webhook_deliveries';
  static override recordName = 'webhook delivery';
  /** How far a delivery is, is no record that somebody changes. */
  static override isAudited = false;
  static override record = webhookDeliveryShape;
  /** Of the event: the order of those of one record. */
  declare sequence: string;
  declare told_at: string;
  declare lease: string | null;
  declare leased_until: string | null;
}
