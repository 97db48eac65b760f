/** Links a customer to its counterparts at connected providers, by the ids in a request (docs/integrations/README.md, "Mappings"). */
import type { Author } from '../../../core/foundation/stamp.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { findAccountConnection } from '../../foundation/connections/find-connections.ts';
import { linkEntity } from '../../foundation/connections/mappings.ts';

export type CustomerLink = { readonly provider: string; readonly id: string };

/** Existing links are not replaced. */
export async function linkCustomer(
  transaction: Transaction,
  customer: CustomerModel,
  { links, author }: { links: readonly CustomerLink[]; author: Author },
): Promise<void> {
  for (const [index, { provider, id: provider_entity_id }] of links.entries()) {
    const wanted = { provider_type: provider, field: `integration_entity_mapping[${index}].provider` };
    const connection = await findAccountConnection(customer, wanted, transaction);
    const entity = { entity_type: 'customer', entity_id: customer.id } as const;
    const key = { connection_id: connection.id, ...entity };
    const current = await IntegrationMappingModel.findCurrent(customer, key, { database: transaction });
    if (current?.provider_entity_id === provider_entity_id) continue;
    await linkEntity(transaction, customer, { connection, entity, provider_entity_id, metadata: null, author });
  }
}
