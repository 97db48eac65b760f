/**
 * The PDF of an invoice (docs/rules/documents.md). Gathers the content, renders it and stores it until the invoice changes. An invoice that
 * is not FINALIZED is rendered for each request.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import { buildInvoiceDocument, type InvoiceDocumentInput } from '../../../core/invoicing/document/document.ts';
import type { SettingValue } from '../../../core/platform/setting/record.ts';
import { renderPdf } from '../../../integrations/pdf/render.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { findDocument, upsertDocument } from '../../../storage/models/invoicing/invoice-document.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { DocumentFile } from './credit-note-pdf.ts';
import { loadInvoiceTimezone, loadReceiver, loadSeller } from './printed-by.ts';
import { loadPrintedGroups } from './printed-groups.ts';
import { loadPrintedTaxes } from './printed-taxes.ts';

type InvoicePdfInput = {
  readonly id: string;
  /** Renders again with the current settings, even if a stored PDF exists. */
  readonly force?: boolean;
  readonly fonts: string | null;
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};
type InvoicePdf = DocumentFile & { readonly invoice: InvoiceModel };

export async function loadInvoicePdf(
  stores: Stores,
  scope: Scope,
  { id, force = false, fonts, now, bounds }: InvoicePdfInput,
): Promise<InvoicePdf> {
  const { postgres } = stores;
  const invoice = await InvoiceModel.fetch(scope, id, { database: postgres });
  const name = `${invoice.invoice_number ?? invoice.id}.pdf`;
  const cacheKey = { invoice_id: invoice.id, invoice_version: invoice.version };
  const isFinal = invoice.invoice_status === 'FINALIZED';
  const known = isFinal && !force ? await findDocument(scope, cacheKey, postgres) : undefined;
  if (known) return { invoice, name, bytes: known };
  const document = buildInvoiceDocument(await gatherInvoiceDocument(stores, invoice, { now, bounds }));
  const bytes = await renderPdf(document, { fonts, asker: scope.tenant_id });
  if (isFinal) await upsertDocument(scope, { ...cacheKey, bytes, now }, postgres);
  return { invoice, name, bytes };
}

type GatherDocumentInput = Pick<InvoicePdfInput, 'now' | 'bounds'> & {
  /** Settings that replace the stored ones. */
  readonly settings?: SettingValue<'invoice_pdf_config'>;
};

/** Gathers the content of the document; usage groups are measured as of now. */
export async function gatherInvoiceDocument(
  stores: Stores,
  invoice: InvoiceModel,
  { settings: replaced, ...input }: GatherDocumentInput,
): Promise<InvoiceDocumentInput> {
  const database = stores.postgres;
  const { tenant_id, environment_id } = invoice;
  const scope = { tenant_id, environment_id };
  const lines = await InvoiceLineItemModel.in(scope, database)
    .where({ invoice_id: invoice.id, status: 'published' })
    .orderBy('position');
  const settings = replaced ?? (await loadSetting(scope, 'invoice_pdf_config', database));
  return {
    invoice,
    lines,
    taxes: await loadPrintedTaxes(invoice, database),
    groups: await loadPrintedGroups(stores, scope, { lines, group_by: settings.group_by, ...input }),
    customer: await loadReceiver(invoice, database),
    seller: await loadSeller(settings, { tenant_id, database }),
    settings,
    timezone: await loadInvoiceTimezone(invoice, scope, database),
  };
}
