/** Table `subscription_line_items`. */
import { raw } from 'objection';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import { SubscriptionLineItem } from '../../core/subscription/record.ts';
import type { Database } from '../stores.ts';
import { listBatched } from './batched.ts';
import { ScopedModel } from './model.ts';
import { narrow } from './page.ts';
import { toBatchKey } from './statements.ts';

export interface SubscriptionLineItemModel extends SubscriptionLineItem {}

export class SubscriptionLineItemModel extends ScopedModel {
  static override tableName = 'subscription_line_items';
  static override recordName = 'subscription line item';
  static override record = SubscriptionLineItem;
  /** Its place among the lines of its subscription, from 0. */
  /** Null where a version before this one wrote it. */
  declare position: number | null;
  /** Where the periods of its own are anchored, of a line that follows another; null is at its start. */
  declare period_anchor: string | null;
  /** From when on an advance line is charged that began inside a period without proration; null is from its start. */
  declare charged_from: string | null;
  /** Until when an advance line is charged that ended inside a period without proration; null is until its end. */
  declare charged_until: string | null;
  /** The lines whose charge pays for what it serves before `charged_from`; null where none does. */
  declare paid_by_lines: string[] | null;
  /** The line with which the terms of its commitment began, where that of a line before it goes on; null is itself. */
  declare commitment_line_id: string | null;
  /** The line that it goes on for, after a change of quantity or price; null where it follows none. */
  declare follows_line_item_id: string | null;
  /** It ends because its price does, and not by itself. */
  declare ends_with_price: boolean | null;

  /** By subscription, the plan that charged it at this instant, which may have been another than now; none where no line of a plan did. */
  static async plansAt(
    scope: Scope,
    { subscription_ids, at }: { subscription_ids: readonly string[]; at: Date },
    database: Database,
  ): Promise<Map<string, string>> {
    const query = {
      key: toBatchKey('plans at', this, scope.tenant_id, scope.environment_id, at),
      values: subscription_ids,
      getKey: (line: SubscriptionLineItemModel) => line.subscription_id,
    };
    const lines = await listBatched(
      database,
      query,
      async (ids) =>
        await narrow(SubscriptionLineItemModel.in(scope, database), [
          ['subscription_id', ids],
          ['status', 'published'],
          ['entity_type', 'plan'],
          ['start_date', '<=', at],
          ['end_date', 'open at', at],
        ])
          .select('subscription_id', 'entity_id')
          .orderBy(['start_date', 'created_at', 'id']),
    );
    return new Map(lines.map(({ subscription_id, entity_id }) => [subscription_id, entity_id ?? '']));
  }

  /** Nothing of the subscription is charged after this instant; what was to begin later never does. */
  static async endAll(
    scope: Scope,
    { subscription_id, at, by }: { subscription_id: string; at: string; by: Author | Pick<Author, 'now'> },
    transaction: Database,
  ): Promise<void> {
    const records = await narrow(SubscriptionLineItemModel.in(scope, transaction), [
      ['subscription_id', subscription_id],
      ['end_date', 'open at', at],
    ]).forUpdate();
    const changes = { end_date: raw('greatest(start_date, ?::timestamptz)', [at]) as never };
    await SubscriptionLineItemModel.changeAll(scope, { records, changes }, { by, database: transaction });
  }
}
