/** Creates an empty environment of a tenant, within the limits of tenant_config. */
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { checkEnvironmentLimit } from '../access/limits.ts';

type AddEnvironmentInput = Pick<EnvironmentModel, 'name' | 'type'> & { readonly author: Author };

export async function addEnvironment(
  transaction: Database,
  tenant_id: string,
  { name, type, author }: AddEnvironmentInput,
): Promise<EnvironmentModel> {
  await checkEnvironmentLimit(transaction, tenant_id, type);
  const id = newId('environment', author.now.getTime());
  return EnvironmentModel.add({ id, tenant_id, name, type, ...createdBy(author) }, { database: transaction });
}
