/** Pages of records for exports, in a fixed order, so that each record is on one page. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { CustomerModel } from '../catalog/customer.ts';
import type { SqlCondition } from '../foundation/page.ts';
import { CreditNoteModel } from '../invoicing/credit-note.ts';
import { PaymentModel } from '../payments/payment.ts';
import { SubscriptionModel } from '../subscriptions/subscription.ts';

/** Instants are RFC 3339; the end is exclusive. */
type DatedPageQuery<Row> = {
  readonly from: string;
  readonly to: string;
  /** A further condition with its bindings. */
  readonly only?: SqlCondition | undefined;
  readonly after: Row | null;
  readonly limit: number;
  readonly database: Database;
};

/** Lists payments by the instant at which the money was received; a voided one is included with its `voided_at`. */
export async function listReceivedPayments(
  scope: Scope,
  { from, to, only, after, limit, database }: DatedPageQuery<PaymentModel>,
): Promise<PaymentModel[]> {
  const found = PaymentModel.in(scope, database)
    .where('succeeded_at', '>=', from)
    .where('succeeded_at', '<', to)
    .orderBy(['succeeded_at', 'id'])
    .limit(limit);
  if (only) void found.whereRaw(...only);
  if (after) void found.whereRaw('(succeeded_at, id) > (?, ?)', [after.succeeded_at!, after.id]);
  return found;
}

/** Lists credit notes by the instant of their finalization; a voided one is included with its status. */
export async function listFinalCreditNotes(
  scope: Scope,
  { from, to, only, after, limit, database }: DatedPageQuery<CreditNoteModel>,
): Promise<CreditNoteModel[]> {
  const found = CreditNoteModel.in(scope, database)
    .where('finalized_at', '>=', from)
    .where('finalized_at', '<', to)
    .orderBy(['finalized_at', 'id'])
    .limit(limit);
  if (only) void found.whereRaw(...only);
  if (after) void found.whereRaw('(finalized_at, id) > (?, ?)', [after.finalized_at!, after.id]);
  return found;
}

type WholePageQuery<Row> = Pick<DatedPageQuery<Row>, 'after' | 'limit' | 'database'>;

/** Lists all customers, also archived ones, by id. */
export async function listAllCustomers(
  scope: Scope,
  { after, limit, database }: WholePageQuery<CustomerModel>,
): Promise<CustomerModel[]> {
  return CustomerModel.in(scope, database)
    .where('id', '>', after?.id ?? '')
    .orderBy('id')
    .limit(limit);
}

/** Lists all subscriptions, also ended and archived ones, by id. */
export async function listAllSubscriptions(
  scope: Scope,
  { after, limit, database }: WholePageQuery<SubscriptionModel>,
): Promise<SubscriptionModel[]> {
  return SubscriptionModel.in(scope, database)
    .where('id', '>', after?.id ?? '')
    .orderBy('id')
    .limit(limit);
}
