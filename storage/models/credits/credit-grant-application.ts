/** Table `credit_grant_applications`. When a subscription ends, the database cancels its upcoming ones (sql/postgres/0140-…). */
import {
  type CreditGrantApplication,
  creditGrantApplicationShape,
  OPEN_APPLICATIONS,
} from '../../../core/credits/grants/application.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Database, Transaction } from '../../foundation/stores.ts';
import { ScopedModel } from '../foundation/model.ts';

export interface CreditGrantApplicationModel extends CreditGrantApplication {}

export class CreditGrantApplicationModel extends ScopedModel {
  static override tableName = 'credit_grant_applications';
  static override recordName = 'credit grant application';
  /**
   * Applications have no audit entries of their own: the wallet transaction records the credits, and the credit grant records the terms.
   */
  static override isAudited = false;
  static override record = creditGrantApplicationShape;

  /** Applications that may still be applied. */
  static open(scope: Scope, database: Database) {
    return CreditGrantApplicationModel.in(scope, database).whereIn('application_status', [...OPEN_APPLICATIONS]);
  }

  /** Inserts planned applications. An existing one stays unchanged; a cancelled one whose grant starts again becomes pending. */
  static async plan(
    scope: Scope,
    records: readonly (Record<string, unknown> & { idempotency_key: string })[],
    { by, transaction }: { by: Author | Pick<Author, 'now'>; transaction: Transaction },
  ): Promise<void> {
    const { tenant_id, environment_id } = scope;
    for (const record of records) {
      const row = { ...record, tenant_id, environment_id };
      const columns = Object.keys(row);
      await transaction.raw(
        `insert into credit_grant_applications (${columns.map(() => '??').join(', ')})
         values (${columns.map(() => '?').join(', ')}) on conflict do nothing`,
        [...columns, ...Object.values(row)] as never,
      );
    }
    const keys = records.map(({ idempotency_key }) => idempotency_key);
    const cancelled = await CreditGrantApplicationModel.in(scope, transaction)
      .whereIn('idempotency_key', keys)
      .where('application_status', 'cancelled')
      .forUpdate();
    const changes = { application_status: 'pending' as const, failure_reason: null, retry_count: 0 };
    await CreditGrantApplicationModel.changeAll(scope, { records: cancelled, changes }, { by, database: transaction });
  }
}
