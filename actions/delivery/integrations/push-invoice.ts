/**
 * Pushes an invoice to the provider of a connection, after its customer. A repeated push sends the amounts of the first
 * one, so that the provider recognizes it. After the push, the counterpart is voided or settled if the invoice was
 * voided or settled here meanwhile (docs/integrations/README.md).
 */
import { toPostalAddress } from '../../../core/catalog/customer/address.ts';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { computePushedLines } from '../../../core/platform/integration/pushed-lines.ts';
import type { PushedInvoice } from '../../../integrations/account.ts';
import { ProviderError } from '../../../integrations/provider-error.ts';
import type { Postgres } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { IntegrationMappingModel } from '../../../storage/models/foundation/integration-mapping.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { loadLines } from '../../../storage/models/invoicing/load-lines.ts';
import {
  beginCalls,
  completeMapping,
  dropMapping,
  hasCallBegun,
  intendMapping,
} from '../../foundation/connections/mappings.ts';
import { checkTaxedOnce } from '../../foundation/connections/merchant-of-record.ts';
import { BeingSent, withClaim } from '../../foundation/connections/push-claims.ts';
import {
  ensureProviderCustomer,
  loadPushKey,
  NothingToSend,
  type PushKey,
  type PushTarget,
  pushBegun,
} from '../../foundation/connections/push-record.ts';
import { loadPrintedTaxes } from '../../invoicing/documents/printed-taxes.ts';
import { attachCharges } from './attach-charges.ts';
import { resumeMoney } from './resume-money.ts';
import { describeSentInvoice, listReceivedPayments } from './sent-invoice.ts';
import { settleInvoice } from './settle-invoice.ts';

export async function pushInvoice(
  stores: Postgres,
  scope: Scope,
  invoice_id: string,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const { postgres } = stores;
  const invoice = await InvoiceModel.fetchPublished(scope, invoice_id, { database: postgres });
  const key = { connection_id: target.connection.id, entity_type: 'invoice', entity_id: invoice_id } as const;
  const known = await IntegrationMappingModel.findCurrent(scope, key, { database: postgres });
  if (!known || !hasCallBegun(known)) {
    checkPushable(invoice);
    return sendInvoice(stores, invoice, known ?? null, target);
  }
  if (known.mapping_state === 'intended' && !isOpen(invoice)) return withdrawUncertain(stores, invoice, known, target);
  if (invoice.invoice_status === 'VOIDED') return voidThere(known, target);
  if (known.mapping_state === 'intended') return resendInvoice(stores, invoice, known, target);
  await settleInvoice(stores, invoice, known, target);
  return known;
}

async function sendInvoice(
  stores: Postgres,
  invoice: InvoiceModel,
  known: IntegrationMappingModel | null,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const provider_customer_id = await ensureProviderCustomer(stores, invoice, invoice.customer_id, target);
  const entity = { entity_type: 'invoice', entity_id: invoice.id } as const;
  const mapping = await beginInvoice(
    stores,
    known ?? (await intendMapping(stores, invoice, { ...target, entity })),
    target,
  );
  if (mapping.mapping_state === 'made') return mapping;
  const pushed = await toPushedInvoice(stores, mapping, { provider_customer_id, target });
  const made = await pushBegun(stores, mapping, target, (account, key) => account.pushInvoice!({ ...key, ...pushed }));
  await resumeMoney(stores, made, target.connection);
  if (made.mapping_state === 'made')
    await attachCharges({ mapping: made, payments: await listReceivedPayments(stores.postgres, invoice) }, target);
  return made;
}

/** Sends the invoice with the amounts of its first push, although it may have changed since. */
async function resendInvoice(
  stores: Postgres,
  invoice: InvoiceModel,
  known: IntegrationMappingModel,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const mapping = await sendInvoice(stores, invoice, known, target);
  const current = await InvoiceModel.fetchPublished(invoice, invoice.id, { database: stores.postgres });
  if (mapping.mapping_state === 'made' && isOpen(current)) await settleInvoice(stores, current, mapping, target);
  return mapping;
}

/**
 * Begins the first push. The lock of the invoice decides which payments the provider's copy contains; later payments are pushed as records
 * of their own.
 */
async function beginInvoice(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  { author }: PushTarget,
): Promise<IntegrationMappingModel> {
  return postgres.transaction(async (transaction) => {
    const locked = { database: transaction, lock: 'shared' } as const;
    const invoice = await InvoiceModel.fetchPublished(mapping, mapping.entity_id, locked);
    const describe = async () => {
      checkPushable(invoice);
      return { sent_invoice: await describeSentInvoice(transaction, invoice) };
    };
    return beginCalls(transaction, mapping, { author, describe });
  });
}

/**
 * Voids the provider's copy of an invoice that was voided or settled after a push whose answer was lost. The id of the copy is unknown, so
 * the provider is searched for it; if the provider has no search, a person has to void the copy.
 */
async function withdrawUncertain(
  stores: Postgres,
  invoice: InvoiceModel,
  mapping: IntegrationMappingModel,
  target: PushTarget,
): Promise<IntegrationMappingModel> {
  const { author, call } = target;
  const provider_customer_id = await ensureProviderCustomer(stores, invoice, invoice.customer_id, target);
  return withClaim(stores, mapping, async (claimed) => {
    if (claimed.mapping_state === 'gone') return claimed;
    if (claimed.mapping_state === 'made') throw new BeingSent(claimed);
    const { key_created_at } = await loadPushKey(stores, claimed);
    const found = await call(async (account) => {
      if (!account.findInvoice) throw describeUncertain(invoice);
      return account.findInvoice({ invoice_id: invoice.id, provider_customer_id, key_created_at });
    });
    const made = found === null ? claimed : await completeMapping(stores, claimed, { made: found, author });
    if (found !== null) await voidThere(made, target);
    await stores.postgres.transaction(async (database) => {
      const current = await IntegrationMappingModel.fetch(made, made.id, { database, lock: true });
      if (current.mapping_state !== 'gone') await dropMapping(database, current, author);
    });
    return made;
  });
}

function describeUncertain({ id, invoice_status }: InvoiceModel): ProviderError {
  const what = invoice_status === 'VOIDED' ? 'voided' : 'settled';
  return new ProviderError(
    'person',
    `invoice ${id} was ${what} while it was being sent: search for it at the provider`,
  );
}

async function voidThere(mapping: IntegrationMappingModel, { call }: PushTarget): Promise<IntegrationMappingModel> {
  const { id, provider_entity_id } = mapping;
  await call(async (account) => account.voidInvoice?.(provider_entity_id!, `${id}:void`));
  return mapping;
}

function isOpen({ invoice_status, amount_remaining }: InvoiceModel): boolean {
  return invoice_status === 'FINALIZED' && new Decimal(amount_remaining).gt(0);
}

/** Refuses a draft, which may change, and an invoice of which nothing remains to be paid. */
function checkPushable(invoice: InvoiceModel): void {
  if (isOpen(invoice)) return;
  const { id, invoice_status } = invoice;
  const why =
    invoice_status === 'FINALIZED'
      ? 'nothing of this invoice remains to be paid'
      : `an invoice that is ${invoice_status} is not sent to a provider`;
  throw new NothingToSend(why, { invoice_id: id, invoice_status });
}

/** Builds the invoice with the amounts of the first push, so that a repetition sends the same. */
async function toPushedInvoice(
  { postgres }: Postgres,
  mapping: IntegrationMappingModel,
  { provider_customer_id, target }: { readonly provider_customer_id: string; readonly target: PushTarget },
): Promise<Omit<PushedInvoice, keyof PushKey>> {
  const invoice = await InvoiceModel.fetchPublished(mapping, mapping.entity_id, { database: postgres });
  await checkTaxedOnce(invoice, target.connection, postgres);
  const wanted = { model: InvoiceLineItemModel, parent: 'invoice_id', ids: [invoice.id] } as const;
  const lines = (await loadLines(invoice, wanted, postgres)).get(invoice.id) ?? [];
  const taxes = await loadPrintedTaxes(invoice, postgres);
  const billed = await CustomerModel.fetch(mapping, invoice.customer_id, { database: postgres });
  const sent = mapping.sent_invoice ?? invoice;
  return {
    invoice_id: invoice.id,
    invoice_number: invoice.invoice_number!,
    provider_customer_id,
    addressee: { name: billed.name, email: billed.email },
    currency: invoice.currency,
    lines: computePushedLines({ invoice: { ...sent, id: invoice.id }, lines, taxes }),
    total: sent.amount_remaining,
    issued_at: invoice.finalized_at ?? null,
    due_date: invoice.due_date ?? null,
    billing_address: toPostalAddress(billed),
  };
}
