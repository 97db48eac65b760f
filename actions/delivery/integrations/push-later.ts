/**
 * Marks the records of system events as pending for the connected providers (docs/integrations/README.md, "Sending by
 * itself"). It runs in the transaction that dispatches the events, so each event is handled once.
 */
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { RECEIVED } from '../../../core/payments/moves.ts';
import { findPushedEvent, type PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { addPushJob, markPending } from '../../../storage/queue/pending-pushes.ts';
import type { UndispatchedEvent } from '../../../storage/queue/undispatched-events.ts';
import { lockAccountConnections } from '../../foundation/connections/find-connections.ts';
import { buildIntendedMapping } from '../../foundation/connections/mappings.ts';
import { canPush, isPushSynced } from './push-entity.ts';
import { findUncontaining, type InvoiceMoney, isTakenThere, loadInvoiceMappings } from './sent-invoice.ts';

type PushableEvent = Pick<UndispatchedEvent, 'event_name' | 'entity_id' | 'has_clock'>;

/**
 * All events are of one environment. An environment with a test clock pushes nothing, because its events are simulated.
 */
export async function pushLater(
  transaction: Transaction,
  scope: Scope,
  { events, now }: { events: readonly PushableEvent[]; now: Date },
): Promise<void> {
  const pushed = events.flatMap((event) => {
    const found = event.has_clock ? null : findPushedEvent(event.event_name);
    return found ? { ...event, ...found } : [];
  });
  if (pushed.length === 0) return;
  for (const connection of await lockAccountConnections(scope, transaction)) {
    const wanted = pushed.filter((event) => isWanted(connection, event));
    for (const some of groupBy(wanted, ({ entity_type }) => entity_type).values())
      await markRecords(transaction, connection, { records: some, now });
    if (wanted.length > 0) await addPushJob(transaction, connection);
  }
}

type PushedRecord = PushableEvent & NonNullable<ReturnType<typeof findPushedEvent>>;

function isWanted(connection: ConnectionModel, { entity_type }: PushedRecord): boolean {
  return canPush(connection, entity_type) && isPushSynced(connection, entity_type);
}

async function markRecords(
  transaction: Transaction,
  connection: ConnectionModel,
  { records, now }: { records: readonly [PushedRecord, ...PushedRecord[]]; now: Date },
): Promise<void> {
  const { entity_type } = records[0];
  const entity_ids = [...new Set(records.map(({ entity_id }) => entity_id))];
  const marked = await markPending(transaction, connection, { connection_id: connection.id, entity_type, entity_ids });
  const unknown = records.filter(({ entity_id, only_known }) => !only_known && !marked.has(entity_id));
  const unknown_ids = [...new Set(unknown.map(({ entity_id }) => entity_id))];
  const author = { user_id: '', now };
  const mappings = (await listNew(transaction, connection, { entity_type, entity_ids: unknown_ids })).map(
    (entity_id) => ({
      ...buildIntendedMapping({ connection, entity: { entity_type, entity_id }, author }),
      pending_since: now.toISOString(),
    }),
  );
  await IntegrationMappingModel.addAll(connection, mappings, { database: transaction });
}

type NewRecords = { readonly entity_type: PushedEntityType; readonly entity_ids: readonly string[] };

/** Lists which records without a mapping have to be pushed. A record that was once unlinked from the connection is not pushed again. */
async function listNew(
  transaction: Transaction,
  connection: ConnectionModel,
  { entity_type, entity_ids }: NewRecords,
): Promise<string[]> {
  if (entity_ids.length === 0) return [];
  const unlinked = await IntegrationMappingModel.in(connection, transaction)
    .where({ connection_id: connection.id, entity_type, mapping_state: 'gone' })
    .whereIn('entity_id', [...entity_ids])
    .select('entity_id');
  const wasUnlinked = new Set(unlinked.map(({ entity_id }) => entity_id));
  const ids = await LISTS[entity_type](transaction, connection, entity_ids);
  return ids.filter((id) => !wasUnlinked.has(id));
}

type SendableList = (
  transaction: Transaction,
  connection: ConnectionModel,
  ids: readonly string[],
) => Promise<string[]>;

const LISTS: Readonly<Record<PushedEntityType, SendableList>> = {
  customer: async (transaction, connection, ids) => {
    const customers = [...(await CustomerModel.byId(connection, ids, transaction)).values()];
    return listSince(
      connection,
      customers.map(({ id, created_at }) => ({ id, since: created_at })),
    );
  },
  invoice: async (transaction, connection, ids) => {
    const invoices = [...(await InvoiceModel.byId(connection, ids, transaction)).values()];
    return listSince(
      connection,
      invoices.map(({ id, finalized_at }) => ({ id, since: finalized_at })),
    );
  },
  payment: async (transaction, connection, ids) => {
    const payments = [...(await PaymentModel.byId(connection, ids, transaction)).values()].filter(
      (payment) => RECEIVED.includes(payment.payment_status) && !isTakenThere(payment, connection),
    );
    const money = payments.map(({ id, destination_id, succeeded_at, created_at }) => {
      return { id, invoice_id: destination_id, since: succeeded_at ?? created_at };
    });
    return listUncontained(transaction, connection, money);
  },
  credit_note: async (transaction, connection, ids) => {
    const notes = [...(await CreditNoteModel.byId(connection, ids, transaction)).values()];
    const money = notes.flatMap(({ id, invoice_id, finalized_at, credit_note_status }) =>
      credit_note_status === 'FINALIZED' && finalized_at ? { id, invoice_id, since: finalized_at } : [],
    );
    return listUncontained(transaction, connection, money);
  },
  subscription: async (transaction, connection, ids) => {
    const subscriptions = [...(await SubscriptionModel.byId(connection, ids, transaction)).values()];
    const sent = subscriptions.filter(({ subscription_type }) => subscription_type !== 'INHERITED');
    return listSince(
      connection,
      sent.map(({ id, created_at }) => ({ id, since: created_at })),
    );
  },
};

/**
 * Selects records that are younger than the connection. An event may be repeated long afterwards, so its own instant
 * does not show the age of its record.
 */
function listSince(
  { created_at }: ConnectionModel,
  records: readonly { readonly id: string; readonly since: string | null | undefined }[],
): string[] {
  return records.flatMap(({ id, since }) => (since && toInstant(since) >= toInstant(created_at) ? id : []));
}

async function listUncontained(
  transaction: Transaction,
  connection: ConnectionModel,
  money: readonly InvoiceMoney[],
): Promise<string[]> {
  const named = { connection_id: connection.id, invoice_ids: money.map(({ invoice_id }) => invoice_id) };
  const mappings = await loadInvoiceMappings(connection, named, transaction);
  return money.filter((one) => findUncontaining(mappings, one) !== null).map(({ id }) => id);
}
