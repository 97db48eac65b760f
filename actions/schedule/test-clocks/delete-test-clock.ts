/**
 * Deletes a test clock, so that the environment goes by the machine's clock (docs/rules/clock.md, "Deleting one"). Nothing
 * may lie in the future then: the scheduler would wait for it. Nothing may be due in the past: the scheduler would do it
 * with the instant of now, and an advance does it at its own.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { formatMs, type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import { hasEventAfter } from '../../../storage/events/next-event.ts';
import { runAsSystem } from '../../../storage/foundation/request-context.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { hasScheduledFiles } from '../../../storage/models/reporting/scheduled-task.ts';
import { clearClocks } from '../../../storage/models/schedule/environment-clock.ts';
import { TestClockModel } from '../../../storage/models/schedule/test-clock.ts';
import { hasCorrections } from '../../../storage/progress/corrections.ts';
import { hasUndispatched } from '../../../storage/queue/undispatched-events.ts';
import { listAccountConnections } from '../../foundation/connections/find-connections.ts';
import { waitBeforeRequest } from '../../metering/events/wait-for-log.ts';
import { type DueWorkSettings, listDueWork, listNextDueTimes } from '../due-work.ts';
import { moveExportStarts } from './create-test-clock.ts';
import { checkNothingRuns } from './move-test-clock.ts';

type DeleteTestClockInput = { readonly id: string; readonly author: Author; readonly settings: DueWorkSettings };

export async function deleteTestClock(stores: Stores, scope: Scope, input: DeleteTestClockInput): Promise<void> {
  const { id, author, settings } = input;
  await TestClockModel.fetch(scope, id, { database: stores.postgres });
  // Events that were accepted may lie in the future, and corrections may be in progress.
  await waitBeforeRequest(stores, scope);
  await stores.postgres.transaction(async (transaction) => {
    // The lock waits for all writes at the clock's instant, and refuses later ones.
    const clock = await TestClockModel.fetch(scope, id, { database: transaction, lock: true });
    if (clock.test_clock_status === 'advancing')
      throw notAllowed('the clock is advancing: wait until it is ready, or stop it', { id });
    await checkNothingRuns(scope, transaction);
    await checkNoConnections(scope, transaction);
    await checkDispatched(scope, transaction);
    const now = author.now.getTime();
    if (toInstant(clock.frozen_time) > now) {
      await checkNothingAhead(stores, transaction, { scope, now });
      await startNow(transaction, clock, author);
    } else {
      await checkNothingDue(stores, { scope, clock, now, settings });
      await checkCorrections(transaction, scope);
    }
    await TestClockModel.remove(clock, { by: author, database: transaction });
  });
  clearClocks(stores.postgres);
}

/**
 * Beside a clock the credentials of a connection are not tested, and invoices are not sent. The check of invoices would
 * report those that became final after the connection was created.
 */
async function checkNoConnections(scope: Scope, transaction: Transaction): Promise<void> {
  const connections = await listAccountConnections(scope, transaction);
  if (connections.length > 0)
    throw notAllowed(
      'the environment has connections to providers, which a clock keeps from calls: archive them first',
      {
        connection_ids: connections.map(({ id }) => id),
      },
    );
}

/** The job that dispatches events asks whether the environment has a clock: without one it would mail simulated invoices. */
async function checkDispatched(scope: Scope, transaction: Transaction): Promise<void> {
  if (await hasUndispatched(transaction, scope))
    throw notAllowed('system events of the environment wait to be dispatched: try again in a moment');
}

/** Refuses to delete a clock that is ahead of the machine's, unless only a catalogue was written by it. */
async function checkNothingAhead(
  { clickhouse }: Stores,
  transaction: Transaction,
  { scope, now }: { scope: Scope; now: Milliseconds },
): Promise<void> {
  const has = [
    (await CustomerModel.in(scope, transaction).select('id').limit(1)).length > 0 && 'customers',
    (await hasEventAfter(clickhouse, scope, new Date(now))) && 'later events',
    (await hasScheduledFiles(transaction, scope)) && 'export files',
  ].filter(Boolean);
  if (has.length > 0)
    throw notAllowed(
      `the clock is ahead of real time, and the environment has ${has.join(', ')}, whose times would lie in the future: copy the catalogue into a new environment (POST /environments/{id}/clone), or delete the clock when real time has reached it`,
    );
}

type DueCheck = { readonly scope: Scope; readonly clock: TestClockModel; readonly now: Milliseconds };

async function checkNothingDue(
  stores: Stores,
  { scope, clock, now, settings }: DueCheck & Pick<DeleteTestClockInput, 'settings'>,
): Promise<void> {
  // The work at the instant of a failed clock is not done.
  const from = new Date(toInstant(clock.frozen_time) - (clock.test_clock_status === 'failed' ? 1 : 0));
  // The queries of due work are those of the system's jobs, which the tenant guard does not check.
  const due = await runAsSystem(() => listNextDueTimes(stores, listDueWork(settings), { scope, from }));
  const first = Math.min(...due.map((at) => at?.getTime() ?? Number.POSITIVE_INFINITY));
  if (first <= now)
    throw notAllowed(`work is due at ${formatMs(first)}: advance the clock to the present first`, {
      due_at: formatMs(first),
      now: formatMs(now),
    });
}

/**
 * Whether an invoice contains a correction is decided by their times (storage/progress/corrections.ts). Corrections have
 * those of the machine's clock, and the invoices those of the test clock.
 */
async function checkCorrections(transaction: Transaction, scope: Scope): Promise<void> {
  const invoices = await InvoiceModel.in(scope, transaction).select('id').limit(1);
  if (invoices.length > 0 && (await hasCorrections(transaction, scope)))
    throw notAllowed(
      'events were corrected, and invoices have the time of the clock: copy the catalogue into a new environment (POST /environments/{id}/clone)',
    );
}

/**
 * Moves the starts and ends of prices and taxes that the clock has passed to now, so that what was current by the clock is current, and
 * what had ended has ended. Export schedules continue from now.
 */
async function startNow(database: Transaction, { frozen_time, ...scope }: TestClockModel, by: Author): Promise<void> {
  const now = by.now.toISOString();
  const findPassed = <Found>(
    all: { whereBetween(column: string, range: [string, string]): { forUpdate(): Found } },
    column: string,
  ) => all.whereBetween(column, [now, frozen_time]).forUpdate();
  // The start is moved first, because no record may end before it starts.
  for (const column of ['start_date', 'end_date'] as const) {
    const prices = await findPassed(PriceModel.in(scope, database), column);
    const taxes = await findPassed(TaxAssociationModel.in(scope, database), column);
    await PriceModel.changeAll(scope, { records: prices, changes: { [column]: now } }, { by, database });
    await TaxAssociationModel.changeAll(scope, { records: taxes, changes: { [column]: now } }, { by, database });
  }
  await moveExportStarts(database, scope, { frozen_time: now });
}
