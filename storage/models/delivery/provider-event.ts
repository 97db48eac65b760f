import { type ProviderEventRecord, providerEventShape } from '../../../core/platform/integration/provider-event.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface ProviderEventModel extends ProviderEventRecord {}

export class ProviderEventModel extends ScopedModel {
  static override tableName = 'provider_events';
  static override recordName = 'provider event';
  /** Providers and jobs change it; a retry by a user has no other effect than a delivery by the provider. */
  static override isAudited = false;
  static override record = providerEventShape;
}
