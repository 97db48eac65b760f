/**
 * The PDF of an invoice under settings that are not saved (docs/rules/documents.md, "Settings before they are saved"): of a given invoice,
 * or of a sample. Writes nothing and takes no number.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import { buildInvoiceDocument, type InvoiceDocumentInput } from '../../../core/invoicing/document/document.ts';
import { buildSampleInvoice } from '../../../core/invoicing/document/sample.ts';
import { applySettingChange, type SettingValue, toWholeSetting } from '../../../core/platform/setting/record.ts';
import { renderPdf } from '../../../integrations/pdf/render.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { findSetting } from '../../../storage/models/foundation/setting.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import type { DocumentFile } from './credit-note-pdf.ts';
import { gatherInvoiceDocument } from './invoice-pdf.ts';
import { deriveSeller, type PrintedTenant } from './printed-by.ts';

type SentFields = Readonly<Record<string, unknown>>;

export type PreviewPdfInput = {
  /** Null shows a sample invoice. */
  readonly invoice_id: string | null;
  readonly invoice_config: SentFields | null;
  readonly invoice_pdf_config: SentFields | null;
  readonly tenant: Partial<PrintedTenant> | null;
  readonly fonts: string | null;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

export async function previewInvoicePdf(stores: Stores, scope: Scope, input: PreviewPdfInput): Promise<DocumentFile> {
  const document = buildInvoiceDocument(await gatherPreview(stores, scope, input));
  const bytes = await renderPdf(document, { fonts: input.fonts, asker: scope.tenant_id });
  return { name: 'preview.pdf', bytes };
}

/** Gathers the content of the document, with the sent fields in place of the stored ones. */
export async function gatherPreview(
  stores: Stores,
  scope: Scope,
  { invoice_id, tenant: sent, now, bounds, ...configs }: PreviewPdfInput,
): Promise<InvoiceDocumentInput> {
  const { postgres: database } = stores;
  const config = await loadChanged('invoice_config', configs.invoice_config, { scope, database });
  const settings = await loadChanged('invoice_pdf_config', configs.invoice_pdf_config, { scope, database });
  const tenant = await TenantModel.fetch(scope.tenant_id, scope.tenant_id, { database });
  const seller = deriveSeller(settings, {
    ...tenant,
    ...sent,
    ...(sent?.name === undefined ? {} : { is_named: true }),
  });
  if (invoice_id === null) {
    const { due_date_days, timezone } = config;
    return {
      ...buildSampleInvoice({ numbers: config, due_date_days, now: now.getTime() }),
      seller,
      settings,
      timezone,
    };
  }
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database });
  const stored = await gatherInvoiceDocument(stores, invoice, { now, bounds, settings });
  // An invoice without a subscription has the time zone of the invoice numbers.
  return { ...stored, seller, timezone: invoice.subscription_id ? stored.timezone : config.timezone };
}

async function loadChanged<Key extends 'invoice_config' | 'invoice_pdf_config'>(
  key: Key,
  sent: SentFields | null,
  { scope, database }: { scope: Scope; database: Database },
): Promise<SettingValue<Key>> {
  const stored = (await findSetting(scope, key, { database }))?.value;
  return toWholeSetting(key, sent === null ? stored : applySettingChange(key, stored, sent, key));
}
