import { raw } from 'objection';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { SubscriptionLineItem } from '../../../core/subscriptions/record.ts';
import { listBatched } from '../../concurrency/batched.ts';
import type { Database } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';
import { narrow } from '../foundation/page.ts';
import { prepareQuery } from '../foundation/prepared.ts';
import { toBatchKey } from '../foundation/statements.ts';

export interface SubscriptionLineItemModel extends SubscriptionLineItem {}

export class SubscriptionLineItemModel extends ScopedModel {
  static override tableName = 'subscription_line_items';
  static override recordName = 'subscription line item';
  static override record = SubscriptionLineItem;
  /** Index among the lines of its subscription, from 0; null if an earlier version wrote it. */
  declare position: number | null;
  /** Anchor of the line's own periods, if it follows another line; null means the start of the line. */
  declare period_anchor: string | null;
  /** Start of the charge of an advance line that began inside a period without proration; null means the start of the line. */
  declare charged_from: string | null;
  /** End of the charge of an advance line that ended inside a period without proration; null means the end of the line. */
  declare charged_until: string | null;
  /** Lines whose charge pays for the service of this line before `charged_from`; null if there are none. */
  declare paid_by_lines: string[] | null;
  /** The line with which the terms of its commitment began, if it continues the commitment of an earlier line; null: this line. */
  declare commitment_line_id: string | null;
  /** The line that this line replaces after a change of quantity or price; null if there is none. */
  declare follows_line_item_id: string | null;
  /** True if the line ends because its price ends. */
  declare ends_with_price: boolean | null;

  /** The plan that charged each subscription at this instant, which may differ from its current plan; absent if no plan line was active. */
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
        await prepareQuery(
          narrow(SubscriptionLineItemModel.in(scope, database).whereIn('subscription_id', [...ids]), [
            ['status', 'published'],
            ['entity_type', 'plan'],
            ['start_date', '<=', at],
            ['end_date', 'open at', at],
          ])
            .select('subscription_id', 'entity_id')
            .orderBy(['start_date', 'created_at', 'id']),
        ),
    );
    return new Map(lines.map(({ subscription_id, entity_id }) => [subscription_id, entity_id ?? '']));
  }

  /** Ends all lines at this instant; a line that starts later is never charged. */
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
