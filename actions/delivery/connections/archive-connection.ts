/** Archives a connection with its mappings (docs/integrations/README.md, "Connections"). */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { isBeingArchived } from '../../../core/platform/connection/record.ts';
import type { Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { PaymentRefundModel } from '../../../storage/models/payments/payment-refund.ts';
import { ScheduledTaskModel } from '../../../storage/models/reporting/scheduled-task.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { dropSomeMappings } from '../../foundation/connections/mappings.ts';
import { cancelPageClosing } from '../../payments/cancel-page-closing.ts';
import {
  buildUnclosedPagesQuery,
  findOpenCharge,
  findUnclosedPage,
  findUnendedCheckout,
} from '../../payments/unended-payments.ts';

/** From the first transaction to the last, no payment or refund is requested, and the connection cannot become active. */
const BEING_ARCHIVED = {
  connection_state: 'being_archived',
  attention_reason: 'it is being archived; if that was interrupted, archive it again',
} as const;
const ARCHIVED = {
  status: 'archived',
  secret: '',
  oauth_tokens: '',
  refreshing_by: null,
  refreshing_until: null,
} as const;

type ArchiveInput = {
  readonly id: string;
  readonly author: Author;
  /** Mappings that one transaction drops. */
  readonly mappings_at_once?: number;
  /** Maximum number of voided payment pages that one transaction stops closing. It is limited because each page emits an event. */
  readonly pages_at_once?: number;
};
type ArchiveRound = { readonly author: Author; readonly batch_size: number };

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
  { id, author, mappings_at_once = 1_000, pages_at_once = 100 }: ArchiveInput,
): Promise<void> {
  for (let isLast = false; !isLast; )
    isLast = await retryTransaction(stores, async (database) => {
      const connection = await ConnectionModel.fetchPublished(scope, id, { database, lock: true });
      await checkNoTask(database, connection);
      // After this check no payment can begin. A refusal after this point would come too late: some mappings are then
      // already dropped.
      if (!isBeingArchived(connection)) await checkNothingPends(database, connection);
      const hasMore =
        (await abandonSomePages(database, connection, { author, batch_size: pages_at_once })) ||
        (await dropSomeMappings(database, connection, { author, batch_size: mappings_at_once }));
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

/** Throws if a charge or refund has no outcome yet: only the account from which it was requested knows the outcome. */
export async function checkNothingPends(database: Transaction, connection: ConnectionModel): Promise<void> {
  const owner = { connection };
  // A stopped connection cannot close voided payment pages at the provider, so only those of an unended checkout are refused. The archival
  // abandons the others.
  const findPage = connection.connection_state === 'active' ? findUnclosedPage : findUnendedCheckout;
  const unended = (await findOpenCharge(database, owner)) ?? (await findPage(database, owner));
  if (unended) throw notAllowed(unended.why, { payment_id: unended.payment_id });
  const pending = PaymentRefundModel.in(connection, database).where({ refund_status: 'pending' }).select('payment_id');
  const [refunded] = await PaymentModel.in(connection, database)
    .where({ status: 'published' })
    .whereRaw('payment_gateway = ?', [connection.provider_type])
    .whereIn('id', pending)
    .select('id')
    .limit(1);
  if (refunded)
    throw notAllowed(`a refund of the payment ${refunded.id} is pending: wait for its outcome`, {
      payment_id: refunded.id,
    });
}

/** Stops closing the voided payment pages of a stopped connection, whose checkouts have ended. Returns whether more pages may be left. */
async function abandonSomePages(
  database: Transaction,
  connection: ConnectionModel,
  { author, batch_size }: ArchiveRound,
): Promise<boolean> {
  const pages = await buildUnclosedPagesQuery(database, { connection }).orderBy('id').limit(batch_size).forUpdate();
  for (const page of pages) await cancelPageClosing(database, page, { gateway: connection.provider_type, by: author });
  return pages.length === batch_size;
}
