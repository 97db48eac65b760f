/** The postal address of a customer without the prefix of its fields (docs/rules/records.md, "Customers"). */
import type { Customer } from './record.ts';

type AddressPart = 'line1' | 'line2' | 'city' | 'state' | 'postal_code' | 'country';
export type PostalAddress = Readonly<Record<AddressPart, string>>;
export type AddressFields = Pick<Customer, `address_${AddressPart}`>;

export function toPostalAddress(customer: AddressFields): PostalAddress {
  return {
    line1: customer.address_line1,
    line2: customer.address_line2,
    city: customer.address_city,
    state: customer.address_state,
    postal_code: customer.address_postal_code,
    country: customer.address_country,
  };
}
