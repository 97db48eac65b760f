/**
 * A connection must keep its account: the ids of its mappings name records in that account, and would name other records elsewhere
 * (docs/integrations/README.md, "Connections").
 */
import { notAllowed } from '../../../core/foundation/error.ts';
import type { AccountIdentity, ProviderAccount } from '../../../integrations/account.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';

type KnownAccount = Pick<ConnectionModel, 'provider_type' | 'provider_account_id'>;

/** Returns the provider's id of the newest invoice that this connection pushed or linked; null if there is none. */
export async function findMappedInvoice({ postgres }: Postgres, connection: ConnectionModel): Promise<string | null> {
  const [newest] = await IntegrationMappingModel.in(connection, postgres)
    .where({ connection_id: connection.id, entity_type: 'invoice', mapping_state: 'made' })
    .orderBy('id', 'desc')
    .limit(1);
  return newest?.provider_entity_id ?? null;
}

/**
 * Checks that new credentials belong to the known account, and returns its identity. If the provider does not name the
 * account, it must contain the mapped invoice.
 */
export async function checkSameAccount(
  account: ProviderAccount,
  { known, invoice_id }: { known: KnownAccount; invoice_id: string | null },
): Promise<AccountIdentity> {
  const identity = await account.identify();
  if (identity.provider_account_id !== null) return identity;
  const { provider_type, provider_account_id } = known;
  const field = `encrypted_secret_data.${provider_type}`;
  if (invoice_id !== null && account.pullInvoice) {
    if ((await account.pullInvoice(invoice_id)) !== null) return { ...identity, provider_account_id };
    throw notAllowed(
      `the account of the credentials at ${provider_type} has no invoice ${invoice_id}, to which an invoice is linked: use credentials of the same account, or remove the link`,
      { field, provider_entity_id: invoice_id },
    );
  }
  if (provider_account_id !== null)
    throw notAllowed(
      `the credentials may not read their account at ${provider_type}, so it is unknown whether it is ${provider_account_id}: give them this right`,
      { field, provider_account_id },
    );
  return identity;
}

/**
 * Returns the account id of the connection: the known one, else the one the provider reports, else null. Throws if the
 * two differ.
 */
export function chooseAccountId(
  { provider_type, provider_account_id }: KnownAccount,
  identity: AccountIdentity | null,
): string | null {
  const identified = identity?.provider_account_id ?? null;
  if (provider_account_id !== null && identified !== null && identified !== provider_account_id)
    throw notAllowed(
      `the credentials belong to another account at ${provider_type}, ${identified}: archive the connection and create a new one`,
      { field: `encrypted_secret_data.${provider_type}`, provider_account_id },
    );
  return provider_account_id ?? identified;
}
