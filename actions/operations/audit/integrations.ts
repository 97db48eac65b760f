/** Audit of integrations: connected providers have the records that they should have (docs/integrations/README.md, "Sending by itself"). */
import { listCapable } from '../../../integrations/find-capability.ts';
import { countMappings, findIntegrationFaults } from '../../../storage/audit/integrations.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import type { OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;

export async function auditIntegrations(
  { postgres }: Pick<Stores, 'postgres'>,
  found: OnFinding,
): Promise<{ mappings: number; refused: number }> {
  const receiving = { invoice: listReceiving('invoice'), payment: listReceiving('payment') };
  for (const { kind, id, stored, found: what } of await findIntegrationFaults(postgres, receiving, FAULTS_MAX))
    found({ kind, count: 1, what: `${id} is ${stored}, and ${what}` });
  return countMappings(postgres);
}

function listReceiving(exchange: 'invoice' | 'payment'): string[] {
  return Object.entries(listCapable('account')).flatMap(([name, { exchanges }]) =>
    exchanges.includes(exchange) ? name : [],
  );
}
