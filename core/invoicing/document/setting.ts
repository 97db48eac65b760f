/** The setting `invoice_pdf_config`: layout, language and sender of invoice documents (docs/rules/documents.md). */
import { z } from 'zod';
import { anyCase, keyText } from '../../foundation/record.ts';
import { isGrouping } from '../../metering/analytics/group-by.ts';
import { LANGUAGES } from './language.ts';
import { isPicture, LOGO_TEXT_MAX } from './picture.ts';

export const color = z.string().regex(/^#[0-9a-f]{6}$/i, { error: 'must be a color such as #1a2b3c' });
const text = (most: number) => z.string().trim().max(most);

/** Sender of the invoice on its document. If null, the data of the tenant is used. */
const company = z.strictObject({
  name: text(255).min(1),
  lines: z.array(text(255)).max(12).default([]),
  tax_id: z.nullable(text(50)).default(null),
  email: z.nullable(text(320)).default(null),
  website: z.nullable(text(255)).default(null),
});
const invoicePdfConfig = z.strictObject({
  template_name: keyText.min(1),
  group_by: z.array(keyText.refine(isGrouping, { error: 'must be source, feature_id or properties.<name>' })).max(10),
  language: anyCase(LANGUAGES),
  company: z.nullable(company),
  logo: z.nullable(z.string().max(LOGO_TEXT_MAX).refine(isPicture, { error: 'must be a data URL of a PNG or JPEG' })),
  color,
  page_size: anyCase(['A4', 'LETTER']),
  payment_instructions: z.nullable(text(2000)),
  notes: z.nullable(text(2000)),
});

export const invoicePdfSetting = {
  reach: 'environment',
  shape: invoicePdfConfig,
  default: {
    template_name: 'invoice.typ',
    group_by: [],
    language: 'en',
    company: null,
    logo: null,
    color: '#1f4e79',
    page_size: 'A4',
    payment_instructions: null,
    notes: null,
  },
} as const;
export type InvoicePdfConfig = z.output<typeof invoicePdfConfig>;
