/** Archives a connection with its mappings (docs/integrations/README.md, "Connections"). */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { BEING_ARCHIVED_REASON, isBeingArchived } from '../../../core/platform/connection/record.ts';
import type { Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { dropSomeMappings } from '../../foundation/connections/mappings.ts';
import { emit } from '../../foundation/emit.ts';

/** State during the archival. It prevents requests of payments and refunds, and the connection cannot become active. */
const BEING_ARCHIVED = { connection_state: 'needs_attention', attention_reason: BEING_ARCHIVED_REASON } as const;
const ARCHIVED = {
  status: 'archived',
  secret: '',
  oauth_tokens: '',
  refreshing_by: null,
  refreshing_until: null,
} as const;

/**
 * Archives a connection in several short transactions, because the dispatch of events waits for its lock. If the work
 * is interrupted, a repeated request continues it. The archival is refused while a scheduled task uses the connection,
 * because its next file would have no destination. It is also refused while a payment of the connection has no outcome:
 * a later connection may be to another account, which would charge the payment again. The lock of the connection
 * decides between the archival and a new payment.
 */
export async function archiveConnection(
  stores: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  for (let isLast = false; !isLast; )
    isLast = await retryTransaction(stores, async (database) => {
      const connection = await ConnectionModel.fetchPublished(scope, id, { database, lock: true });
      await checkNoTask(database, connection);
      // After this check no payment can begin. A refusal after this point would come too late: some mappings are then
      // already dropped.
      if (!isBeingArchived(connection)) await checkNothingPends(database, connection);
      const hasMore =
        (await leaveSomePagesOpen(database, connection, author)) ||
        (await dropSomeMappings(database, connection, author));
      await ConnectionModel.change(connection, hasMore ? BEING_ARCHIVED : ARCHIVED, { by: author, database });
      return !hasMore;
    });
}

async function checkNoTask(database: Transaction, connection: ConnectionModel): Promise<void> {
  const [used] = await ScheduledTaskModel.in(connection, database)
    .where({ connection_id: connection.id, status: 'published' })
    .select('id')
    .limit(1);
  if (used) throw notAllowed(`the scheduled task ${used.id} writes to it: archive that first`);
}

/**
 * Refuses the archival while a charge or refund has no outcome, because only the account of this connection knows that
 * outcome.
 */
async function checkNothingPends(database: Transaction, connection: ConnectionModel): Promise<void> {
  const find = () => buildPaymentsQuery(database, connection).select('id').limit(1);
  const [charge] = await find()
    .whereIn('payment_status', ['INITIATED', 'PROCESSING'])
    .whereNotNull('gateway_tracking_id');
  if (charge)
    throw notAllowed(`the payment ${charge.id} has no outcome yet: wait for it, or void its page`, {
      payment_id: charge.id,
    });
  // Without an active connection the page cannot be closed. The archival then records in the payment that the page may
  // be open.
  const isActive = connection.connection_state === 'active';
  const [page] = isActive ? await buildUnclosedPagesQuery(database, connection).select('id').limit(1) : [];
  if (page)
    throw notAllowed(`the page of the payment ${page.id} is not closed yet: wait for it`, { payment_id: page.id });
  const pending = PaymentRefundModel.in(connection, database).where({ refund_status: 'pending' }).select('payment_id');
  const [refunded] = await find().whereIn('id', pending);
  if (refunded)
    throw notAllowed(`a refund of the payment ${refunded.id} is pending: wait for its outcome`, {
      payment_id: refunded.id,
    });
}

function buildPaymentsQuery(database: Transaction, connection: ConnectionModel) {
  return PaymentModel.in(connection, database)
    .where({ status: 'published' })
    .whereRaw('payment_gateway = ?', [connection.provider_type]);
}

/** Void pages that the provider may still show. */
function buildUnclosedPagesQuery(database: Transaction, connection: ConnectionModel) {
  return buildPaymentsQuery(database, connection)
    .where({ payment_status: 'VOIDED', payment_method_type: 'PAYMENT_LINK' })
    .whereNotNull('gateway_tracking_id')
    .whereNotNull('next_attempt_at');
}

const PAGES_AT_ONCE = 100;

/**
 * Stops closing the void payment pages of an inactive connection. The error message of each payment states that a customer may still pay
 * there. A page with a checkout session is excluded, because the end of that session closes it. Returns whether more pages may remain.
 */
async function leaveSomePagesOpen(
  database: Transaction,
  connection: ConnectionModel,
  author: Author,
): Promise<boolean> {
  const pages = await buildUnclosedPagesQuery(database, connection)
    .where({ checkout_session_id: null })
    .orderBy('id')
    .limit(PAGES_AT_ONCE)
    .forUpdate();
  const { provider_type } = connection;
  const error_message = `the page may still be open at ${provider_type}, whose connection was archived: close it there, and refund there if it is paid`;
  for (const page of pages) {
    const changes = { next_attempt_at: null, error_message };
    const record = await PaymentModel.change(page, changes, { by: author, database });
    await emit(database, 'payment.updated', { record, by: author });
  }
  return pages.length === PAGES_AT_ONCE;
}
