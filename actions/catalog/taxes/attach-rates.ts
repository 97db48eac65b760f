/** Attaches the requested tax rates, or the default rates of the customer (docs/rules/taxes.md, "Which rates"). */

import { checkOverrides, type TaxOverride } from '../../../core/catalog/tax/overrides.ts';
import { checkAssociation, type TaxAssociation } from '../../../core/catalog/tax/record.ts';
import { invalid, prefixField } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { CreateInvoice, Invoice } from '../../../core/invoicing/invoice/record.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { TaxAssociationModel } from '../../../storage/models/catalog/tax-association.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadStandingRates } from './rates-in-force.ts';

type AttachRatesInput = {
  readonly scope: Scope;
  readonly transaction: Transaction;
  readonly author: Author;
  readonly entity: Pick<TaxAssociation, 'entity_type' | 'entity_id'>;
  readonly start_date: string;
};

async function attachOverrides(overrides: readonly TaxOverride[], attaching: AttachRatesInput): Promise<void> {
  for (const [index, { tax_rate_code, ...terms }] of overrides.entries()) {
    try {
      const rate = await TaxRateModel.lockByCode(attaching.scope, tax_rate_code, attaching.transaction);
      await attach({ rate, field: 'tax_rate_code', ...terms, end_date: null }, attaching);
    } catch (error) {
      throw prefixField(error, `tax_rate_overrides[${index}]`);
    }
  }
}

/** Attaches rates by their ids or codes. */
async function attachNamed(names: readonly string[], field: string, attaching: AttachRatesInput): Promise<void> {
  const { scope, transaction } = attaching;
  for (const [index, name] of names.entries()) {
    const at = `${field}[${index}]`;
    const rates = await TaxRateModel.in(scope, transaction)
      .where({ status: 'published' })
      .whereRaw('(id = ? or code = ?)', [name, name])
      .forShare();
    const rate = rates.find(({ id }) => id === name) ?? rates[0];
    if (!rate) throw invalid(at, `there is no tax rate ${name}`);
    const terms = { priority: index, auto_apply: true, currency: null, metadata: null, end_date: null };
    await attach({ rate, field: at, ...terms }, attaching);
  }
}

/** Copies the tax rates of the payer to a new subscription; later changes of those rates do not affect it. */
async function takeOverRates(
  { customer_id, currency }: { customer_id: string; currency: string },
  attaching: AttachRatesInput,
): Promise<void> {
  const { scope, transaction, author } = attaching;
  const of = { ...scope, customer_id, currency, at: author.now.getTime() };
  await copyAssociations(await loadStandingRates(transaction, of), attaching);
}

/** Copies the rates of a replaced invoice to the invoice that replaces it. */
export async function copyInvoiceRates(invoice_id: string, attaching: AttachRatesInput): Promise<void> {
  const found = await TaxAssociationModel.in(attaching.scope, attaching.transaction)
    .where({ entity_type: 'invoice', entity_id: invoice_id, status: 'published' })
    .orderBy(['created_at', 'id']);
  await copyAssociations(found, attaching);
}

async function copyAssociations(
  found: readonly TaxAssociationModel[],
  { scope, transaction, author, entity, start_date }: AttachRatesInput,
): Promise<void> {
  const records = found.map(({ tax_rate_id, priority, auto_apply, currency: only, end_date, metadata }) => ({
    ...createdBy(author),
    ...entity,
    id: newId('tax_association', author.now.getTime()),
    tax_rate_id,
    priority,
    auto_apply,
    currency: only,
    start_date,
    end_date,
    metadata,
  }));
  await TaxAssociationModel.addAll(scope, records, { database: transaction });
}

type RateTerms = Pick<TaxAssociation, 'priority' | 'auto_apply' | 'currency' | 'metadata' | 'end_date'>;

async function attach(
  { rate, field, ...terms }: RateTerms & { rate: TaxRateModel; field: string },
  { scope, transaction, author, entity, start_date }: AttachRatesInput,
): Promise<void> {
  if (rate.tax_rate_status !== 'ACTIVE') throw invalid(field, `tax rate ${rate.code} is not ACTIVE`);
  const association = checkAssociation({ ...terms, ...entity, start_date, tax_rate_id: rate.id });
  const record = { ...createdBy(author), ...association, id: newId('tax_association', author.now.getTime()) };
  const conflict = `tax rate ${rate.code} is stated twice`;
  await TaxAssociationModel.add(scope, record, { database: transaction, conflict });
}

/** Attaches the requested rates to a new subscription; without requested rates, attaches those of its payer. */
export async function taxSubscription(
  subscription: SubscriptionModel,
  overrides: readonly TaxOverride[],
  writing: Pick<AttachRatesInput, 'scope' | 'transaction' | 'author'>,
): Promise<void> {
  const { id: entity_id, start_date, currency } = subscription;
  const attaching = { ...writing, entity: { entity_type: 'subscription', entity_id } as const, start_date };
  checkOverrides(overrides, currency);
  if (overrides.length > 0) return attachOverrides(overrides, attaching);
  return takeOverRates({ customer_id: deriveAddressee(subscription), currency }, attaching);
}

/** Attaches the requested rates to a manual invoice. */
export async function taxInvoice(
  entity_id: string,
  request: Pick<CreateInvoice, 'tax_rates' | 'tax_rate_overrides' | 'prepared_tax_rates'>,
  currency: string,
  writing: Pick<AttachRatesInput, 'scope' | 'transaction' | 'author'>,
): Promise<void> {
  const entity = { entity_type: 'invoice', entity_id } as const;
  const attaching = { ...writing, entity, start_date: writing.author.now.toISOString() };
  const overrides = request.tax_rate_overrides ?? [];
  checkOverrides(overrides, currency);
  await attachOverrides(overrides, attaching);
  await attachNamed(request.tax_rates ?? [], 'tax_rates', attaching);
  const prepared = (request.prepared_tax_rates ?? []).map(({ id }) => id);
  await attachNamed(prepared, 'prepared_tax_rates', attaching);
}

export async function retaxInvoice(
  { id: entity_id }: Pick<Invoice, 'id'>,
  rate_ids: readonly string[],
  writing: Pick<AttachRatesInput, 'scope' | 'transaction' | 'author'>,
): Promise<void> {
  const { scope, transaction, author } = writing;
  const start_date = author.now.toISOString();
  const entity = { entity_type: 'invoice', entity_id } as const;
  const records = await TaxAssociationModel.in(scope, transaction)
    .where({ ...entity, status: 'published' })
    .forUpdate();
  const by = { by: author, database: transaction };
  await TaxAssociationModel.changeAll(scope, { records, changes: { status: 'archived' } }, by);
  await attachNamed(rate_ids, 'prepared_tax_rates', { ...writing, entity, start_date });
}

/** Attaches the default rates of a customer. */
export async function taxCustomer(
  entity_id: string,
  overrides: readonly TaxOverride[],
  writing: Pick<AttachRatesInput, 'scope' | 'transaction' | 'author'>,
): Promise<void> {
  const entity = { entity_type: 'customer', entity_id } as const;
  await attachOverrides(overrides, { ...writing, entity, start_date: writing.author.now.toISOString() });
}
