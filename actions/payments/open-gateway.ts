/** Opens the tenant's own account at the provider of a gateway. */
import { FarthingError } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../core/payments/record.ts';
import type { ProviderAccount } from '../../integrations/account.ts';
import type { AccountPayments } from '../../integrations/account-payments.ts';
import { ProviderError } from '../../integrations/provider-error.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../storage/models/foundation/connection.ts';
import { type AccountCaller, prepareCalls } from '../foundation/connections/call-account.ts';
import { loadGatewayConnection } from '../foundation/connections/payment-gateways.ts';

export type CallingStores = Pick<Stores, 'postgres' | 'config'>;
export type OpenedGateway = { readonly connection: ConnectionModel; readonly call: AccountCaller };

export async function openGateway(
  stores: CallingStores,
  scope: Scope,
  { gateway, now }: { gateway: PaymentGateway; now: Date },
): Promise<OpenedGateway> {
  if (!stores.config) throw new FarthingError('system_error', 'this process has no settings for calls of providers');
  const connection = await loadGatewayConnection(scope, gateway, stores.postgres);
  return { connection, call: await prepareCalls(stores, connection, { settings: stores.config, by: { now } }) };
}

export function getPayments({ payments }: ProviderAccount): AccountPayments {
  if (!payments) throw new ProviderError('person', 'this provider has no payments');
  return payments;
}
