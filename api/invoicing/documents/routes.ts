/** PDFs of invoices and credit notes: directly for callers who may read them, and by an address that is valid for 15 minutes. */
import { z } from 'zod';
import { type DocumentFile, loadCreditNotePdf } from '../../../actions/invoicing/documents/credit-note-pdf.ts';
import { loadInvoicePdf } from '../../../actions/invoicing/documents/invoice-pdf.ts';
import { previewInvoicePdf } from '../../../actions/invoicing/documents/preview-pdf.ts';
import { runAs } from '../../../storage/foundation/request-context.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { makeLink, verifyLink } from '../../http/link.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import { CreditNotePdfQuery, DocumentAddressAnswer, InvoicePdfQuery, PreviewPdfRequest } from './schema.ts';

const LINK_SECONDS = 900;

/** Subjects of links, by the kind of document that their id names. */
const SUBJECTS = { invoice: 'invoice_pdf', credit_note: 'credit_note_pdf' } as const;
type DocumentKind = keyof typeof SUBJECTS;

export const documentRoutes: Route[] = [
  route({
    method: 'get',
    path: '/invoices/:id/pdf',
    operation_id: 'getInvoicePdf',
    summary: 'Get the PDF of an invoice',
    description:
      'Returns the PDF itself. With `url=true` it returns an address in `presigned_url` that anybody may open for ' +
      '15 minutes. The PDF of a final invoice is cached while the invoice is unchanged; `force_generate=true` ' +
      'renders it again with the current settings. A draft or void invoice is marked as such. Language, company, ' +
      'logo and colour come from the setting `invoice_pdf_config`.',
    tag: 'Invoices',
    access: 'invoice:read',
    params: idParams,
    query: InvoicePdfQuery,
    success: 200,
    answer: DocumentAddressAnswer,
    file_type: 'application/pdf',
    handle: async ({ params: { id }, query }, context) => {
      const { url, force_generate } = query;
      if (!url) return sendPdf(await loadInvoiceFile(context, { id, force: force_generate }), context);
      // An address is created only for an existing invoice. If a new rendering is requested, it happens now and not at the download.
      if (force_generate) await loadInvoiceFile(context, { id, force: true });
      else await InvoiceModel.fetch(context.scope, id, { database: context.services.postgres });
      return makeAddress('invoice', id, context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/preview/pdf',
    operation_id: 'previewInvoicePdf',
    summary: 'Preview the PDF of an invoice',
    description:
      'Returns the PDF of an invoice, or of a sample, under settings and tenant data that are not saved. Nothing is ' +
      'written. The sample has the first number and the due date of the settings; an invoice keeps its own. A field ' +
      'that the change of the setting would refuse is refused.',
    tag: 'Invoices',
    access: 'invoice:read',
    body: PreviewPdfRequest,
    success: 200,
    file_type: 'application/pdf',
    handle: async ({ body }, context) => {
      const { invoice_id = null, invoice_config = null, invoice_pdf_config = null, tenant = null } = body;
      const input = { invoice_id, invoice_config, invoice_pdf_config, tenant, fonts: findFontFolder(context) };
      const { services, scope, now } = context;
      return withBounds(context, async (bounds) =>
        sendPdf(await previewInvoicePdf(services, scope, { ...input, now, bounds }), context),
      );
    },
  }),
  route({
    method: 'get',
    path: '/creditnotes/:id/pdf',
    operation_id: 'getCreditNotePdf',
    summary: 'Get the PDF of a credit note',
    description:
      'Returns the PDF itself. With `url=true` it returns an address in `presigned_url` that anybody may open for ' +
      '15 minutes. A draft or void note is marked as such. Language, company, logo and colour come from the setting ' +
      '`invoice_pdf_config`.',
    tag: 'Credit notes',
    access: 'creditnote:read',
    params: idParams,
    query: CreditNotePdfQuery,
    success: 200,
    answer: DocumentAddressAnswer,
    file_type: 'application/pdf',
    handle: async ({ params: { id }, query }, context) => {
      if (!query.url) return sendPdf(await loadCreditNoteFile(context, { id }), context);
      await CreditNoteModel.fetch(context.scope, id, { database: context.services.postgres });
      return makeAddress('credit_note', id, context);
    },
  }),
  route({
    method: 'get',
    path: '/documents/:token',
    operation_id: 'getDocument',
    summary: 'Open a document by its address',
    description:
      'Returns the document of an address from `GET /invoices/{id}/pdf?url=true` or `GET /creditnotes/{id}/pdf?url=true`. ' +
      'The address needs no key and is valid for 15 minutes.',
    tag: 'Invoices',
    access: 'public',
    params: z.object({
      token: z.string().max(2000).meta({ description: 'Signed token from the address; 2000 characters at most.' }),
    }),
    success: 200,
    file_type: 'application/pdf',
    handle: async ({ params }, context) => {
      const { services, received_at, request_id } = context;
      const link = { subjects: Object.values(SUBJECTS), now: received_at };
      const { id, subject, ...scope } = await verifyLink(services, params.token, link);
      const load = subject === SUBJECTS.invoice ? loadInvoiceFile : loadCreditNoteFile;
      return runAs({ scope, user_id: '', secret_id: null, request_id }, async () =>
        sendPdf(await load({ ...context, scope }, { id }), context),
      );
    },
  }),
];

async function makeAddress(kind: DocumentKind, id: string, { services, scope, received_at, request }: Context) {
  const { tenant_id, environment_id } = scope;
  const claim = { subject: SUBJECTS[kind], tenant_id, environment_id, id };
  const token = await makeLink(services, claim, { seconds: LINK_SECONDS, now: received_at });
  return { presigned_url: `${request.protocol}://${request.get('host')}${request.baseUrl}/documents/${token}` };
}

function loadInvoiceFile(context: Context, input: { id: string; force?: boolean }): Promise<DocumentFile> {
  const { services, scope, received_at } = context;
  return withBounds(context, (bounds) =>
    loadInvoicePdf(services, scope, { ...input, fonts: findFontFolder(context), now: received_at, bounds }),
  );
}

function loadCreditNoteFile(context: Context, { id }: { id: string }): Promise<DocumentFile> {
  return loadCreditNotePdf(context.services, context.scope, { id, fonts: findFontFolder(context) });
}

function findFontFolder({ services }: Context): string | null {
  return services.config.PDF_FONTS_DIR ?? null;
}

function sendPdf({ name, bytes }: DocumentFile, { response }: Context): void {
  response
    .status(200)
    .type('application/pdf')
    // The caller may store it, and asks with its ETag whether it is still the current one.
    .set('Cache-Control', 'private, no-cache')
    .set('Content-Disposition', `inline; filename*=UTF-8''${encodeURIComponent(name)}`);
  response.send(bytes);
}
