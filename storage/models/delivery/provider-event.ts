import { type ProviderEventRecord, providerEventShape } from '../../../core/platform/integration/provider-event.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface ProviderEventModel extends ProviderEventRecord {}

export class ProviderEventModel extends ScopedModel {
  static override tableName = 'provider_events';
  static override recordName = 'provider event';
  /** Not audited: providers and jobs change the event, and a retry by a user has the effect of another delivery. */
  static override isAudited = false;
  static override record = providerEventShape;
}
