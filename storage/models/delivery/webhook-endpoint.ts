/**
 * Table `webhook_endpoints`. Each webhook body is signed with the endpoint's secrets, so the secrets are stored, sealed if the settings
 * have a key (foundation/secrets/sealing.ts); no API response contains them.
 */
import { type WebhookEndpoint, webhookEndpointShape } from '../../../core/platform/webhook/record.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface WebhookEndpointModel extends WebhookEndpoint {}

export class WebhookEndpointModel extends ScopedModel {
  static override tableName = 'webhook_endpoints';
  static override recordName = 'webhook endpoint';
  static override record = webhookEndpointShape;
  declare secret: string;
  declare previous_secret: string | null;
  declare failures: number;
}
