/**
 * Gives an environment a test clock (docs/rules/clock.md, "Making one"). The environment must have no subscriptions and invoices,
 * because their instants come from the machine's clock and would be years off.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { formatMs, toInstant } from '../../../core/foundation/time/instant.ts';
import { findInterval } from '../../../core/platform/scheduled-task/interval.ts';
import { checkCanHaveClock, NO_PROGRESS, type TestClock } from '../../../core/platform/test-clock/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { hasFiles, moveOn, ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { clearClocks } from '../../../storage/models/schedule/environment-clock.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';

type CreateTestClockInput = Pick<TestClock, 'frozen_time' | 'name' | 'metadata'>;

export async function createTestClock(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { wanted, author }: { wanted: CreateTestClockInput; author: Author },
): Promise<TestClockModel> {
  const clock = await postgres.transaction(async (transaction) => {
    const { tenant_id, environment_id } = scope;
    checkCanHaveClock(await EnvironmentModel.fetch(tenant_id, environment_id, { database: transaction, lock: true }));
    await checkNothingBilled(transaction, scope);
    await movePriceStarts(transaction, scope, { wanted, author });
    await moveExportStarts(transaction, scope, wanted);
    const record = {
      ...wanted,
      id: newId('test_clock', author.now.getTime()),
      test_clock_status: 'ready',
      advanced_from: wanted.frozen_time,
      advanced_at: author.now.toISOString(),
      progress: NO_PROGRESS,
      ...createdBy(author),
    };
    const conflict = 'this environment has a test clock already';
    return TestClockModel.add(scope, record, { database: transaction, conflict });
  });
  clearClocks(postgres);
  return clock;
}

/**
 * Changes the start of prices that are current by the machine's clock, so that they are current at the clock's first
 * instant.
 */
async function movePriceStarts(
  database: Transaction,
  scope: Scope,
  { wanted, author }: { wanted: CreateTestClockInput; author: Author },
): Promise<void> {
  const { frozen_time } = wanted;
  const records = await PriceModel.in(scope, database)
    .where('start_date', '<=', author.now.toISOString())
    .where('start_date', '>', frozen_time)
    .where((open) => void open.whereNull('end_date').orWhere('end_date', '>', frozen_time))
    .forUpdate();
  await PriceModel.changeAll(scope, { records, changes: { start_date: frozen_time } }, { by: author, database });
}

/**
 * Sets the next range of export schedules without files to the interval that contains the clock's time. Any other schedule continues after
 * its last file.
 */
export async function moveExportStarts(
  database: Transaction,
  scope: Scope,
  { frozen_time }: Pick<TestClock, 'frozen_time'>,
): Promise<void> {
  for (const scheduled of await ScheduledTaskModel.in(scope, database).orderBy('id').forUpdate()) {
    if (await hasFiles(database, scheduled)) continue;
    const { start, end } = findInterval(scheduled.interval, toInstant(frozen_time));
    await moveOn(database, scheduled, { next_start: formatMs(start), next_end: formatMs(end) });
  }
}

async function checkNothingBilled(database: Transaction, scope: Scope): Promise<void> {
  const subscriptions = await SubscriptionModel.in(scope, database).select('id').limit(1);
  const invoices = await InvoiceModel.in(scope, database).select('id').limit(1);
  if (subscriptions.length + invoices.length > 0)
    throw notAllowed('an environment with subscriptions or invoices cannot get a test clock: make a new one for it', {
      field: 'environment_id',
    });
}
