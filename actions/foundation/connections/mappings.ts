/**
 * Mappings of this service's records to the records that represent them at a provider (docs/integrations/README.md, "Mappings"). Each
 * function runs in one short transaction; none calls a provider.
 */
import { alreadyExists, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { IntegrationMapping, MappedEntityType } from '../../../core/platform/integration/mapping.ts';
import { computeFirstPull } from '../../../core/platform/integration/pull-schedule.ts';
import type { ProviderRecord } from '../../../integrations/account.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { loadKeyTime } from '../../../storage/postgres/database-time.ts';
import { addReadJob } from '../../../storage/queue/provider-events.ts';

export type MappedEntity = { readonly entity_type: MappedEntityType; readonly entity_id: string };

type NewMapping = { readonly connection: ConnectionModel; readonly entity: MappedEntity; readonly author: Author };

/** Writes the mapping before the call that creates the record at the provider. Returns an existing mapping unchanged. */
export async function intendMapping(
  { postgres }: Postgres,
  scope: Scope,
  { connection, entity, author }: NewMapping,
): Promise<IntegrationMappingModel> {
  return postgres.transaction(async (database) => {
    const current = await lockCurrentMapping(database, scope, { connection, entity });
    if (current) return current;
    return IntegrationMappingModel.add(scope, buildIntendedMapping({ connection, entity, author }), { database });
  });
}

/** Builds a mapping without an idempotency key: `beginCalls` adds the key before the first call to the provider. */
export function buildIntendedMapping(input: NewMapping) {
  return { ...buildMapping(input), mapping_state: 'intended' as const };
}

/** Whether the provider may have the record: the call may have taken effect although it was interrupted. */
export function hasCallBegun({ mapping_state, key_created_at }: IntegrationMappingModel): boolean {
  return mapping_state === 'made' || key_created_at !== null;
}

/**
 * Finds mappings whose push has begun and may still create the record at the provider. A push that the provider refused creates nothing:
 * after a refusal in a job the mapping has a `push_error`; after a refused request it has a renewed key and is not pending.
 */
export function findBeingSent(database: Database, connection: ConnectionModel) {
  return IntegrationMappingModel.in(connection, database)
    .where({ connection_id: connection.id, mapping_state: 'intended', push_error: null })
    .whereNotNull('key_created_at')
    .where((waits) => void waits.where({ is_key_renewed: false }).orWhereNotNull('pending_since'));
}

type FirstCall = {
  readonly author: Author;
  /** Reads further fields of the mapping. Called before the first call only. */
  readonly describe?: () => Promise<Partial<IntegrationMappingModel>>;
};

/**
 * Stores the idempotency key before the first call to the provider, so that an interrupted call can be repeated with
 * it.
 */
export async function beginCalls(
  transaction: Transaction,
  mapping: IntegrationMappingModel,
  { author, describe = async () => ({}) }: FirstCall,
): Promise<IntegrationMappingModel> {
  const current = await IntegrationMappingModel.fetch(mapping, mapping.id, { database: transaction, lock: true });
  checkLinked(current);
  if (hasCallBegun(current)) return current;
  const key_created_at = await loadKeyTime(transaction, author.now);
  const begun = { ...(await describe()), idempotency_key: makeKey(author), key_created_at };
  return IntegrationMappingModel.change(current, begun, { by: author, database: transaction });
}

/** Refuses to push a record that was unlinked after its mapping was read. */
export function checkLinked({ entity_type, entity_id, mapping_state }: IntegrationMappingModel): void {
  if (mapping_state === 'gone') throw notAllowed(`${entity_type} ${entity_id} was unlinked meanwhile`);
}

/** Finds the current mapping of a record. Locks the connection first, so that concurrent requests cannot both create a mapping. */
async function lockCurrentMapping(
  database: Database,
  scope: Scope,
  { connection, entity }: Omit<NewMapping, 'author'>,
): Promise<IntegrationMappingModel | undefined> {
  await ConnectionModel.fetchPublished(scope, connection.id, { database, lock: true });
  return IntegrationMappingModel.findCurrent(scope, { connection_id: connection.id, ...entity }, { database });
}

function buildMapping({ connection, entity, author }: NewMapping) {
  const { id: connection_id, provider_type } = connection;
  const id = newId('integration_mapping', author.now.getTime());
  return { id, connection_id, provider_type, ...entity, ...createdBy(author) };
}

function makeKey({ now }: Author): string {
  return newId('integration_mapping', now.getTime());
}

/** Gives the mapping a new key after a refusal, because the provider may repeat its refusal for the old key. */
export async function renewMappingKey(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  author: Author,
): Promise<void> {
  await postgres.transaction(async (database) => {
    const current = await IntegrationMappingModel.fetch(mapping, mapping.id, { database, lock: true });
    if (current.mapping_state !== 'intended' || current.idempotency_key !== mapping.idempotency_key) return;
    const renewed = { idempotency_key: makeKey(author), is_key_renewed: true };
    await IntegrationMappingModel.change(current, renewed, { by: author, database });
  });
}

/**
 * Stores the provider's id of the created record. A mapping that was unlinked during the call remains unlinked, but also gets the id, so
 * that a person can find the record at the provider.
 */
export async function completeMapping(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  { made, author }: { made: ProviderRecord; author: Author },
): Promise<IntegrationMappingModel> {
  const { provider_entity_id, url } = made;
  return postgres.transaction(async (database) => {
    const current = await IntegrationMappingModel.fetch(mapping, mapping.id, { database, lock: true });
    if (current.mapping_state === 'made') {
      if (current.provider_entity_id === provider_entity_id) return current;
      throw alreadyExists(describeLinked(current), { provider_entity_id });
    }
    const made_now = { ...MADE, ...toFirstPull(current, author) };
    const changes = { provider_entity_id, url, ...(current.mapping_state === 'gone' ? {} : made_now) };
    const conflict = describeTaken(current, provider_entity_id);
    return IntegrationMappingModel.change(current, changes, { by: author, database, conflict });
  });
}

/** Whether this service imports the payment methods that the provider has for the record. */
function hasImportedMethods({ entity_type, provider_type }: Pick<IntegrationMapping, 'entity_type' | 'provider_type'>) {
  return entity_type === 'customer' && listCapable('account')[provider_type]?.exchanges.includes('saved_card');
}

const MADE = { mapping_state: 'made', push_error: null } as const;

/** Schedules the first read of an invoice from the provider. Periodic reads find changes whose webhook was lost. */
function toFirstPull(
  { entity_type, provider_type }: Pick<IntegrationMapping, 'entity_type' | 'provider_type'>,
  author: Author,
) {
  const isPulled = entity_type === 'invoice' && listCapable('account')[provider_type]?.exchanges.includes('pull');
  return isPulled ? { next_pull_at: computeFirstPull(author.now).toISOString() } : {};
}

/** Unlinks a record from its record at the provider. Both records remain unchanged. The caller has locked the mapping. */
export async function dropMapping(database: Database, mapping: IntegrationMappingModel, author: Author): Promise<void> {
  await IntegrationMappingModel.change(mapping, GONE, { by: author, database });
}

const GONE = { mapping_state: 'gone', status: 'archived', next_pull_at: null, pending_since: null } as const;

/** Unlinks up to `batch_size` records of a connection. Returns true if further linked records may remain. */
export async function dropSomeMappings(
  database: Database,
  connection: ConnectionModel,
  { author, batch_size }: { author: Author; batch_size: number },
): Promise<boolean> {
  const records = await IntegrationMappingModel.in(connection, database)
    .where({ connection_id: connection.id })
    .whereNot('mapping_state', 'gone')
    // Rows in the order of the unique index of current mappings need no sort.
    .orderBy(['entity_type', 'entity_id'])
    .limit(batch_size)
    .forUpdate();
  if (records.length > 0)
    await IntegrationMappingModel.changeAll(connection, { records, changes: GONE }, { by: author, database });
  return records.length === batch_size;
}

type NewLink = NewMapping & { readonly provider_entity_id: string; readonly metadata: IntegrationMapping['metadata'] };

/**
 * Links a record to one that exists at the provider. The caller has checked that the own record exists. No provider is called here: the
 * read job of the connection imports the payment methods of a linked customer later.
 */
export async function linkEntity(
  transaction: Transaction,
  scope: Scope,
  { provider_entity_id, metadata, ...input }: NewLink,
): Promise<IntegrationMappingModel> {
  const { author, connection, entity } = input;
  checkHasCustomers(connection, entity);
  const current = await lockCurrentMapping(transaction, scope, input);
  if (current && hasCallBegun(current)) throw alreadyExists(describeLinked(current), { id: current.id });
  // The record was waiting for its first push. The link makes that push unnecessary.
  if (current) await dropMapping(transaction, current, author);
  const mapping = buildMapping(input);
  const isDue = hasImportedMethods(mapping);
  const pulled = isDue ? { next_pull_at: author.now.toISOString() } : toFirstPull(mapping, author);
  const record = { ...mapping, ...MADE, ...pulled, provider_entity_id, metadata };
  const conflict = describeTaken(record, provider_entity_id);
  const added = await IntegrationMappingModel.add(scope, record, { database: transaction, conflict });
  if (isDue) await addReadJob(transaction, connection);
  return added;
}

type Payer = { readonly customer_id: string; readonly provider_entity_id: string; readonly author: Author };

/**
 * Links a customer to the record with which it paid, at a provider that makes its customers itself. No effect if either has a mapping, also
 * an unlinked one: a person has then decided.
 */
export async function linkPayer(
  transaction: Transaction,
  connection: ConnectionModel,
  { customer_id: entity_id, provider_entity_id, author }: Payer,
): Promise<void> {
  const entity = { entity_type: 'customer', entity_id } as const;
  const [known] = await IntegrationMappingModel.in(connection, transaction)
    .where({ connection_id: connection.id, entity_type: entity.entity_type })
    .where((either) => void either.where({ entity_id }).orWhere({ provider_entity_id }))
    .limit(1);
  if (known) return;
  const record = { ...buildMapping({ connection, entity, author }), ...MADE, provider_entity_id };
  const conflict = describeTaken(record, provider_entity_id);
  await IntegrationMappingModel.add(connection, record, { database: transaction, conflict });
}

/** Refuses to link a customer to a provider without customers. */
function checkHasCustomers({ provider_type }: ConnectionModel, { entity_type }: MappedEntity): void {
  if (entity_type === 'customer' && !listCapable('account')[provider_type]?.exchanges.includes('customer'))
    throw notAllowed(`${provider_type} has no customers`, { field: 'entity_type' });
}

type DescribedMapping = Pick<IntegrationMapping, 'entity_type' | 'entity_id' | 'provider_type'>;

function describeLinked(mapping: DescribedMapping & Pick<IntegrationMapping, 'provider_entity_id'>): string {
  const { entity_type, entity_id, provider_type, provider_entity_id } = mapping;
  const linked = provider_entity_id === null ? 'being sent to' : 'linked to';
  const counterpart = provider_entity_id === null ? provider_type : `${provider_entity_id} at ${provider_type}`;
  return `${entity_type} ${entity_id} is ${linked} ${counterpart} already: unlink it first`;
}

function describeTaken({ entity_type, provider_type }: DescribedMapping, provider_entity_id: string): string {
  return `${provider_entity_id} at ${provider_type} is linked to another ${entity_type} already`;
}
