/** Table `subscriptions`. */
import type { Subscription } from '../../core/catalogue/subscription.ts';
import { ScopedModel } from './model.ts';

export interface SubscriptionModel extends Subscription {}

export class SubscriptionModel extends ScopedModel {
  static override tableName = 'subscriptions';
  static override recordName = 'subscription';
  static override get jsonAttributes() {
    return ['metadata'];
  }
}
