/** The parties of a document: their names and addresses. */
import { type AddressFields, type PostalAddress, toPostalAddress } from '../../catalog/customer/address.ts';
import type { Customer } from '../../catalog/customer/record.ts';
import type { DocumentLanguage } from './language.ts';
import type { Translations } from './translations.ts';

export type DocumentParty = { readonly label: string; readonly name: string; readonly lines: readonly string[] };

export type DocumentCustomer = Pick<Customer, 'name' | 'external_id' | 'email'> &
  AddressFields & {
    readonly tax_ids?: readonly string[];
    readonly tax_exempt?: Customer['tax_exempt'];
  };

export function buildReceiver(
  customer: DocumentCustomer,
  words: Translations,
  language: DocumentLanguage,
): DocumentParty {
  const address = formatAddress(toPostalAddress(customer), language);
  const tax_ids = (customer.tax_ids ?? []).map((id) => `${words.tax_id}: ${id}`);
  const lines = [...address, ...(customer.email ? [customer.email] : []), ...tax_ids];
  return { label: words.bill_to, name: customer.name || customer.external_id, lines };
}

type UnsetAddress = { readonly [Part in keyof PostalAddress]?: PostalAddress[Part] | null | undefined };

/** The country has a line of its own, as on a letter. */
export function formatAddress(address: UnsetAddress, language: DocumentLanguage): string[] {
  const { line1, line2, city, state, postal_code, country } = address;
  const place = [[postal_code, city].filter(Boolean).join(' '), state].filter(Boolean).join(', ');
  return [line1, line2, place, country ? formatCountry(country, language) : ''].flatMap((line) => line || []);
}

const names = new Map<DocumentLanguage, Intl.DisplayNames>();

/** Name of a country by its code of ISO 3166. Any other text is returned unchanged. */
function formatCountry(country: string, language: DocumentLanguage): string {
  if (!/^[A-Za-z]{2}$/.test(country)) return country;
  const known = names.get(language) ?? new Intl.DisplayNames(language, { type: 'region', fallback: 'code' });
  names.set(language, known);
  return known.of(country.toUpperCase()) ?? country;
}
