/** Pages of records for exports, in a fixed order, so that each record is on one page. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../foundation/stores.ts';
import { CustomerModel } from '../catalog/customer.ts';
import type { PageQuery, PageRecord, SqlCondition } from '../foundation/page.ts';
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
export function listReceivedPayments(scope: Scope, page: DatedPageQuery<PaymentModel>): Promise<PaymentModel[]> {
  return listDated(PaymentModel.in(scope, page.database), 'succeeded_at', page);
}

/** Lists credit notes by the instant of their finalization; a voided one is included with its status. */
export function listFinalCreditNotes(scope: Scope, page: DatedPageQuery<CreditNoteModel>): Promise<CreditNoteModel[]> {
  return listDated(CreditNoteModel.in(scope, page.database), 'finalized_at', page);
}

async function listDated<M extends PageRecord & { id: string }>(
  records: PageQuery<M>,
  column: keyof M & string,
  { from, to, only, after, limit }: DatedPageQuery<M>,
): Promise<M[]> {
  void records.where(column, '>=', from).where(column, '<', to).orderBy([column, 'id']).limit(limit);
  if (only) void records.whereRaw(...only);
  if (after) void records.whereRaw('(??, id) > (?, ?)', [column, after[column] as string, after.id]);
  return records;
}

type WholePageQuery<Row> = Pick<DatedPageQuery<Row>, 'after' | 'limit' | 'database'>;

/** Lists all customers, also archived ones, by id. */
export function listAllCustomers(scope: Scope, page: WholePageQuery<CustomerModel>): Promise<CustomerModel[]> {
  return listAll(CustomerModel.in(scope, page.database), page);
}

/** Lists all subscriptions, also ended and archived ones, by id. */
export function listAllSubscriptions(
  scope: Scope,
  page: WholePageQuery<SubscriptionModel>,
): Promise<SubscriptionModel[]> {
  return listAll(SubscriptionModel.in(scope, page.database), page);
}

async function listAll<M extends PageRecord & { id: string }>(
  records: PageQuery<M>,
  { after, limit }: WholePageQuery<M>,
): Promise<M[]> {
  return records
    .where('id', '>', after?.id ?? '')
    .orderBy('id')
    .limit(limit);
}
