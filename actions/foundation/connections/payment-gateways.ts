/**
 * Gateways of an environment: those that the installation configures, and the tenant's accounts at connected providers
 * (docs/rules/payments.md, "What is charged").
 */
import { unavailable } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { GatewayTerms } from '../../../core/payments/request.ts';
import { describeStopped } from '../../../core/platform/connection/record.ts';
import { listCapable } from '../../../integrations/find-capability.ts';
import type { Exchange } from '../../../integrations/provider.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { ConnectionModel } from '../../../storage/models/foundation/connection.ts';
import { listAccountConnections } from './find-connections.ts';

const COLLECTING: readonly Exchange[] = ['payment_link', 'saved_card'];

/** Lists the gateways that the installation provides, which need no connection. */
export function listOwnGateways(): Record<string, GatewayTerms> {
  const own = Object.entries(listCapable('payments'));
  return Object.fromEntries(own.map(([name, { moves_money }]) => [name, { moves_money, is_connected: true }]));
}

/**
 * Lists the installation's gateways and all providers that collect payments by connection; `is_connected` shows if the environment has one.
 * A connection that needs attention counts: its payments wait.
 */
export async function listGateways(scope: Scope, database: Database): Promise<Record<string, GatewayTerms>> {
  const connected = new Set<string>((await listAccountConnections(scope, database)).map((one) => one.provider_type));
  const accounts = Object.entries(listCapable('account'))
    .filter(([, { exchanges }]) => COLLECTING.some((one) => exchanges.includes(one)))
    .map(([name]) => [name, { moves_money: true, is_connected: connected.has(name) }] as const);
  return { ...listOwnGateways(), ...Object.fromEntries(accounts) };
}

/** Throws `service_unavailable` if the gateway cannot be called now, but may be later. */
export async function loadGatewayConnection(
  scope: Scope,
  gateway: string,
  database: Database,
): Promise<ConnectionModel> {
  const connections = await listAccountConnections(scope, database);
  const connection = connections.find(({ provider_type }) => provider_type === gateway);
  if (!connection) throw unavailable(`the connection to ${gateway}, which was archived,`);
  if (connection.connection_state !== 'active')
    throw unavailable(`the connection to ${gateway}, which ${describeStopped(connection)},`);
  return connection;
}
