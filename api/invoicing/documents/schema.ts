/** Parameters and answers of documents. */
import { z } from 'zod';
import { UpdateTenant } from '../../foundation/tenants/schema.ts';

const yes = z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0', ''] });
const url = yes
  .default(false)
  .meta({ description: 'True returns an address of the PDF instead of the PDF itself. Default false.' });

export const CreditNotePdfQuery = z.object({ url });
export const InvoicePdfQuery = z.object({
  url,
  force_generate: yes.default(false).meta({
    description:
      'True renders the PDF again with the current settings instead of using the cached file. Default false.',
  }),
});
export const DocumentAddressAnswer = z
  .object({
    presigned_url: z.string().meta({ description: 'Address of the PDF. Valid for 15 minutes, without a key.' }),
  })
  .meta({ id: 'InvoicePdfAddress' });

const unsaved = (key: string) =>
  z
    .record(z.string(), z.unknown())
    .nullish()
    .meta({
      description: `Fields of the setting \`${key}\`, as for its change. Others are as saved; null resets a field to its default.`,
    });

export const PreviewPdfRequest = z
  .object({
    invoice_id: z
      .string()
      .min(1)
      .nullish()
      .meta({ description: 'Id of the shown invoice. Default: a sample invoice.' }),
    invoice_config: unsaved('invoice_config'),
    invoice_pdf_config: unsaved('invoice_pdf_config'),
    tenant: UpdateTenant.pick({ name: true, billing_details: true })
      .nullish()
      .meta({ description: 'Data of the tenant in place of the saved data. A `company` of the setting precedes it.' }),
  })
  .meta({
    id: 'PreviewInvoicePdfRequest',
    example: {
      invoice_config: { prefix: 'EX', due_date_days: 14 },
      invoice_pdf_config: { language: 'de', color: '#0b3d2e' },
    },
  });
