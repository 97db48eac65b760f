/** The fields of a customer as the form edits them, and as the API takes them. */
import type { components } from '../../client/openapi.d.ts';
import type { CustomerRecord } from './customer.ts';

export const TAX_STATES = ['none', 'exempt', 'reverse'] as const;
export type TaxNumber = { readonly type: string; readonly value: string };
export type TextField = (typeof TEXT_FIELDS)[number];
export type CustomerDraft = { readonly [Field in TextField]: string } & {
  readonly tax_exempt: (typeof TAX_STATES)[number];
  readonly tax_ids: readonly TaxNumber[];
};

export const TEXT_FIELDS = [
  'external_id',
  'name',
  'email',
  'contact',
  'address_line1',
  'address_line2',
  'address_postal_code',
  'address_city',
  'address_state',
  'address_country',
  'timezone',
] as const;

type CustomerBody = components['schemas']['UpdateCustomerRequest'];

export function toDraft(customer: CustomerRecord | undefined): CustomerDraft {
  const texts = Object.fromEntries(TEXT_FIELDS.map((field) => [field, customer?.[field] ?? '']));
  return {
    ...(texts as Record<TextField, string>),
    timezone: customer?.timezone ?? 'UTC',
    tax_exempt: customer?.tax_exempt ?? 'none',
    tax_ids: customer?.tax_ids ?? [],
  };
}

/** Only fields that differ from the record: what the form does not change, it does not send. */
export function toBody(draft: CustomerDraft, customer: CustomerRecord | undefined): CustomerBody {
  const before = toDraft(customer);
  const tax_ids = draft.tax_ids.filter(({ type, value }) => type.trim() !== '' || value.trim() !== '');
  const texts = TEXT_FIELDS.filter((field) => draft[field] !== before[field]).map((field) => [
    field,
    field === 'address_country' ? draft[field].trim().toUpperCase() || null : draft[field].trim(),
  ]);
  return {
    ...(Object.fromEntries(texts) as CustomerBody),
    ...(draft.tax_exempt === before.tax_exempt ? {} : { tax_exempt: draft.tax_exempt }),
    ...(JSON.stringify(tax_ids) === JSON.stringify(before.tax_ids) ? {} : { tax_ids: [...tax_ids] }),
  };
}
