/**
 * Records of one organisation in Xero's fake, as its public documentation describes them (developer.xero.com, "Accounting API": Contacts,
 * Invoices, Credit notes, Payments, Organisation; "Requests and responses", filters and paging). Amounts are decimal texts.
 */
import { randomUUID } from 'node:crypto';
import { Decimal } from '../../../core/foundation/decimal.ts';

export type BookEntry = { [field: string]: unknown };
type Line = {
  Description?: string;
  Quantity?: string;
  UnitAmount?: string;
  LineAmount: string;
  [field: string]: unknown;
};
type Payment = BookEntry & { PaymentID: string; Amount: string; Status: string; target: BookDocument };
type Allocation = { AllocationID: string; Amount: string; Date: string; invoice: BookDocument; note: BookDocument };
export type BookDocument = BookEntry & {
  id: string;
  Status: string;
  Total: string;
  LineItems: Line[];
  Contact: { ContactID: string };
  updated: number;
};
export type DocumentKind = 'Invoices' | 'CreditNotes';

/** An answer with status 400 and this message, or 404 if the record is missing. */
export class BookRefusal extends Error {
  readonly status: number;

  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

const KINDS = {
  Invoices: { id: 'InvoiceID', number: 'InvoiceNumber', type: 'ACCREC', prefix: 'INV-' },
  CreditNotes: { id: 'CreditNoteID', number: 'CreditNoteNumber', type: 'ACCRECCREDIT', prefix: 'CN-' },
} as const;
const MOVES: Readonly<Record<string, readonly string[]>> = {
  DRAFT: ['DRAFT', 'SUBMITTED', 'AUTHORISED', 'DELETED'],
  SUBMITTED: ['DRAFT', 'SUBMITTED', 'AUTHORISED', 'DELETED'],
  AUTHORISED: ['AUTHORISED', 'VOIDED'],
};
const DAY_MS = 86_400_000;

export class XeroBooks {
  readonly tenant_id = randomUUID();
  readonly contacts: BookEntry[] = [];
  readonly documents: Readonly<Record<DocumentKind, BookDocument[]>> = { Invoices: [], CreditNotes: [] };
  readonly payments: Payment[] = [];
  readonly allocations: Allocation[] = [];
  /** Prepayments and overpayments that are applied to an invoice. */
  readonly applied: { kind: 'Prepayments' | 'Overpayments'; id: string; amount: string; invoice: BookDocument }[] = [];
  /** Settings of the organisation. */
  currencies = ['USD', 'EUR', 'JPY', 'KWD'];
  accounts = [
    { AccountID: randomUUID(), Code: '200', Type: 'REVENUE', EnablePaymentsToAccount: false },
    { AccountID: randomUUID(), Code: '090', Type: 'BANK', EnablePaymentsToAccount: true },
  ];
  /** Amount that another app of the organisation adds to new drafts; null without one. */
  surcharge: string | null = null;
  /** Invoices in the order of their changes, of which webhooks tell. */
  readonly changes: { id: string; type: 'CREATE' | 'UPDATE'; at: Date }[] = [];
  #number = 0;

  createContact(body: BookEntry): BookEntry {
    const { Name, ContactNumber } = body;
    if (typeof Name !== 'string' || Name === '') throw new BookRefusal('The Contact Name cannot be empty.');
    const active = this.contacts.filter(({ ContactStatus }) => ContactStatus === 'ACTIVE');
    if (active.some((one) => String(one['Name']).toLowerCase() === Name.toLowerCase()))
      throw new BookRefusal(
        `The contact name ${Name} is already assigned to another contact. The contact name must be unique across all active contacts.`,
      );
    if (ContactNumber !== undefined && this.contacts.some((one) => one['ContactNumber'] === ContactNumber))
      throw new BookRefusal(`The contact number ${ContactNumber} is already assigned to another contact.`);
    const contact = { ContactID: randomUUID(), ContactStatus: 'ACTIVE', ...body };
    this.contacts.push(contact);
    return contact;
  }

  readContact(id: string): BookEntry {
    const found = this.contacts.find(({ ContactID, ContactNumber }) => ContactID === id || ContactNumber === id);
    if (found === undefined) throw new BookRefusal('The resource cannot be found', 404);
    return found;
  }

  createDocument(kind: DocumentKind, body: BookEntry, places = 2): BookDocument {
    const { id, number, type, prefix } = KINDS[kind];
    if (body['Type'] !== type) throw new BookRefusal(`Type ${body['Type']} is not supported by this fake`);
    const { ContactID } = (body['Contact'] ?? {}) as { ContactID?: string };
    const contact = this.contacts.find((one) => one['ContactID'] === ContactID);
    if (contact === undefined || contact['ContactStatus'] !== 'ACTIVE')
      throw new BookRefusal('The Contact must exist and be active');
    const code = (body['CurrencyCode'] ?? this.currencies[0]) as string;
    if (!this.currencies.includes(code)) throw new BookRefusal(`Organisation is not subscribed to currency ${code}`);
    const given = body[number] ?? `${prefix}${++this.#number}`;
    const isTaken = this.documents[kind].some(
      (one) => one[number] === given && !['VOIDED', 'DELETED'].includes(one.Status),
    );
    if (isTaken) throw new BookRefusal(kind === 'Invoices' ? 'Invoice # must be unique.' : 'Note # must be unique.');
    const document = {
      LineAmountTypes: 'Exclusive',
      Date: new Date().toISOString().slice(0, 10),
      ...body,
      id: randomUUID(),
      CurrencyCode: code,
      [number]: given,
      Contact: { ContactID: ContactID!, Name: contact['Name'] },
      updated: Date.now(),
    } as unknown as BookDocument;
    document[id] = document.id;
    this.#setLines(document, (body['LineItems'] ?? []) as Line[], places);
    document.Status = (body['Status'] ?? 'DRAFT') as string;
    this.#checkAuthorised(document);
    this.documents[kind].push(document);
    if (kind === 'Invoices') this.changes.push({ id: document.id, type: 'CREATE', at: new Date() });
    return document;
  }

  readDocument(kind: DocumentKind, id: string): BookDocument {
    const found = this.documents[kind].find((one) => one.id === id || one[KINDS[kind].number] === id);
    if (found === undefined) throw new BookRefusal('The resource cannot be found', 404);
    return found;
  }

  updateDocument(kind: DocumentKind, id: string, body: BookEntry): BookDocument {
    const document = this.readDocument(kind, id);
    const { Status = document.Status, LineItems, ...others } = body as Partial<BookDocument>;
    if (!MOVES[document.Status]?.includes(Status))
      throw new BookRefusal(`Invoice not of valid status for modification: ${document.Status} to ${Status}`);
    const isApplied = !this.sumPaid(document).isZero() || !this.sumCredited(document).isZero();
    if (Status === 'VOIDED' && isApplied)
      throw new BookRefusal('This document cannot be edited as it has a payment or credit note allocated to it.');
    Object.assign(document, others, { Status });
    if (LineItems !== undefined) this.#setLines(document, LineItems, 2);
    this.#checkAuthorised(document);
    this.touch(document);
    return document;
  }

  createPayment(body: BookEntry): Payment {
    const { Invoice, CreditNote, Account, Amount } = body as {
      Invoice?: { InvoiceID: string };
      CreditNote?: { CreditNoteID: string };
      Account?: { Code?: string; AccountID?: string };
      Amount: string;
    };
    const target = Invoice
      ? this.readDocument('Invoices', Invoice.InvoiceID)
      : this.readDocument('CreditNotes', CreditNote?.CreditNoteID ?? '');
    const account = this.accounts.find(
      ({ Code, AccountID }) => Code === Account?.Code || AccountID === Account?.AccountID,
    );
    if (!account?.EnablePaymentsToAccount)
      throw new BookRefusal('Account code/ID is not a valid code for this document.');
    if (target.Status !== 'AUTHORISED') throw new BookRefusal('Payments can only be made against Authorised documents');
    if (new Decimal(Amount).lte(0)) throw new BookRefusal('Payment amount must be greater than 0');
    if (new Decimal(Amount).greaterThan(this.computeRest(target)))
      throw new BookRefusal('Payment amount exceeds the amount outstanding on this document');
    const payment = { ...body, PaymentID: randomUUID(), Amount, Status: 'AUTHORISED', target, ...{ Account: account } };
    this.payments.push(payment);
    this.#settle(target);
    return payment;
  }

  readPayment(id: string): Payment {
    const found = this.payments.find(({ PaymentID }) => PaymentID === id);
    if (found === undefined) throw new BookRefusal('The resource cannot be found', 404);
    return found;
  }

  deletePayment(id: string): Payment {
    const payment = this.readPayment(id);
    if (payment.Status === 'DELETED') throw new BookRefusal('Payment has already been deleted');
    payment.Status = 'DELETED';
    this.#settle(payment.target);
    return payment;
  }

  allocate(credit_note_id: string, { Amount, Date: day, Invoice }: BookEntry): Allocation {
    const note = this.readDocument('CreditNotes', credit_note_id);
    const invoice = this.readDocument('Invoices', (Invoice as { InvoiceID: string }).InvoiceID);
    if (note.Status !== 'AUTHORISED' || invoice.Status !== 'AUTHORISED')
      throw new BookRefusal('Allocations need authorised documents');
    const amount = new Decimal(String(Amount));
    if (amount.greaterThan(this.computeRest(note)) || amount.greaterThan(this.computeRest(invoice)))
      throw new BookRefusal('Allocation amount exceeds the amount outstanding');
    if (note['CurrencyCode'] !== invoice['CurrencyCode']) throw new BookRefusal('The currencies differ');
    const made = { AllocationID: randomUUID(), Amount: amount.toFixed(), Date: String(day), invoice, note };
    this.allocations.push(made);
    this.#settle(note);
    this.#settle(invoice);
    return made;
  }

  deleteAllocation(credit_note_id: string, id: string): Allocation {
    const index = this.allocations.findIndex(
      ({ AllocationID, note }) => AllocationID === id && note.id === credit_note_id,
    );
    if (index === -1) throw new BookRefusal('The resource cannot be found', 404);
    const [removed] = this.allocations.splice(index, 1) as [Allocation];
    this.#settle(removed.note);
    this.#settle(removed.invoice);
    return removed;
  }

  /** A customer paid in advance, and a bookkeeper applies a part of it to the invoice. */
  applyAdvance(
    kind: 'Prepayments' | 'Overpayments',
    invoice_id: string,
    amount: string,
    id: string = randomUUID(),
  ): string {
    const invoice = this.readDocument('Invoices', invoice_id);
    this.applied.push({ kind, id, amount, invoice });
    this.#settle(invoice);
    return id;
  }

  listPayments(document: BookDocument): Payment[] {
    return this.payments.filter(({ target, Status }) => target === document && Status !== 'DELETED');
  }

  sumPaid(document: BookDocument): Decimal {
    return this.listPayments(document).reduce((sum, { Amount }) => sum.plus(Amount), new Decimal(0));
  }

  sumCredited(document: BookDocument): Decimal {
    const applied = [
      ...this.allocations
        .filter(({ invoice, note }) => invoice === document || note === document)
        .map((one) => one.Amount),
      ...this.applied.filter(({ invoice }) => invoice === document).map(({ amount }) => amount),
    ];
    return applied.reduce((sum, amount) => sum.plus(amount), new Decimal(0));
  }

  /** Amount of an invoice that is due, or of a credit note that can still be applied. */
  computeRest(document: BookDocument): Decimal {
    return new Decimal(document.Total).minus(this.sumPaid(document)).minus(this.sumCredited(document));
  }

  /** Records a change, as if a person made it in Xero. */
  touch(document: BookDocument): void {
    document.updated = Date.now();
    if (this.documents.Invoices.includes(document))
      this.changes.push({ id: document.id, type: 'UPDATE', at: new Date() });
  }

  #setLines(document: BookDocument, lines: readonly Line[], places: number): void {
    const added: readonly Partial<Line>[] =
      this.surcharge === null ? [] : [{ Description: 'Surcharge', UnitAmount: this.surcharge }];
    document.LineItems = [...lines, ...added].map(({ Quantity = '1', UnitAmount = '0', ...line }) => {
      if (!line.Description) throw new BookRefusal('Description needs to be at least 1 character');
      const unit = new Decimal(UnitAmount).toDecimalPlaces(places);
      const LineAmount = unit.times(Quantity).toDecimalPlaces(2).toFixed();
      const isTaxed = document['LineAmountTypes'] !== 'NoTax';
      const TaxAmount = isTaxed ? new Decimal(LineAmount).times('0.15').toDecimalPlaces(2).toFixed() : '0';
      return { ...line, Quantity, UnitAmount: unit.toFixed(), LineAmount, TaxAmount, LineItemID: randomUUID() };
    });
    const sum = (field: 'LineAmount' | 'TaxAmount') =>
      document.LineItems.reduce((total, line) => total.plus(String(line[field])), new Decimal(0));
    document['SubTotal'] = sum('LineAmount').toFixed();
    document['TotalTax'] = sum('TaxAmount').toFixed();
    document.Total = sum('LineAmount').plus(sum('TaxAmount')).toFixed();
    if (new Decimal(document.Total).isNegative())
      throw new BookRefusal('The document total must be greater than or equal to zero');
  }

  #checkAuthorised(document: BookDocument): void {
    if (document.Status !== 'AUTHORISED') return;
    const isInvoice = document['Type'] === 'ACCREC';
    if (isInvoice && document['DueDate'] === undefined) throw new BookRefusal('Due Date cannot be empty');
    for (const line of document.LineItems) {
      const account = this.accounts.find(
        ({ Code, AccountID }) => Code === line['AccountCode'] || AccountID === line['AccountID'],
      );
      if (account === undefined)
        throw new BookRefusal('Account code must be specified and valid for an authorised document');
    }
    this.#settle(document);
  }

  #settle(document: BookDocument): void {
    if (document.Status === 'AUTHORISED' || document.Status === 'PAID')
      document.Status = this.computeRest(document).isZero() ? 'PAID' : 'AUTHORISED';
    if (this.documents.Invoices.includes(document)) this.touch(document);
    document.updated = Date.now();
  }
}

/** The form of a day in answers. */
export function toXeroDate(day: string): string {
  return `/Date(${Math.floor(Date.parse(`${day.slice(0, 10)}T00:00:00Z`) / DAY_MS) * DAY_MS}+0000)/`;
}
