/** The words of an invoice. A language is a file in words/ and a line in language.ts. */

export type Translations = {
  readonly invoice: string;
  readonly credit_invoice: string;
  readonly draft: string;
  readonly voided: string;
  readonly number: string;
  readonly date: string;
  readonly due: string;
  readonly period: string;
  readonly from: string;
  readonly bill_to: string;
  readonly tax_id: string;
  readonly description: string;
  readonly quantity: string;
  readonly unit_price: string;
  readonly amount: string;
  readonly discount: string;
  readonly subtotal: string;
  readonly credits: string;
  readonly tax: string;
  /** Before the name of a tax that is in the amounts already. */
  readonly included: string;
  /** Said where the customer owes the tax to the state. */
  readonly reverse_charge: string;
  readonly total: string;
  readonly adjusted: string;
  /** Label of the amount that earlier invoices gave back with its tax. */
  readonly credits_after_tax: string;
  readonly paid: string;
  readonly to_pay: string;
  readonly refunded: string;
  readonly correction: string;
  readonly units: string;
  /** Before the number of units that a package has. */
  readonly packages: string;
  readonly days: string;
  /** Of a charge what other invoices have said of it. */
  readonly invoiced_before: string;
  readonly before_commitment: string;
  /** Groups of usage that are not told one by one. */
  readonly others: string;
  readonly page: string;
  readonly of: string;
  readonly not_shown: string;
  /** Of letters that bring an invoice. `{}` is its number, `{due}` its day. */
  readonly letter_new: string;
  readonly letter_reminder: string;
  readonly letter_pay_until: string;
  readonly letter_nothing: string;
};
