/** The PDF of an invoice: directly for callers who may read it, and by an address that is valid for 15 minutes. */
import { z } from 'zod';
import { type InvoicePdf, loadInvoicePdf } from '../../../actions/invoicing/documents/invoice-pdf.ts';
import { runAs } from '../../../storage/foundation/request-context.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { makeLink, verifyLink } from '../../http/link.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';
import { PdfAddressAnswer, PdfQuery } from './schema.ts';

const tag = 'Invoices';
const SUBJECT = 'invoice_pdf';
const LINK_SECONDS = 900;

export const invoicePdfRoutes: Route[] = [
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
    tag,
    access: 'invoice:read',
    params: idParams,
    query: PdfQuery,
    success: 200,
    answer: PdfAddressAnswer,
    file_type: 'application/pdf',
    handle: async ({ params, query }, context) => {
      const { url, force_generate } = query;
      if (!url) return sendPdf(await loadPdf(context, { id: params.id, force: force_generate }), context);
      // An address is created only for an existing invoice. If a new rendering is requested, it happens now and not at the download.
      if (force_generate) await loadPdf(context, { id: params.id, force: true });
      else await InvoiceModel.fetch(context.scope, params.id, { database: context.services.postgres });
      const { tenant_id, environment_id } = context.scope;
      const claim = { subject: SUBJECT, tenant_id, environment_id, id: params.id };
      const token = await makeLink(context.services, claim, { seconds: LINK_SECONDS, now: context.received_at });
      const { protocol, baseUrl } = context.request;
      const presigned_url = `${protocol}://${context.request.get('host')}${baseUrl}/documents/${token}`;
      return { presigned_url };
    },
  }),
  route({
    method: 'get',
    path: '/documents/:token',
    operation_id: 'getDocument',
    summary: 'Open a document by its address',
    description:
      'Returns the document of an address from `GET /invoices/{id}/pdf?url=true`. The address needs no key and is ' +
      'valid for 15 minutes.',
    tag,
    access: 'public',
    params: z.object({
      token: z.string().max(2000).meta({ description: 'Signed token from the address; 2000 characters at most.' }),
    }),
    success: 200,
    file_type: 'application/pdf',
    handle: async ({ params }, context) => {
      const { id, ...scope } = await verifyLink(context.services, params.token, {
        subject: SUBJECT,
        now: context.received_at,
      });
      const { request_id } = context;
      return runAs({ scope, user_id: '', secret_id: null, request_id }, async () =>
        sendPdf(await loadPdf({ ...context, scope }, { id }), context),
      );
    },
  }),
];

function loadPdf(context: Context, input: { id: string; force?: boolean }): Promise<InvoicePdf> {
  const { services, scope, received_at } = context;
  const fonts = services.config.PDF_FONTS_DIR ?? null;
  return withBounds(context, (bounds) =>
    loadInvoicePdf(services, scope, { ...input, fonts, now: received_at, bounds }),
  );
}

function sendPdf({ name, bytes }: InvoicePdf, { response }: Context): void {
  response
    .status(200)
    .type('application/pdf')
    // The caller may store it, and asks with its ETag whether it is still the current one.
    .set('Cache-Control', 'private, no-cache')
    .set('Content-Disposition', `inline; filename*=UTF-8''${encodeURIComponent(name)}`);
  response.send(bytes);
}
