/**
 * Loads the tax rates of an invoice (docs/rules/taxes.md, "Which rates"): its own, if it has any, else those of its subscription. Without a
 * subscription the `auto_apply` rates of its customer apply, or else those of the tenant. Smaller priorities come first. An exempt customer
 * has none, and neither has an environment whose invoices a merchant of record taxes.
 */

import type { TaxAssociation } from '../../../core/catalog/tax/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import type { RateInForce } from '../../../core/rating/taxes.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { hasMerchantOfRecord } from '../../foundation/connections/merchant-of-record.ts';

export type TaxableInvoice = Pick<Invoice, 'customer_id' | 'subscription_id' | 'currency' | 'invoice_type'> &
  Scope & {
    /** Absent if the invoice has no associations of its own yet. */
    readonly id?: string;
    readonly at: Milliseconds;
    /** Instant at which rates attached to the invoice itself must be in force, whatever the period of the invoice. Default: `at`. */
    readonly now?: Milliseconds;
  };

export async function loadRatesInForce(database: Database, taxed: TaxableInvoice): Promise<RateInForce[]> {
  // A manual credit is not taxed.
  if (taxed.invoice_type === 'CREDIT') return [];
  const associations = await loadAssociations(database, taxed);
  if (associations.length === 0 || (await isExempt(database, taxed))) return [];
  if (await hasMerchantOfRecord(taxed, database)) return [];
  const rates = await TaxRateModel.byId(
    taxed,
    associations.map(({ tax_rate_id }) => tax_rate_id),
    database,
  );
  return associations.map(({ id, tax_rate_id }) => ({ rate: rates.get(tax_rate_id)!, tax_association_id: id }));
}

/** Whether the environment has any tax association. If it has none, a batch of invoices needs no query for each of them. */
export async function isTaxing(database: Database, scope: Scope): Promise<boolean> {
  const [found] = await TaxAssociationModel.in(scope, database).where({ status: 'published' }).select('id').limit(1);
  return found !== undefined;
}

/** Returns the tax instant of an invoice: the end of the period that it closes, the start of the one that it opens, else its creation. */
export function deriveTaxInstant(
  { billing_reason, period_start, period_end }: Pick<Invoice, 'billing_reason' | 'period_start' | 'period_end'>,
  now: Date,
): Milliseconds {
  if (billing_reason === 'SUBSCRIPTION_CREATE' || billing_reason === 'SUBSCRIPTION_TRIAL_END')
    return period_start ? toInstant(period_start) : now.getTime();
  if (billing_reason === 'SUBSCRIPTION_CYCLE' || billing_reason === 'PRORATION')
    return period_end ? toInstant(period_end) - 1 : now.getTime();
  return now.getTime();
}

async function loadAssociations(database: Database, taxed: TaxableInvoice): Promise<TaxAssociationModel[]> {
  const { id, at, now = at } = taxed;
  const own = id
    ? await listAttachedRates(database, { ...taxed, at: now }, { entity_type: 'invoice', entity_id: id })
    : [];
  if (own.length > 0) return own;
  if (taxed.subscription_id)
    return listAttachedRates(database, taxed, { entity_type: 'subscription', entity_id: taxed.subscription_id });
  return loadStandingRates(database, taxed);
}

type StandingRatesInput = Scope & Pick<TaxableInvoice, 'customer_id' | 'currency' | 'at'>;

/** Loads the default rates of a customer: its own, or else the tenant's. */
export async function loadStandingRates(database: Database, of: StandingRatesInput): Promise<TaxAssociationModel[]> {
  const [ofCustomer, ofTenant] = await loadAll(database, [
    (connected) => listAttachedRates(connected, of, { entity_type: 'customer', entity_id: of.customer_id }),
    (connected) => listAttachedRates(connected, of, { entity_type: 'tenant', entity_id: of.tenant_id }),
  ]);
  const own = ofCustomer.filter(({ auto_apply }) => auto_apply);
  if (own.length > 0) return own;
  return ofTenant.filter(({ auto_apply }) => auto_apply);
}

async function listAttachedRates(
  database: Database,
  { tenant_id, environment_id, currency, at }: Scope & Pick<TaxableInvoice, 'currency' | 'at'>,
  { entity_type, entity_id }: Pick<TaxAssociation, 'entity_type' | 'entity_id'>,
): Promise<TaxAssociationModel[]> {
  const where = { entity_type, status: 'published' };
  const filter = { column: 'entity_id', value: entity_id, where, order: ['priority', 'created_at', 'id'] };
  const found = await TaxAssociationModel.listBy({ tenant_id, environment_id }, filter, database);
  return found.filter(
    (one) =>
      (one.currency === null || one.currency === currency) &&
      toInstant(one.start_date) <= at &&
      (one.end_date === null || at < toInstant(one.end_date)),
  );
}

async function isExempt(database: Database, { customer_id, ...scope }: TaxableInvoice): Promise<boolean> {
  const customer = await CustomerModel.fetch(scope, customer_id, { database });
  return customer.tax_exempt !== 'none';
}
