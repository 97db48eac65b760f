/** Links records to counterparts that exist at a provider, and unlinks them (docs/integrations/README.md, "Mappings"). */
import { invalid, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { IntegrationMapping } from '../../../core/platform/integration/mapping.ts';
import type { Postgres, Transaction } from '../../../storage/foundation/stores.ts';
import { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { findAccountConnection } from '../../foundation/connections/find-connections.ts';
import { dropMapping, linkEntity, type MappedEntity } from '../../foundation/connections/mappings.ts';
import { findOpenCharge, findUnclosedPage } from '../../payments/unended-payments.ts';
import { checkEntityExists } from './entities.ts';

type CreateLinkInput = MappedEntity &
  Pick<IntegrationMapping, 'provider_type' | 'metadata'> & { readonly provider_entity_id: string };

/** Creates a link without calling the provider: the request states that the two records are the same. */
export async function createLink(
  { postgres }: Postgres,
  scope: Scope,
  { link, author }: { link: CreateLinkInput; author: Author },
): Promise<IntegrationMappingModel> {
  const { provider_type, provider_entity_id, metadata, entity_type, entity_id } = link;
  const entity = { entity_type, entity_id };
  const connection = await findAccountConnection(scope, { provider_type, field: 'provider_type' }, postgres);
  return postgres.transaction(async (database) => {
    await checkEntityExists(scope, entity, database);
    return linkEntity(database, scope, { connection, entity, provider_entity_id, metadata, author });
  });
}

type RemoveLinkInput = MappedEntity & Pick<IntegrationMapping, 'provider_type'>;

export async function removeLink(
  { postgres }: Postgres,
  scope: Scope,
  { link: { provider_type, entity_type, entity_id }, author }: { link: RemoveLinkInput; author: Author },
): Promise<void> {
  const { id: connection_id } = await findAccountConnection(scope, { provider_type, field: 'provider_type' }, postgres);
  await postgres.transaction(async (database) => {
    const key = { connection_id, entity_type, entity_id };
    await checkUnlinkable(database, scope, { ...key, field: 'entity_id' });
    const mapping = await IntegrationMappingModel.findCurrent(scope, key, { database, lock: true });
    if (!mapping) throw notFound(`mapping of ${entity_type}`, entity_id);
    await dropMapping(database, mapping, author);
  });
}

export async function removeMapping(
  { postgres }: Postgres,
  scope: Scope,
  { id, author }: { id: string; author: Author },
): Promise<void> {
  await postgres.transaction(async (database) => {
    const seen = await IntegrationMappingModel.fetchPublished(scope, id, { database });
    await checkUnlinkable(database, scope, { ...seen, field: 'id' });
    const mapping = await IntegrationMappingModel.fetchPublished(scope, id, { database, lock: true });
    await dropMapping(database, mapping, author);
  });
}

type UnlinkTarget = MappedEntity & Pick<IntegrationMapping, 'connection_id'> & { readonly field: string };

/**
 * Refuses to unlink a customer whose payment at the provider has no outcome. The provider is searched for a charge by
 * the linked customer. Without the link the charge would not be found, and would be made again. The lock of the
 * connection decides between the unlinking and a new payment.
 */
async function checkUnlinkable(
  transaction: Transaction,
  scope: Scope,
  { connection_id, entity_type, entity_id: customer_id, field }: UnlinkTarget,
): Promise<void> {
  if (entity_type !== 'customer') return;
  const connection = await ConnectionModel.fetchPublished(scope, connection_id, { database: transaction, lock: true });
  const owner = { connection, customer_id };
  const unended = (await findOpenCharge(transaction, owner)) ?? (await findUnclosedPage(transaction, owner));
  if (unended) throw invalid(field, unended.why, { payment_id: unended.payment_id });
}
