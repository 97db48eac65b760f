import type { Scope } from '../../../core/foundation/scope.ts';
import { SubscriptionSchedule } from '../../../core/subscriptions/schedule.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface SubscriptionScheduleModel extends SubscriptionSchedule {}

export class SubscriptionScheduleModel extends ScopedModel {
  static override tableName = 'subscription_schedules';
  static override recordName = 'subscription schedule';
  static override record = SubscriptionSchedule;

  /** The pending schedule of a subscription; there is at most one. */
  static async findPending(
    scope: Scope,
    subscription_id: string,
    database: Database,
  ): Promise<SubscriptionScheduleModel | undefined> {
    const query = { column: 'subscription_id', value: subscription_id, where: { status: 'pending' } };
    const [schedule] = await SubscriptionScheduleModel.listBy(scope, query, database);
    return schedule;
  }
}
