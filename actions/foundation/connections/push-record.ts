/**
 * Pushes a record to the provider of a connection: its mapping is written first, then the provider is called outside
 * any transaction. An interrupted push is repeated with the same key, so nothing is created twice. A customer is pushed
 * before the first record that needs it.
 */
import { toPostalAddress } from '../../../core/catalog/customer/address.ts';
import { deriveBusinessName } from '../../../core/catalog/customer/business.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import type { ProviderAccount, ProviderRecord, PushedCustomer } from '../../../integrations/account.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import type { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { measureKeyAge } from '../../../storage/postgres/database-time.ts';
import { type AccountCaller, findAccountCapability } from './call-account.ts';
import { CALL_MS_MAX, callWithin } from './call-deadline.ts';
import { beginCalls, checkLinked, completeMapping, intendMapping, renewMappingKey } from './mappings.ts';
import { withClaim } from './push-claims.ts';

export type PushTarget = {
  readonly connection: ConnectionModel;
  readonly author: Author;
  readonly call: AccountCaller;
};

/** Thrown if the provider does not need the record. A request for the push is refused; a pending push is dropped. */
export class NothingToSend extends FarthingError {
  constructor(message: string, details: Readonly<Record<string, string>> = {}) {
    super('invalid_operation', message, { details });
  }
}

export type PushKey = Pick<PushedCustomer, 'key' | 'key_created_at' | 'key_age_seconds' | 'is_key_renewed'>;
type KeyedPush = (account: ProviderAccount, key: PushKey) => Promise<ProviderRecord>;

export async function pushIntended(
  stores: Postgres,
  intended: IntegrationMappingModel,
  target: PushTarget,
  push: KeyedPush,
): Promise<IntegrationMappingModel> {
  const { author } = target;
  const mapping = await stores.postgres.transaction((transaction) => beginCalls(transaction, intended, { author }));
  return pushBegun(stores, mapping, target, push);
}

/** Pushes the record with the key of its mapping. Returns the mapping unchanged if the record was pushed before. */
export async function pushBegun(
  stores: Postgres,
  mapping: IntegrationMappingModel,
  { call, author }: PushTarget,
  push: KeyedPush,
): Promise<IntegrationMappingModel> {
  if (mapping.mapping_state === 'made') return mapping;
  return withClaim(stores, mapping, async (claimed) => {
    checkLinked(claimed);
    if (claimed.mapping_state === 'made') return claimed;
    let made: ProviderRecord;
    try {
      const key = await loadPushKey(stores, claimed);
      made = await callWithin(CALL_MS_MAX, () => call((account) => push(account, key)));
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      if (error.error_class === 'person') await renewMappingKey(stores, claimed, author);
      if (error.error_class !== 'done' || error.provider_entity_id === null) throw error;
      made = { provider_entity_id: error.provider_entity_id, url: null };
    }
    return completeMapping(stores, claimed, { made, author });
  });
}

/**
 * Loads the idempotency key with its age. A record that was linked by hand has no key; the age then counts from the link, because
 * everything pushed for that record is younger. After an earlier attempt the age is at least one second, so that a provider without keys is
 * searched however soon the attempt is repeated.
 */
export async function loadPushKey(
  { postgres }: Postgres,
  { idempotency_key, key_created_at: called_at, is_key_renewed, created_at, claimed_by }: IntegrationMappingModel,
): Promise<PushKey> {
  const key_created_at = new Date(toInstant(called_at ?? created_at));
  const age = Math.floor(await measureKeyAge(postgres, key_created_at));
  const key_age_seconds = claimed_by === null ? age : Math.max(1, age);
  return { key: idempotency_key!, key_created_at, key_age_seconds, is_key_renewed };
}

export async function pushCustomer(
  stores: Postgres,
  scope: Scope,
  customer_id: string,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const customer = await CustomerModel.fetch(scope, customer_id, { database: stores.postgres });
  const mapping = await intendMapping(stores, scope, {
    ...target,
    entity: { entity_type: 'customer', entity_id: customer_id },
  });
  return pushIntended(stores, mapping, target, (account, key) =>
    account.pushCustomer!({ ...key, ...toPushedCustomer(customer) }),
  );
}

/**
 * Returns the provider's id of the customer, which is pushed first. For a provider without customers it is the id of this service, and
 * nothing is pushed.
 */
export async function ensureProviderCustomer(
  stores: Postgres,
  scope: Scope,
  customer_id: string,
  target: PushTarget,
): Promise<string> {
  if (!findAccountCapability(target.connection).exchanges.includes('customer')) return customer_id;
  return (await pushCustomer(stores, scope, customer_id, target)).provider_entity_id!;
}

function toPushedCustomer(customer: CustomerModel): Omit<PushedCustomer, keyof PushKey> {
  return {
    customer_id: customer.id,
    external_id: customer.external_id,
    name: customer.name,
    email: customer.email,
    business_name: deriveBusinessName(customer),
    address: toPostalAddress(customer),
  };
}
