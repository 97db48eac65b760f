/** Attaches a tax rate to a customer, a subscription, an invoice or the whole tenant (docs/rules/taxes.md, "Associations"). */

import { checkAssociation, type TaxAssociation } from '../../../core/catalog/tax/record.ts';
import { alreadyExists, buildStateError, invalid, notFound } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';

/** The taxed entity in a request: by its type and id, or a customer by its external id. */
type NamedEntity = {
  readonly entity_type?: TaxAssociation['entity_type'] | null | undefined;
  readonly entity_id?: string | null | undefined;
  readonly external_customer_id?: string | null | undefined;
};
type TaxedEntity = Pick<TaxAssociation, 'entity_type' | 'entity_id'>;
type AssociationTerms = Pick<TaxAssociation, 'priority' | 'auto_apply' | 'currency' | 'end_date' | 'metadata'>;

export async function attachTaxRate(
  stores: Pick<Stores, 'postgres'>,
  scope: Scope,
  request: {
    tax_rate_code: string;
    entity: NamedEntity;
    terms: AssociationTerms & { start_date: string | null };
    author: Author;
  },
): Promise<TaxAssociationModel> {
  const { tax_rate_code, terms, author } = request;
  return stores.postgres.transaction(async (database) => {
    const entity = await loadEntity(request.entity, scope, database);
    await checkEntity(entity, scope, database);
    const rate = await TaxRateModel.lockByCode(scope, tax_rate_code, database);
    if (rate.tax_rate_status !== 'ACTIVE') throw invalid('tax_rate_code', `tax rate ${rate.code} is not ACTIVE`);
    const start_date = terms.start_date ?? author.now.toISOString();
    const association = checkAssociation({ ...terms, ...entity, start_date, tax_rate_id: rate.id });
    const record = { id: newId('tax_association', author.now.getTime()), ...association, ...createdBy(author) };
    const conflict = `${entity.entity_type} ${entity.entity_id} has tax rate ${rate.code} already`;
    if (await TaxAssociationModel.besides(scope, association, database)) throw alreadyExists(conflict);
    return TaxAssociationModel.add(scope, record, { database, conflict });
  });
}

/** Resolves a customer by its external id; a given id must agree. */
async function loadEntity(named: NamedEntity, scope: Scope, database: Database): Promise<TaxedEntity> {
  const { entity_type, entity_id, external_customer_id } = named;
  if (external_customer_id) {
    if (entity_type && entity_type !== 'customer')
      throw invalid('external_customer_id', `is not allowed with entity_type ${entity_type}`);
    const { id } = await CustomerModel.fetchExternal(scope, external_customer_id, database);
    if (entity_id && entity_id !== id)
      throw invalid('entity_id', `is not the customer with external id ${external_customer_id}`);
    return { entity_type: 'customer', entity_id: id };
  }
  if (!entity_type) throw invalid('entity_type', 'is required without external_customer_id');
  if (entity_type === 'tenant') return { entity_type, entity_id: entity_id || scope.tenant_id };
  if (!entity_id) throw invalid('entity_id', `is required for a ${entity_type}`);
  return { entity_type, entity_id };
}

type FetchEntityOptions = { database: Database };
const FETCH = {
  customer: (scope: Scope, id: string, options: FetchEntityOptions) => CustomerModel.fetch(scope, id, options),
  subscription: (scope: Scope, id: string, options: FetchEntityOptions) => SubscriptionModel.fetch(scope, id, options),
  // The invoice is locked, so that it is not finalized meanwhile.
  invoice: (scope: Scope, id: string, options: FetchEntityOptions) =>
    InvoiceModel.fetch(scope, id, { ...options, lock: true }),
};

async function checkEntity({ entity_type, entity_id }: TaxedEntity, scope: Scope, database: Database): Promise<void> {
  if (entity_type === 'tenant') {
    if (entity_id !== scope.tenant_id) throw notFound('tenant', entity_id);
    return;
  }
  const entity = await FETCH[entity_type](scope, entity_id, { database });
  if (entity.status !== 'published') throw notFound(entity_type, entity_id);
  if (entity instanceof InvoiceModel && entity.invoice_status !== 'DRAFT')
    throw buildStateError(
      'entity_id',
      `names an invoice that is ${entity.invoice_status}: only a draft is taxed later`,
    );
}

/** Loads the filter of a list; makes no query unless the request names a customer by its external id. */
export async function loadChosenEntity(named: NamedEntity, scope: Scope, database: Database): Promise<NamedEntity> {
  return named.external_customer_id ? loadEntity(named, scope, database) : named;
}
