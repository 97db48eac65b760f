/** Parameters and answers of documents. */
import { z } from 'zod';

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
