/** Table `subscription_line_items`. */
import type { SubscriptionLineItem } from '../../core/catalogue/subscription.ts';
import { ScopedModel } from './model.ts';

export interface SubscriptionLineItemModel extends SubscriptionLineItem {}

export class SubscriptionLineItemModel extends ScopedModel {
  static override tableName = 'subscription_line_items';
  static override recordName = 'subscription line item';
  static override get jsonAttributes() {
    return ['metadata'];
  }
}
