/**
 * Processes an inbound event of a provider (docs/integrations/README.md, "Webhooks of providers"). The records that the
 * event names are read from the provider, outside any transaction. One transaction applies them and marks the event as
 * processed.
 */

import { FarthingError } from '../../../core/foundation/error.ts';
import { PAYMENT_GATEWAYS } from '../../../core/payments/record.ts';
import { isMoneyRead } from '../../../core/platform/connection/sync-config.ts';
import type { ProviderEventSubject } from '../../../core/platform/integration/provider-event.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { ProviderEventModel } from '../../../storage/models/delivery/provider-event.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { endEvent } from '../../../storage/queue/provider-events.ts';
import {
  type AccountCaller,
  type AccountCallSettings,
  prepareCalls,
} from '../../foundation/connections/call-account.ts';
import { findBeingSent } from '../../foundation/connections/mappings.ts';
import { emit } from '../../foundation/emit.ts';
import { findEarlierAttempts, refreshEarlierAttempt } from '../../lifecycle/payments/earlier-attempts.ts';
import { refreshPayment } from '../../lifecycle/payments/process-payment.ts';
import { applyPulled, lockPulled, type PulledInvoice, pullMapping } from '../../lifecycle/payments/pull-invoice.ts';
import { importSavedPaymentMethods } from '../../payments/card-setups.ts';

type EventInput = {
  readonly connection: ConnectionModel;
  readonly event: ProviderEventModel;
  readonly settings: AccountCallSettings;
  readonly now: Date;
};

/**
 * Thrown if no record here matches the event yet, but a push or a charge is in progress that may store one. The event
 * is processed again later.
 */
export class UnknownRecord extends Error {}

const MONEY_KINDS: readonly ProviderEventSubject['kind'][] = ['invoice', 'payment', 'refund', 'dispute'];

/** Processes one event. A failure of the provider is thrown as a `ProviderError`. */
export async function processEvent(stores: Stores, { connection, event, settings, now }: EventInput): Promise<void> {
  const subjects = event.subjects.filter(({ kind }) => MONEY_KINDS.includes(kind));
  const setup_ids = listIds(event.subjects, 'setup');
  if (subjects.length + setup_ids.length === 0)
    return ignoreEvent(stores, event, { reason: 'its records are not read', now });
  if (!isMoneyRead(connection.sync_config))
    return ignoreEvent(stores, event, { reason: 'sync_config reads no payments', now });
  const call = await prepareCalls(stores, connection, { settings, by: { now } });
  const saved = await importPaymentMethods(stores, setup_ids, { connection, call, now });
  const requested = await listRequestedPayments(stores.postgres, connection, subjects);
  for (const payment of requested) await rethrowCause(() => refreshPayment(stores, payment, { now }));
  const earlier = await refreshEarlier(stores, { connection, subjects, now });
  const known = new Set([...requested.map(({ gateway_payment_id }) => gateway_payment_id), ...earlier]);
  const pulled = await pullConcerned(stores.postgres, { connection, subjects, call, known });
  if (saved + known.size + pulled.length === 0) {
    if (await isAwaited(stores.postgres, connection)) throw new UnknownRecord('its record is not known yet');
    return ignoreEvent(stores, event, { reason: 'it concerns no record of this environment', now });
  }
  await retryTransaction(stores, async (transaction) => {
    await lockPulled(transaction, connection, pulled);
    for (const one of pulled) await applyPulled(stores, transaction, { ...one, connection, now });
    if (await endEvent(transaction, event, { event_state: 'processed', reason: null, processed_at: now }))
      await notifyDispute(transaction, { connection, event, now });
  });
}

/** Rethrows the provider's own error, because its class decides whether the connection pauses. */
async function rethrowCause(refresh: () => Promise<unknown>): Promise<void> {
  try {
    await refresh();
  } catch (error) {
    throw error instanceof FarthingError && error.cause instanceof ProviderError ? error.cause : error;
  }
}

/** Applies charges of attempts that a later attempt has replaced. Returns their ids at the provider. */
async function refreshEarlier(
  stores: Stores,
  { connection, subjects, now }: Pick<EventInput, 'connection' | 'now'> & Pick<ConcernedInput, 'subjects'>,
): Promise<(string | null)[]> {
  const gateway = findGateway(connection);
  if (gateway === undefined) return [];
  const found = await findEarlierAttempts(connection, listIds(subjects, 'payment'), stores.postgres);
  for (const one of found) await rethrowCause(() => refreshEarlierAttempt(stores, one, { gateway, by: { now } }));
  return found.map(({ attempt }) => attempt.gateway_payment_id);
}

function findGateway({ provider_type }: ConnectionModel) {
  return PAYMENT_GATEWAYS.find((gateway) => gateway === provider_type);
}

/**
 * Saves or archives the payment methods that the event names, by the id of their setup or their own. Returns the number of changed ones.
 */
async function importPaymentMethods(
  stores: Stores,
  setup_ids: readonly string[],
  { connection, call, now }: { connection: ConnectionModel; call: AccountCaller; now: Date },
): Promise<number> {
  const author = { user_id: '', now };
  let saved = 0;
  for (const provider_entity_id of setup_ids) {
    const input = { connection, call, provider_entity_id, author };
    if ((await importSavedPaymentMethods(stores, connection, input)) !== null) saved++;
  }
  return saved;
}

/**
 * Lists the payments that this service requested from the provider. Payments that the provider reported have a `connection_id` and are
 * excluded.
 */
async function listRequestedPayments(
  database: Database,
  connection: ConnectionModel,
  subjects: readonly ProviderEventSubject[],
): Promise<PaymentModel[]> {
  const payment_gateway = findGateway(connection);
  const ids = listIds(subjects, 'payment');
  if (payment_gateway === undefined || ids.length === 0) return [];
  return PaymentModel.in(connection, database)
    .where({ payment_gateway, connection_id: null, status: 'published' })
    .whereIn('gateway_payment_id', ids)
    .orderBy('id');
}

function listIds(subjects: readonly ProviderEventSubject[], kind: ProviderEventSubject['kind']): string[] {
  return subjects.flatMap((one) => (one.kind === kind ? one.provider_entity_id : []));
}

type ConcernedInput = {
  readonly connection: ConnectionModel;
  readonly subjects: readonly ProviderEventSubject[];
  readonly call: AccountCaller;
  /** Ids of payments that this service requested. */
  readonly known: ReadonlySet<string | null | undefined>;
};

/**
 * Reads the provider's copies of the invoices that the event names, or to which a payment, refund or dispute belongs.
 * If a payment was deleted at the provider, its invoice is found by the stored payment.
 */
async function pullConcerned(
  database: Database,
  { connection, subjects, call, known }: ConcernedInput,
): Promise<PulledInvoice[]> {
  const ids = new Set(listIds(subjects, 'invoice'));
  for (const subject of subjects) {
    if (subject.kind === 'invoice' || known.has(subject.provider_entity_id)) continue;
    const concerned = await call(async (account) => (await account.listConcernedInvoices?.(subject)) ?? []);
    for (const id of concerned) ids.add(id);
  }
  const paid_ids = await listPaidInvoices(database, connection, listIds(subjects, 'payment'));
  if (ids.size + paid_ids.length === 0) return [];
  const mappings = await IntegrationMappingModel.in(connection, database)
    .where({ connection_id: connection.id, entity_type: 'invoice', mapping_state: 'made' })
    .where((one) => void one.whereIn('provider_entity_id', [...ids]).orWhereIn('entity_id', paid_ids))
    .orderBy('entity_id');
  const pulled: PulledInvoice[] = [];
  for (const mapping of mappings) pulled.push(await pullMapping(call, mapping));
  return pulled;
}

/**
 * Lists the invoices of stored payments with these ids at the provider. The payments were reported by the provider or
 * pushed to it.
 */
async function listPaidInvoices(
  database: Database,
  connection: ConnectionModel,
  payment_ids: readonly string[],
): Promise<string[]> {
  if (payment_ids.length === 0) return [];
  const { id: connection_id } = connection;
  const sent = await IntegrationMappingModel.in(connection, database)
    .where({ connection_id, entity_type: 'payment', mapping_state: 'made' })
    .whereIn('provider_entity_id', [...payment_ids])
    .select('entity_id');
  const sent_ids = sent.map(({ entity_id }) => entity_id);
  const payments = await PaymentModel.in(connection, database)
    .where({ status: 'published' })
    .where((one) => {
      void one
        .where((reported) => void reported.where({ connection_id }).whereIn('gateway_payment_id', [...payment_ids]))
        .orWhereIn('id', sent_ids);
    })
    .select('destination_id');
  return payments.map(({ destination_id }) => destination_id);
}

/**
 * Whether a record is being created at the provider and its id is not stored yet. Its mapping or payment is written
 * before the call. If neither exists, the event concerns a record that is not ours.
 */
async function isAwaited(database: Database, connection: ConnectionModel): Promise<boolean> {
  const { provider_type } = connection;
  const [mapping] = await findBeingSent(database, connection).limit(1);
  if (mapping) return true;
  const [payment] = await PaymentModel.in(connection, database)
    .where({ gateway_payment_id: null, status: 'published' })
    .whereRaw('payment_gateway = ?', [provider_type])
    .whereNotNull('gateway_tracking_id')
    .whereIn('payment_status', ['INITIATED', 'PROCESSING'])
    .limit(1);
  return payment !== undefined;
}

async function ignoreEvent(
  { postgres }: Stores,
  event: ProviderEventModel,
  { reason, now }: { reason: string; now: Date },
): Promise<void> {
  await endEvent(postgres, event, { event_state: 'ignored', reason, processed_at: now });
}

/** A dispute changes no amount, because the tenant may win it. The system event lets a person decide. */
async function notifyDispute(
  transaction: Transaction,
  { connection, event, now }: Omit<EventInput, 'settings'>,
): Promise<void> {
  const [dispute_id] = listIds(event.subjects, 'dispute');
  if (dispute_id === undefined) return;
  const payments = await PaymentModel.in(connection, transaction)
    .where({ status: 'published' })
    .whereIn('gateway_payment_id', listIds(event.subjects, 'payment'));
  const dispute = { provider_entity_id: dispute_id, event_type: event.event_type };
  for (const record of payments)
    await emit(transaction, 'payment.disputed', { record, by: { now }, also: { dispute } });
}
