/** Writes the mapping of a payment or credit note before it is pushed to the provider that has its invoice. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { hasCallBegun, intendMapping, type MappedEntity } from '../../foundation/connections/mappings.ts';
import { ensureProviderCustomer, NothingToSend, type PushTarget } from '../../foundation/connections/push-record.ts';
import { pushInvoice } from './push-invoice.ts';
import { findUncontaining, loadInvoiceMappings } from './sent-invoice.ts';

type Money = {
  readonly entity: MappedEntity;
  readonly invoice_id: string;
  /** Instant at which the payment was received or the credit note took effect. */
  readonly since: string;
  /** Reason for which the record must not be pushed, unless an earlier push has begun; null if it may be pushed. */
  readonly refusal: string | null;
};

/** Mapping of a payment or credit note, with the provider's ids of its invoice and customer. */
export type SentMoney = {
  readonly mapping: IntegrationMappingModel;
  readonly provider_invoice_id: string;
  readonly provider_customer_id: string;
};

/**
 * Writes the mapping. Throws `NothingToSend` if the provider's copy of the invoice contains the payment or credit note already, or will
 * contain it once the invoice is pushed.
 */
export async function intendMoney(
  stores: Postgres,
  scope: Scope,
  { money: { entity, invoice_id, since, refusal }, target }: { money: Money; target: PushTarget },
): Promise<SentMoney> {
  const named = { connection_id: target.connection.id, invoice_ids: [invoice_id] };
  const mappings = await loadInvoiceMappings(scope, named, stores.postgres);
  const found = findUncontaining(mappings, { id: entity.entity_id, since, invoice_id });
  if (found === null)
    throw new NothingToSend(`invoice ${invoice_id} is not at the provider, or was sent without this amount`);
  if (refusal !== null && !(await hasBegun(stores, scope, { entity, target }))) throw new NothingToSend(refusal);
  // The push of the invoice may have succeeded although its answer was lost. A repeated push with the same key returns the id of the copy.
  const invoice = found.mapping_state === 'made' ? found : await pushInvoice(stores, scope, invoice_id, target);
  const { customer_id } = await InvoiceModel.fetch(scope, invoice_id, { database: stores.postgres });
  const provider_customer_id = await ensureProviderCustomer(stores, scope, customer_id, target);
  if (invoice.mapping_state !== 'made') throw new NothingToSend(`invoice ${invoice_id} is not at the provider`);
  return {
    mapping: await intendMapping(stores, scope, { ...target, entity }),
    provider_invoice_id: invoice.provider_entity_id!,
    provider_customer_id,
  };
}

async function hasBegun(
  { postgres }: Postgres,
  scope: Scope,
  { entity, target: { connection } }: { entity: MappedEntity; target: PushTarget },
): Promise<boolean> {
  const key = { connection_id: connection.id, ...entity };
  const mapping = await IntegrationMappingModel.findCurrent(scope, key, { database: postgres });
  return mapping !== undefined && hasCallBegun(mapping);
}
