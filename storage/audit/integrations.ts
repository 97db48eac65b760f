/**
 * Final invoices and received payments against their mappings at connected providers. Only records older than an hour
 * are checked, because the dispatch of an event or a push may still be in progress before. Environments with a test
 * clock never call a provider, so they are excluded.
 */
import type { Database } from '../foundation/stores.ts';
import { type AuditFault, findFaults } from './questions.ts';

type IntegrationFault = AuditFault<IntegrationFaultKind>;
type IntegrationFaultKind = 'invoice_not_sent' | 'payment_not_sent' | 'push_unresolved';

/** Providers by the records that they receive. */
type ReceivingProviders = { readonly invoice: readonly string[]; readonly payment: readonly string[] };

const SENDING = (entity: 'invoice' | 'payment') => `connection as (
    select * from connections c where has_account and status = 'published' and provider_type = any(:${entity}_providers::text[])
       and coalesce((sync_config->'${entity}'->>'outbound')::boolean, sync_config is null)
       and not exists (select from test_clocks k where k.tenant_id = c.tenant_id and k.environment_id = c.environment_id)
  )`;
const joinsMapping = (
  entity_type: string,
  id: string,
) => `m.tenant_id = c.tenant_id and m.environment_id = c.environment_id
       and m.connection_id = c.id and m.entity_type = '${entity_type}' and m.entity_id = ${id}`;

const QUESTIONS: Readonly<Record<IntegrationFaultKind, string>> = {
  invoice_not_sent: `with ${SENDING('invoice')}
    select i.id, 'FINALIZED, ' || i.amount_remaining || ' remains' as stored, 'it has no mapping at ' || c.provider_type as found
      from connection c join invoices i on i.tenant_id = c.tenant_id and i.environment_id = c.environment_id
     where i.invoice_status = 'FINALIZED' and i.status = 'published' and i.amount_remaining > 0
       and i.finalized_at >= c.created_at and i.finalized_at < now() - interval '1 hour'
       and not exists (select from integration_mappings m where ${joinsMapping('invoice', 'i.id')})`,
  payment_not_sent: `with ${SENDING('payment')}
    select p.id, p.payment_status || ' over ' || p.amount as stored,
           'it has no mapping at ' || c.provider_type || ', which has its invoice without it' as found
      from connection c
      join integration_mappings i on i.tenant_id = c.tenant_id and i.environment_id = c.environment_id and i.connection_id = c.id
       and i.entity_type = 'invoice' and i.mapping_state = 'made' and i.sent_invoice is not null
      join payments p on p.tenant_id = c.tenant_id and p.environment_id = c.environment_id and p.destination_id = i.entity_id
     where p.payment_status in ('SUCCEEDED', 'PARTIALLY_REFUNDED', 'REFUNDED') and p.status = 'published'
       and p.payment_gateway is distinct from c.provider_type and p.connection_id is distinct from c.id and p.updated_at < now() - interval '1 hour'
       and not i.sent_invoice->'contained_ids' @> to_jsonb(p.id)
       and not exists (select from integration_mappings m where ${joinsMapping('payment', 'p.id')})`,
  push_unresolved: `select id, 'intended since ' || key_created_at as stored,
           entity_type || ' ' || entity_id || ' may be at ' || provider_type || ': the answer was lost' as found
      from integration_mappings
     where mapping_state = 'intended' and key_created_at < now() - interval '1 hour' and pending_since is null and push_error is null`,
};

export async function findIntegrationFaults(
  database: Database,
  { invoice, payment }: ReceivingProviders,
  limit: number,
): Promise<IntegrationFault[]> {
  const bindings = { invoice_providers: [...invoice], payment_providers: [...payment], limit };
  return findFaults(database, QUESTIONS, bindings);
}

/** Numbers of records at providers, for the report. */
export async function countMappings(database: Database): Promise<{ mappings: number; refused: number }> {
  const { rows } = await database.raw(
    `select count(*)::integer as mappings, count(*) filter (where push_error is not null)::integer as refused
       from integration_mappings where mapping_state <> 'gone'`,
  );
  return rows[0];
}
