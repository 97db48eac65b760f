import { SubscriptionPhase } from '../../../core/subscriptions/phases.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface SubscriptionPhaseModel extends SubscriptionPhase {}

export class SubscriptionPhaseModel extends ScopedModel {
  static override tableName = 'subscription_phases';
  static override recordName = 'subscription phase';
  static override record = SubscriptionPhase;
}
