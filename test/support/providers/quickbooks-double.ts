import type { PushedEntityType } from '../../../core/platform/integration/pushed-events.ts';
import {
  type CallFailure,
  findPattern,
  type InvoiceCopy,
  type ProviderDouble,
  type RequestPatterns,
  type SignedWebhook,
} from './provider-double.ts';
import { QuickBooksFake, signIntuitBody } from './quickbooks-fake.ts';
import type { BookRecord } from './quickbooks-fake-books.ts';

const REQUESTS: RequestPatterns = {
  customer: /^POST customer$/,
  invoice: /^POST invoice$/,
  payment: /^POST payment$/,
  credit_note: /^POST creditmemo$/,
  read: /^GET invoice\/\w+$/,
};

type Change = { readonly name: string; readonly id: string; readonly operation: string };

export class QuickBooksDouble implements ProviderDouble {
  readonly provider_type = 'quickbooks';
  readonly currency = 'usd';
  readonly fake = new QuickBooksFake();
  readonly #changes: Change[] = [];
  #count = 0;

  get secrets() {
    const { access_token, refresh_token, secrets } = this.fake;
    return { ...secrets, access_token, refresh_token };
  }

  disturb(request: PushedEntityType | 'read', failure: CallFailure): void {
    this.fake.disturb(findPattern(REQUESTS, request), failure === 'fault' ? 'unavailable' : failure);
  }

  hold(request: PushedEntityType): ReturnType<QuickBooksFake['hold']> {
    return this.fake.hold(findPattern(REQUESTS, request));
  }

  listCustomers(customer_id: string): string[] {
    const customers = this.fake.books.list('Customer');
    return customers.filter(({ Notes }) => Notes === `Farthing customer ${customer_id}`).map(({ Id }) => Id);
  }

  listCopies(invoice_id: string): InvoiceCopy[] {
    return this.#list('Invoice', `invoice ${invoice_id}`).map((invoice) => {
      const { Id: id, Balance, PrivateNote } = invoice;
      const remaining = String(Balance);
      const isVoid = String(PrivateNote).startsWith('Voided');
      return { id, status: isVoid ? 'void' : remaining === '0' ? 'paid' : 'open', remaining };
    });
  }

  listSentPayments(payment_id: string): string[] {
    return this.#list('Payment', `payment ${payment_id}`).map(({ TotalAmt }) => String(TotalAmt));
  }

  listSentNotes(credit_note_id: string): string[] {
    return this.#list('CreditMemo', `credit note ${credit_note_id}`).map(({ TotalAmt }) => String(TotalAmt));
  }

  payCopy(copy_id: string): string {
    const { Balance, CustomerRef } = this.fake.books.read('Invoice', copy_id);
    const { Id: id } = this.fake.books.create('Payment', {
      ...{ CustomerRef, TotalAmt: Balance, TxnDate: '2026-11-29' },
      Line: [{ Amount: Balance, LinkedTxn: [{ TxnId: copy_id, TxnType: 'Invoice' }] }],
    });
    this.#changes.push({ name: 'payment', id, operation: 'created' });
    return id;
  }

  voidCopy(copy_id: string): void {
    this.fake.books.end('Invoice', 'void', this.fake.books.read('Invoice', copy_id));
    this.#changes.push({ name: 'invoice', id: copy_id, operation: 'voided' });
  }

  /** A bookkeeper makes a credit memo and applies it by a payment of 0. */
  creditCopy(copy_id: string, Amount: string): string {
    const { books } = this.fake;
    const { CustomerRef, Line } = books.read('Invoice', copy_id);
    const [{ SalesItemLineDetail }] = Line as [{ SalesItemLineDetail: object }];
    const memo = books.create('CreditMemo', { CustomerRef, Line: [{ Amount, SalesItemLineDetail }] });
    const toLine = (TxnType: string, TxnId: string) => ({ Amount, LinkedTxn: [{ TxnId, TxnType }] });
    const links = [toLine('Invoice', copy_id), toLine('CreditMemo', memo.Id)];
    const { Id: id } = books.create('Payment', { CustomerRef, TotalAmt: '0', Line: links });
    this.#changes.push({ name: 'payment', id, operation: 'created' });
    return memo.Id;
  }

  editCopy(copy_id: string, total: string): void {
    const invoice = this.fake.books.read('Invoice', copy_id);
    const change = Number(total) - Number(invoice['TotalAmt']);
    Object.assign(invoice, { TotalAmt: total, Balance: String(Number(invoice['Balance']) + change) });
    this.fake.books.touch(invoice);
    this.#changes.push({ name: 'invoice', id: copy_id, operation: 'updated' });
  }

  editPayment(id: string, amount: string): void {
    const payment = this.fake.books.read('Payment', id);
    const [line] = payment['Line'] as [{ Amount: string; LinkedTxn: [{ TxnId: string }] }];
    const invoice = this.fake.books.read('Invoice', line.LinkedTxn[0].TxnId);
    invoice['Balance'] = String(Number(invoice['Balance']) + Number(line.Amount) - Number(amount));
    Object.assign(payment, { TotalAmt: amount });
    line.Amount = amount;
    this.fake.books.touch(payment);
    this.#changes.push({ name: 'payment', id, operation: 'updated' });
  }

  /** A bookkeeper deletes the payment, so the invoice is due again. */
  deletePayment(id: string): void {
    this.fake.books.end('Payment', 'delete', this.fake.books.read('Payment', id));
    this.#changes.push({ name: 'payment', id, operation: 'deleted' });
  }

  /** A company without multicurrency accepts only its own currency. */
  alterInvoices(isAltered: boolean): void {
    this.fake.books.has_multicurrency = !isAltered;
    this.fake.books.home_currency = isAltered ? 'EUR' : 'USD';
  }

  forgetKeys(): void {
    this.fake.forgetRequestIds();
  }

  readonly unused_events = ['qbo.customer.updated.v1', 'qbo.creditmemo.created.v1', 'qbo.account.updated.v1'];

  buildWebhook(type: string): object {
    return [{ id: '1', type, intuitentityid: '7', intuitaccountid: '9' }];
  }

  /** QuickBooks offers operations per record, and its page names both in a sentence. */
  listNamedEvents(section: string): string[] {
    const [, operations = '', records = ''] =
      /events ([\w, ]+) of ([\w ]+)\./.exec(section.replaceAll('\n', ' ')) ?? [];
    return records
      .split(' and ')
      .flatMap((record) =>
        operations.split(/, | and /).map((one) => `qbo.${record}.${one.replace(/e?$/, 'ed')}.v1`.toLowerCase()),
      );
  }

  takeWebhooks(): SignedWebhook[] {
    return this.#changes.splice(0).map(({ name, id, operation }) => {
      const event = {
        specversion: '1.0',
        id: `event-${++this.#count}`,
        type: `qbo.${name}.${operation}.v1`,
        time: new Date().toISOString(),
        intuitentityid: id,
        intuitaccountid: this.fake.books.realm_id,
      };
      const body = JSON.stringify([event]);
      return { body, headers: { 'intuit-signature': signIntuitBody(body, 'verifier') } };
    });
  }

  #list(name: string, note: string): BookRecord[] {
    return this.fake.books.list(name).filter(({ PrivateNote }) => String(PrivateNote).endsWith(`Farthing ${note}`));
  }
}
