/** Loads the metadata of the customers and wallets of a batch of records, in one statement per entity type. */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { MetadataEntity } from '../../../core/platform/export/metadata-field.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';

/** A customer by its id or by the external id that events name; a wallet by its id. */
export type ExportSubjects = { customer_id: string; external_customer_id: string; wallet: string };

type SubjectMetadata = Readonly<Record<string, string>> | null | undefined;
type SubjectsQuery<Row> = {
  some: readonly Row[];
  keys: { readonly [Which in keyof ExportSubjects]?: (row: Row) => string | null };
  wanted: readonly MetadataEntity[];
};

export async function loadSubjectMetadata<Row>(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { some, keys, wanted }: SubjectsQuery<Row>,
): Promise<(entity: MetadataEntity, row: Row) => SubjectMetadata> {
  const listIds = (keyOf: (row: Row) => string | null) => [...new Set(some.flatMap((row) => keyOf(row) ?? []))];
  const { customer_id, external_customer_id, wallet } = keys;
  const isWanted = (entity: MetadataEntity) => wanted.includes(entity);
  const none: ReadonlyMap<string, { metadata?: SubjectMetadata }> = new Map();
  const wallets = wallet && isWanted('wallet') ? await WalletModel.byId(scope, listIds(wallet), postgres) : none;
  if (!isWanted('customer')) return (_, row) => wallets.get(wallet?.(row) ?? '')?.metadata;
  const byId = customer_id ? await CustomerModel.byId(scope, listIds(customer_id), postgres) : none;
  const named = external_customer_id ? listIds(external_customer_id) : [];
  const customers = named.length > 0 ? await CustomerModel.publishedBy(scope, named, postgres) : [];
  const byExternalId = new Map(customers.map((customer) => [customer.external_id, customer]));
  return (entity, row) => {
    if (entity === 'wallet') return wallets.get(wallet?.(row) ?? '')?.metadata;
    if (customer_id) return byId.get(customer_id(row) ?? '')?.metadata;
    return byExternalId.get(external_customer_id?.(row) ?? '')?.metadata;
  };
}
