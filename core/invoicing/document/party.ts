/** The parties of a document: their names and addresses. */
import type { Customer } from '../../catalog/customer/record.ts';
import type { Language } from './language.ts';
import type { Translations } from './translations.ts';

export type DocumentParty = { readonly label: string; readonly name: string; readonly lines: readonly string[] };

type AddressPart = 'line1' | 'line2' | 'city' | 'state' | 'postal_code' | 'country';
type PostalAddress = Partial<Readonly<Record<AddressPart, string | null | undefined>>>;

export type DocumentCustomer = Pick<Customer, 'name' | 'external_id' | 'email' | `address_${AddressPart}`> & {
  readonly tax_ids?: readonly string[];
  readonly tax_exempt?: Customer['tax_exempt'];
};

export function buildReceiver(customer: DocumentCustomer, words: Translations, language: Language): DocumentParty {
  const address = formatAddress(
    {
      line1: customer.address_line1,
      line2: customer.address_line2,
      city: customer.address_city,
      state: customer.address_state,
      postal_code: customer.address_postal_code,
      country: customer.address_country,
    },
    language,
  );
  const tax_ids = (customer.tax_ids ?? []).map((id) => `${words.tax_id}: ${id}`);
  const lines = [...address, ...(customer.email ? [customer.email] : []), ...tax_ids];
  return { label: words.bill_to, name: customer.name || customer.external_id, lines };
}

/** The country has a line of its own, as on a letter. */
export function formatAddress(address: PostalAddress, language: Language): string[] {
  const { line1, line2, city, state, postal_code, country } = address;
  const place = [[postal_code, city].filter(Boolean).join(' '), state].filter(Boolean).join(', ');
  return [line1, line2, place, country ? formatCountry(country, language) : ''].flatMap((line) => line || []);
}

const names = new Map<Language, Intl.DisplayNames>();

/** Name of a country by its code of ISO 3166. Any other text is returned unchanged. */
function formatCountry(country: string, language: Language): string {
  if (!/^[A-Za-z]{2}$/.test(country)) return country;
  const known = names.get(language) ?? new Intl.DisplayNames(language, { type: 'region', fallback: 'code' });
  names.set(language, known);
  return known.of(country.toUpperCase()) ?? country;
}
