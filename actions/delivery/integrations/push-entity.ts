/**
 * Pushes a record to the provider of a connection (docs/integrations/README.md, "Sending a record"). A mapping is
 * written, the provider is called outside any transaction, and the mapping gets the id of the counterpart. An
 * interrupted push is repeated with its key, so nothing is created twice.
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { describeStopped } from '../../../core/platform/connection/record.ts';
import { isSynced } from '../../../core/platform/connection/sync-config.ts';
import { PUSHED_ENTITY_TYPES, type PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import { canReceive, listCapable } from '../../../integrations/find-capability.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { type AccountCallSettings, prepareCalls } from '../../foundation/connections/call-account.ts';
import { type PushTarget, pushCustomer } from '../../foundation/connections/push-record.ts';
import { pushCreditNote } from './push-credit-note.ts';
import { pushInvoice } from './push-invoice.ts';
import { pushPayment } from './push-payment.ts';
import { pushSubscription } from './push-subscription.ts';

type PushInput = {
  readonly connection: ConnectionModel;
  readonly entity_type: PushedEntityType;
  readonly entity_id: string;
  readonly settings: AccountCallSettings;
  readonly author: Author;
};

type EntityPush = (stores: Postgres, scope: Scope, id: string, target: PushTarget) => Promise<IntegrationMappingModel>;

const PUSHES: Readonly<Record<PushedEntityType, EntityPush>> = {
  customer: pushCustomer,
  invoice: pushInvoice,
  payment: pushPayment,
  credit_note: pushCreditNote,
  subscription: pushSubscription,
};

export function isPushed(entity_type: string): entity_type is PushedEntityType {
  return (PUSHED_ENTITY_TYPES as readonly string[]).includes(entity_type);
}

/** Whether the provider accepts records of this type. */
export function canPush(connection: ConnectionModel, entity_type: PushedEntityType): boolean {
  const capability = listCapable('account')[connection.provider_type];
  return capability !== undefined && canReceive(capability, entity_type);
}

/**
 * Whether `sync_config` includes pushes of this type. It has no entry for credit notes, so its entry for invoices decides. A subscription
 * is pushed as a deal.
 */
export function isPushSynced({ sync_config }: ConnectionModel, entity_type: PushedEntityType): boolean {
  return isSynced(sync_config, { entity: toSyncedEntity(entity_type), direction: 'outbound' });
}

function toSyncedEntity(entity_type: PushedEntityType) {
  if (entity_type === 'subscription') return 'deal';
  return entity_type === 'credit_note' ? 'invoice' : entity_type;
}

/** Pushes a record unless the provider has it already. A failure of the provider is thrown as a `ProviderError`. */
export async function pushEntity(
  stores: Postgres,
  scope: Scope,
  { connection, entity_type, entity_id, settings, author }: PushInput,
): Promise<IntegrationMappingModel> {
  checkConnection(connection, entity_type);
  const call = await prepareCalls(stores, connection, { settings, by: author });
  return PUSHES[entity_type](stores, scope, entity_id, { connection, author, call });
}

function checkConnection(connection: ConnectionModel, entity_type: PushedEntityType): void {
  const { provider_type, connection_state } = connection;
  if (!canPush(connection, entity_type)) throw notAllowed(`${provider_type} does not receive ${entity_type}s`);
  if (connection_state !== 'active')
    throw notAllowed(`the connection to ${provider_type} ${describeStopped(connection)}`);
  if (!isPushSynced(connection, entity_type))
    throw notAllowed(
      `the connection to ${provider_type} sends no ${entity_type}s (sync_config.${toSyncedEntity(entity_type)}.outbound)`,
    );
}
