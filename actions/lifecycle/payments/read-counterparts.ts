/**
 * Reads an invoice at the providers to which it was sent, before its automatic collection charges it (docs/rules/payments.md, "Tried
 * again"). A customer may have paid there, or a bank debit there may be in progress, without a notification so far.
 */
import { FarthingError, unavailable } from '../../../core/foundation/error.ts';
import { hasMoneyOnTheWay } from '../../../core/payments/provider-payments.ts';
import { isSynced } from '../../../core/platform/connection/sync-config.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import type { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { retryTransaction } from '../../../storage/postgres/pool/deadlock-retry.ts';
import { canCall, findAccountCapability, prepareCalls } from '../../foundation/connections/call-account.ts';
import { CALL_MS_MAX, callWithin } from '../../foundation/connections/call-deadline.ts';
import { endPause, pauseConnection } from '../../foundation/connections/connection-runs.ts';
import { listAccountConnections } from '../../foundation/connections/find-connections.ts';
import type { ChangeAuthor } from '../../foundation/emit.ts';
import { applyPulled, lockPulled, pullMapping, recordPullFailure } from './pull-invoice.ts';

type ReadingStores = Stores & { readonly config: NonNullable<Stores['config']> };
type PulledMapping = Awaited<ReturnType<typeof pullMapping>>;
type Counterpart = { readonly connection: ConnectionModel; readonly mapping: IntegrationMappingModel };

/**
 * Records money that providers have received for the invoice. Returns the reason for which the attempt has to wait; null if it may charge.
 */
export async function findMoneyAtProviders(
  stores: Stores,
  payment: PaymentModel,
  by: ChangeAuthor,
): Promise<string | null> {
  for (const counterpart of await listCounterparts(stores, payment)) {
    const reason = await readCounterpart(stores, counterpart, by);
    if (reason !== null) return reason;
  }
  return null;
}

/**
 * Lists the provider invoices that can be read now. An inactive connection is left out, so that it delays no charge by another provider.
 */
async function listCounterparts(
  { postgres }: Stores,
  { tenant_id, environment_id, destination_id: entity_id }: PaymentModel,
): Promise<Counterpart[]> {
  const scope = { tenant_id, environment_id };
  const mappings = await IntegrationMappingModel.in(scope, postgres)
    .where({ entity_type: 'invoice', entity_id, mapping_state: 'made' })
    .orderBy('id');
  if (mappings.length === 0 || !(await canCall({ postgres }, scope))) return [];
  const connections = (await listAccountConnections(scope, postgres)).filter(canReadInvoices);
  return mappings.flatMap((mapping) => {
    const connection = connections.find(({ id }) => id === mapping.connection_id);
    return connection ? { connection, mapping } : [];
  });
}

function canReadInvoices(connection: ConnectionModel): boolean {
  const isPulled = findAccountCapability(connection).exchanges.includes('pull');
  const isRead = isSynced(connection.sync_config, { entity: 'invoice', direction: 'inbound' });
  return isPulled && isRead && connection.connection_state === 'active';
}

async function readCounterpart(
  stores: Stores,
  { connection, mapping }: Counterpart,
  by: ChangeAuthor,
): Promise<string | null> {
  const { provider_type, paused_until } = connection;
  const { now } = by;
  if (!stores.config) throw unavailable(`the invoice at ${provider_type}`);
  if (paused_until && new Date(paused_until) > now)
    return `the invoice at ${provider_type} cannot be read during a pause`;
  try {
    const read = await pullCounterpart({ ...stores, config: stores.config }, { connection, mapping }, by);
    if (read === null) return null;
    await endPause(stores, connection);
    const { is_money_unrecorded } = await retryTransaction(stores, async (transaction) => {
      await lockPulled(transaction, connection, [read]);
      return applyPulled(stores, transaction, { ...read, connection, now });
    });
    if (is_money_unrecorded) return `money for the invoice at ${provider_type} is not recorded yet`;
    if (!read.pulled || !hasMoneyOnTheWay(read.pulled)) return null;
    return `a payment of the invoice is in progress at ${provider_type}`;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return await describeFailedRead(stores, { connection, mapping, error, now });
  }
}

/**
 * Reads one invoice at its provider. Null if this service itself refuses the read, for example because the stored credentials cannot be
 * decrypted: a charge by another provider must not wait until a person has repaired that.
 */
async function pullCounterpart(
  stores: ReadingStores,
  { connection, mapping }: Counterpart,
  by: ChangeAuthor,
): Promise<PulledMapping | null> {
  try {
    const call = await prepareCalls(stores, connection, { settings: stores.config, by });
    return await callWithin(CALL_MS_MAX, () => pullMapping(call, mapping));
  } catch (error) {
    if (!(error instanceof FarthingError) || error.code === 'service_unavailable') throw error;
    await recordPullFailure(stores, mapping, { error, now: by.now });
    return null;
  }
}

type FailedRead = Counterpart & { readonly error: ProviderError; readonly now: Date };

/**
 * Returns why the charge has to wait after a failed read. Null if the provider refused the read: it would refuse a later one, too, so that
 * the charge would wait without end.
 */
async function describeFailedRead(
  stores: Stores,
  { connection, mapping, error, now }: FailedRead,
): Promise<string | null> {
  if (error.is_unauthorized) return null;
  if (error.error_class !== 'wait') {
    await recordPullFailure(stores, mapping, { error, now });
    return null;
  }
  if (!error.is_of_record) await pauseConnection(stores, connection, { error, now });
  return `the invoice at ${connection.provider_type} could not be read (${error.message})`;
}
