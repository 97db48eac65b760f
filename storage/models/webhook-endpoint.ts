/** Table `webhook_endpoints`. The secrets are in it sealed where there is a key for that (sealing.ts), because each body is signed with them; no answer has them. */
import { type WebhookEndpoint, webhookEndpointShape } from '../../core/webhook/record.ts';
import { ScopedModel } from './model.ts';

export interface WebhookEndpointModel extends WebhookEndpoint {}

export class WebhookEndpointModel extends ScopedModel {
  static override tableName = 'webhook_endpoints';
  static override recordName = 'webhook endpoint';
  static override record = webhookEndpointShape;
  declare secret: string;
  declare previous_secret: string | null;
  declare failures: number;
}
