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
/** The provider's ids of the newest records that this connection sent or linked; null if there is none. */
type MappedRecords = { readonly invoice_id: string | null; readonly customer_id: string | null };
/** `is_same` is false if it is unknown whether the account is that of the connection. */
export type ComparedIdentity = AccountIdentity & { readonly is_same: boolean };

export async function findMappedRecords({ postgres }: Postgres, connection: ConnectionModel): Promise<MappedRecords> {
  const findNewest = async (entity_type: 'invoice' | 'customer') => {
    const [newest] = await IntegrationMappingModel.in(connection, postgres)
      .where({ connection_id: connection.id, entity_type, mapping_state: 'made' })
      .orderBy('id', 'desc')
      .limit(1);
    return newest?.provider_entity_id ?? null;
  };
  return { invoice_id: await findNewest('invoice'), customer_id: await findNewest('customer') };
}

/**
 * Returns the identity of the account of new credentials. If one of the two account ids is unknown, the account must contain the newest
 * mapped invoice, else the newest mapped customer. `chooseAccountId` compares two known ids.
 */
export async function checkSameAccount(
  account: ProviderAccount,
  { known, mapped }: { known: KnownAccount; mapped: MappedRecords },
): Promise<ComparedIdentity> {
  const identity = await account.identify();
  const { provider_type, provider_account_id } = known;
  if (identity.provider_account_id !== null && provider_account_id !== null) return { ...identity, is_same: true };
  if (await containsMapped(account, { provider_type, mapped }))
    return { ...identity, provider_account_id: identity.provider_account_id ?? provider_account_id, is_same: true };
  if (provider_account_id !== null)
    throw notAllowed(
      `the credentials may not read their account at ${provider_type}, so it is unknown whether it is ${provider_account_id}: give them this right`,
      { field: toField(provider_type), provider_account_id },
    );
  return { ...identity, is_same: false };
}

function toField(provider_type: string): string {
  return `encrypted_secret_data.${provider_type}`;
}

/** Whether the account contains the newest mapped record; throws if it does not. False if there is none, or if it cannot be read. */
async function containsMapped(
  account: ProviderAccount,
  { provider_type, mapped }: { provider_type: string; mapped: MappedRecords },
): Promise<boolean> {
  const { invoice_id, customer_id } = mapped;
  if (invoice_id !== null && account.pullInvoice) {
    if ((await account.pullInvoice(invoice_id)) !== null) return true;
    throw describeAbsent(provider_type, { kind: 'invoice', provider_entity_id: invoice_id });
  }
  if (customer_id !== null && account.hasCustomer) {
    if (await account.hasCustomer(customer_id)) return true;
    throw describeAbsent(provider_type, { kind: 'customer', provider_entity_id: customer_id });
  }
  return false;
}

type MappedRecord = { readonly kind: 'invoice' | 'customer'; readonly provider_entity_id: string };

function describeAbsent(provider_type: string, { kind, provider_entity_id }: MappedRecord) {
  return notAllowed(
    `the account of the credentials at ${provider_type} has no ${kind} ${provider_entity_id}, to which a record is linked: use credentials of the same account, or remove the link`,
    { field: toField(provider_type), provider_entity_id },
  );
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
      { field: toField(provider_type), provider_account_id },
    );
  return provider_account_id ?? identified;
}
