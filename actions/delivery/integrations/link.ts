/** Links records to counterparts that exist at a provider, and unlinks them (docs/integrations/README.md, "Mappings"). */
import { notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { IntegrationMapping } from '../../../core/platform/integration/mapping.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { findAccountConnection } from '../../foundation/connections/find-connections.ts';
import { dropMapping, linkEntity, type MappedEntity } from '../../foundation/connections/mappings.ts';
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
    const mapping = await IntegrationMappingModel.fetchPublished(scope, id, { database, lock: true });
    await dropMapping(database, mapping, author);
  });
}
