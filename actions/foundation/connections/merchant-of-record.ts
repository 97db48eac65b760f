/**
 * Connections to a merchant of record, which adds and owes the tax of the invoices that it receives
 * (docs/rules/taxes.md, "Merchant of record").
 */
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { isSynced } from '../../../core/platform/connection/sync-config.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import { findAccountCapability } from './call-account.ts';
import { listAccountConnections } from './find-connections.ts';

/**
 * Whether invoices of the environment in this currency go to a merchant of record. A connection that needs attention counts, because it
 * sends later. An invoice in a currency that the merchant does not take never gets its tax.
 */
export async function hasMerchantOfRecord(
  { tenant_id, environment_id, currency }: Scope & Pick<Invoice, 'currency'>,
  database: Database,
): Promise<boolean> {
  const connections = await listAccountConnections({ tenant_id, environment_id }, database);
  return connections.some(
    (connection) =>
      findAccountCapability(connection).collects_tax?.(currency) === true &&
      isSynced(connection.sync_config, { entity: 'invoice', direction: 'outbound' }),
  );
}

type TaxedInvoice = Scope & Pick<Invoice, 'id' | 'currency'>;

/** Throws if the invoice has taxes, and the provider would add its own to them. */
export async function checkTaxedOnce(
  { id, currency, tenant_id, environment_id }: TaxedInvoice,
  connection: ConnectionModel,
  database: Database,
): Promise<void> {
  if (!findAccountCapability(connection).collects_tax?.(currency)) return;
  const scope = { tenant_id, environment_id };
  const where = { entity_type: 'invoice', entity_id: id, status: 'published' };
  const taxes = await TaxAppliedModel.in(scope, database).where(where);
  const sum = sumDecimals(taxes.map(({ tax_amount }) => new Decimal(tax_amount)));
  if (sum.isZero()) return;
  throw new ProviderError(
    'person',
    `invoice ${id} has taxes of ${sum.toFixed()}, and ${connection.provider_type} would add its own: void it, and create it again`,
  );
}
