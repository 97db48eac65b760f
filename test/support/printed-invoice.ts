/** A final invoice with everything that a document can say, for tests of documents. */
import { Decimal } from '../../core/foundation/decimal.ts';
import type { CreditNoteDocumentInput } from '../../core/invoicing/document/credit-note.ts';
import type { InvoiceDocumentInput } from '../../core/invoicing/document/document.ts';
import { toWholeSetting } from '../../core/platform/setting/record.ts';

const stamps = {
  tenant_id: 'tenant_1',
  environment_id: 'env_1',
  status: 'published',
  created_at: '2026-11-01T00:00:00Z',
  updated_at: '2026-11-01T00:00:00Z',
  created_by: '',
  updated_by: '',
};
const october = { period_start: '2026-09-30T22:00:00Z', period_end: '2026-10-31T23:00:00Z' };

const line = (fields: Record<string, unknown>) => ({
  id: 'inv_line_1',
  invoice_id: 'inv_1',
  customer_id: 'cust_1',
  quantity: '1',
  amount: '0',
  currency: 'eur',
  ...october,
  prepaid_credits_applied: '0',
  line_item_discount: '0',
  invoice_level_discount: '0',
  ...stamps,
  ...fields,
});

const invoice = {
  id: 'inv_1',
  customer_id: 'cust_1',
  invoice_type: 'SUBSCRIPTION',
  invoice_status: 'FINALIZED',
  payment_status: 'PENDING',
  billing_reason: 'SUBSCRIPTION_CYCLE',
  currency: 'eur',
  subtotal: '1284.57',
  total_discount: '12.35',
  total_prepaid_credits_applied: '20',
  total_tax: '237.92',
  total: '1490.14',
  adjustment_amount: '40.14',
  amount_due: '1450',
  amount_paid: '100',
  total_credits_applied_after_tax: '0',
  amount_remaining: '1350',
  refunded_amount: '0',
  invoice_number: 'INV-202611-00042',
  description: 'Thank you.',
  ...october,
  due_date: '2026-11-30T23:00:00Z',
  finalized_at: '2026-11-01T02:00:00Z',
  is_manually_edited: false,
  version: 3,
  ...stamps,
};

const tiers = [
  { tier: 0, units: '1000000', unit_amount: '0.001', flat_amount: '0', amount: '1000' },
  { tier: 1, units: '234567', unit_amount: '0.00096', flat_amount: '9.39', amount: '234.57432' },
];

const lines = [
  line({
    display_name: 'API calls',
    plan_display_name: 'Pro',
    quantity: '1234567',
    amount: '1234.57',
    computed_from: { breakdown: tiers },
    invoice_level_discount: '12.35',
  }),
  line({
    display_name: 'Seats',
    quantity: '5',
    amount: '50',
    computed_from: { price: { billing_model: 'FLAT_FEE', amount: '10' } },
  }),
  line({ display_name: 'API calls', quantity: '12', amount: '0', computed_from: { reason: 'late_events' } }),
];

const customer = {
  name: 'Müller & Søn',
  external_id: 'mueller',
  email: 'buchhaltung@example.com',
  address_line1: 'Domstraße 1',
  address_line2: '',
  address_city: 'Köln',
  address_state: '',
  address_postal_code: '50667',
  address_country: 'DE',
  tax_ids: ['DE123456789'],
};

export function printedInvoice(
  settings: Record<string, unknown> = {},
  fields: {
    invoice?: Record<string, unknown>;
    lines?: readonly Record<string, unknown>[];
    customer?: Record<string, unknown>;
    taxes?: InvoiceDocumentInput['taxes'];
    groups?: InvoiceDocumentInput['groups'];
  } = {},
): InvoiceDocumentInput {
  return {
    invoice: { ...invoice, ...fields.invoice },
    lines: fields.lines?.map(line) ?? lines,
    taxes: fields.taxes ?? [{ label: 'VAT 19%', amount: '237.92' }],
    groups: fields.groups ?? new Map(),
    customer: { ...customer, ...fields.customer },
    seller: { name: 'Farthing Industries Ltd', lines: ['1 Penny Lane', 'London'] },
    settings: toWholeSetting('invoice_pdf_config', { payment_instructions: 'IBAN DE00 1234 5678', ...settings }),
    timezone: 'Europe/Berlin',
  } as unknown as InvoiceDocumentInput;
}

/** A final credit note of that invoice. */
export function printedCreditNote(
  settings: Record<string, unknown> = {},
  fields: { note?: Record<string, unknown> } & Partial<Pick<CreditNoteDocumentInput, 'taxes' | 'included_tax'>> = {},
): CreditNoteDocumentInput {
  const { taxes, customer, seller, settings: whole, timezone } = printedInvoice(settings);
  const note = {
    id: 'cn_1',
    credit_note_number: 'CN-202611-00007',
    invoice_id: 'inv_1',
    customer_id: 'cust_1',
    credit_note_status: 'FINALIZED',
    credit_note_type: 'ADJUSTMENT',
    reason: 'SERVICE_ISSUE',
    memo: 'The service was down for a day.',
    currency: 'eur',
    subtotal: '50',
    total_tax: '9.5',
    total_amount: '59.5',
    total_prepaid_credits_returned: '0',
    finalized_at: '2026-11-12T10:00:00Z',
    ...stamps,
    ...fields.note,
  };
  const lines = [
    { id: 'cn_line_1', display_name: 'API calls', amount: '40', tax_amount: '7.6', currency: 'eur' },
    { id: 'cn_line_2', display_name: 'Seats', amount: '10', tax_amount: '1.9', currency: 'eur' },
  ];
  const credited = { ...invoice, id: 'inv_1' };
  const parts = { note, lines, invoice: credited, taxes: fields.taxes ?? taxes, customer, seller };
  const { included_tax = new Decimal(0) } = fields;
  return { ...parts, included_tax, settings: whole, timezone } as unknown as CreditNoteDocumentInput;
}
