/** Texts of documents. A language is a file in translations/ and an entry in language.ts. */

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
  /** Precedes the name of a tax that the amounts include. */
  readonly included: string;
  /** Note for an invoice whose customer owes the tax to the state. */
  readonly reverse_charge: string;
  readonly total: string;
  readonly adjusted: string;
  /** Label of the amount paid by credits that include tax. */
  readonly credits_after_tax: string;
  readonly paid: string;
  readonly to_pay: string;
  readonly refunded: string;
  readonly correction: string;
  /** Title of a credit note, and the labels of its number and date. */
  readonly credit_note: string;
  readonly credit_note_number: string;
  readonly issued: string;
  readonly credited: string;
  readonly credits_returned: string;
  /** Label of the credited amount that lowers the amount due. */
  readonly off_invoice: string;
  /** Label of the credited amount that goes to the wallet. */
  readonly to_balance: string;
  readonly units: string;
  /** Precedes the number of units per package. */
  readonly packages: string;
  readonly days: string;
  /** Label of the amount that other invoices billed for the charge. */
  readonly invoiced_before: string;
  readonly before_commitment: string;
  /** Follows the number of groups that are not listed individually. */
  readonly others: string;
  readonly page: string;
  readonly of: string;
  readonly not_shown: string;
  /** E-mail texts. Placeholders: `{}` is the invoice number, `{amount}` the amount, `{due}` the due date. */
  readonly letter_new: string;
  readonly letter_reminder: string;
  readonly letter_pay_until: string;
  readonly letter_nothing: string;
};
