/** The settings of documents as the console edits them, and the texts of its forms as the records that the API takes. */
import type { components } from '../../client/openapi.d.ts';

export type TenantRecord = components['schemas']['TenantResponse'];
export type TenantBody = components['schemas']['UpdateTenantRequest'];

export type SellerRecord = {
  name: string;
  lines: string[];
  tax_id: string | null;
  email: string | null;
  website: string | null;
};
export type PdfConfig = {
  language: string;
  color: string;
  page_size: 'A4' | 'LETTER';
  logo: string | null;
  company: SellerRecord | null;
  payment_instructions: string | null;
  notes: string | null;
};
export type InvoiceConfig = {
  prefix: string;
  separator: string;
  format: string;
  suffix_length: number;
  start_sequence: number;
  timezone: string;
  due_date_days: number;
  finalization_delay_seconds: number;
};

/** The texts of the form of company and seller. An empty text is no value. */
export type CompanyDraft = {
  name: string;
  email: string;
  help_email: string;
  phone: string;
  address_line1: string;
  address_line2: string;
  address_postal_code: string;
  address_city: string;
  address_state: string;
  address_country: string;
  /** Whether documents name a seller of their own instead of the company. */
  has_seller: boolean;
  seller_name: string;
  seller_lines: string;
  tax_id: string;
  seller_email: string;
  website: string;
  language: string;
  color: string;
  page_size: 'A4' | 'LETTER';
  logo: string | null;
  payment_instructions: string;
  notes: string;
};

export function toCompanyDraft(tenant: TenantRecord, pdf: PdfConfig): CompanyDraft {
  const { email, help_email, phone, address } = tenant.billing_details ?? {};
  return {
    name: tenant.name,
    email: email ?? '',
    help_email: help_email ?? '',
    phone: phone ?? '',
    address_line1: address?.address_line1 ?? '',
    address_line2: address?.address_line2 ?? '',
    address_postal_code: address?.address_postal_code ?? '',
    address_city: address?.address_city ?? '',
    address_state: address?.address_state ?? '',
    address_country: address?.address_country ?? '',
    has_seller: pdf.company !== null,
    seller_name: pdf.company?.name ?? '',
    seller_lines: pdf.company?.lines.join('\n') ?? '',
    tax_id: pdf.company?.tax_id ?? '',
    seller_email: pdf.company?.email ?? '',
    website: pdf.company?.website ?? '',
    language: pdf.language,
    color: pdf.color,
    page_size: pdf.page_size,
    logo: pdf.logo,
    payment_instructions: pdf.payment_instructions ?? '',
    notes: pdf.notes ?? '',
  };
}

/** A seller of its own begins with the name and the address of the company. */
export function fillSeller(draft: CompanyDraft): CompanyDraft {
  if (draft.seller_name !== '' || draft.seller_lines !== '') return { ...draft, has_seller: true };
  return {
    ...draft,
    has_seller: true,
    seller_name: draft.name,
    seller_lines: listAddressLines(draft).join('\n'),
    seller_email: draft.email,
  };
}

export function listAddressLines(draft: CompanyDraft): string[] {
  const town = [draft.address_postal_code, draft.address_city].filter((part) => part !== '').join(' ');
  return [
    draft.address_line1,
    draft.address_line2,
    town,
    draft.address_state,
    draft.address_country.toUpperCase(),
  ].filter((line) => line !== '');
}

export function toTenantBody(draft: CompanyDraft): TenantBody {
  const { email, help_email, phone } = draft;
  return {
    name: draft.name,
    billing_details: {
      email: toValue(email),
      help_email: toValue(help_email),
      phone: toValue(phone),
      address: {
        address_line1: toValue(draft.address_line1),
        address_line2: toValue(draft.address_line2),
        address_postal_code: toValue(draft.address_postal_code),
        address_city: toValue(draft.address_city),
        address_state: toValue(draft.address_state),
        address_country: toValue(draft.address_country),
      },
    },
  };
}

/** The fields of `invoice_pdf_config` that the form has; null restores a default. */
export function toPdfConfig(draft: CompanyDraft): PdfConfig {
  return {
    language: draft.language,
    color: draft.color,
    page_size: draft.page_size,
    logo: draft.logo,
    company: draft.has_seller
      ? {
          name: draft.seller_name,
          lines: draft.seller_lines
            .split('\n')
            .map((line) => line.trim())
            .filter((line) => line !== ''),
          tax_id: toValue(draft.tax_id),
          email: toValue(draft.seller_email),
          website: toValue(draft.website),
        }
      : null,
    payment_instructions: toValue(draft.payment_instructions),
    notes: toValue(draft.notes),
  };
}

function toValue(text: string): string | null {
  const trimmed = text.trim();
  return trimmed === '' ? null : trimmed;
}

/** The field of the form for a field of the API that an error names. */
export function findDraftField(field: string): string {
  const name = field.replace(/^(value|invoice_pdf_config|tenant|billing_details|address)\./, '');
  if (name !== field) return findDraftField(name);
  if (/^company\.lines/.test(name)) return 'seller_lines';
  if (name === 'company.name') return 'seller_name';
  if (name === 'company.email') return 'seller_email';
  return name.replace(/^company\./, '').replace(/\..*$/, '');
}

/** A whole number. Any other text is sent as it is, so that the service refuses it and names its field. */
export function toWholeNumber(text: string): number | string {
  return /^\d{1,15}$/.test(text.trim()) ? Number(text) : text;
}
