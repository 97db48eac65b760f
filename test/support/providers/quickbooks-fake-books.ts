/**
 * Records of one company in QuickBooks' fake, as its public documentation describes them (developer.intuit.com,
 * "Accounting API": Customer, Item, Invoice, Payment, CreditMemo, CompanyInfo, Preferences; "Query operations and
 * syntax"). Amounts are decimal texts.
 */
import { Decimal } from '../../../core/foundation/decimal.ts';

export type BookRecord = { Id: string; SyncToken: string; [field: string]: unknown };
type Line = { Amount: string; DetailType?: string; LinkedTxn?: Link[]; SalesItemLineDetail?: Detail };
type Link = { TxnId: string; TxnType: string };
type Detail = { ItemRef?: { value: string }; TaxCodeRef?: { value: string }; Qty?: string; UnitPrice?: string };

/** An error that the fake answers as a fault with this code. 610 is an unknown record, 5010 an outdated SyncToken. */
export class BookFault extends Error {
  readonly code: string;
  readonly detail: string;

  constructor(code: string, message: string, detail = message) {
    super(message);
    this.code = code;
    this.detail = detail;
  }
}

export class QuickBooksBooks {
  readonly realm_id = '4620816365037572030';
  readonly records = new Map<string, BookRecord>();
  /** Settings of the company. */
  country = 'US';
  home_currency = 'USD';
  has_multicurrency = true;
  applies_credits = false;
  /** Sales tax that is added to lines whose tax code is not NON. */
  tax_rate = '0.1';
  /** Number of decimals to which the company rounds amounts. */
  places = 18;
  #number = 0;

  list(name: string): BookRecord[] {
    return [...this.records].filter(([key]) => key.startsWith(`${name}:`)).map(([, record]) => record);
  }

  read(name: string, id: string): BookRecord {
    if (name === 'CompanyInfo')
      return { Id: '1', SyncToken: '0', CompanyName: 'Sandbox Company', Country: this.country };
    const record = this.records.get(`${name}:${id}`);
    if (record === undefined) throw new BookFault('610', 'Object Not Found', `Object Not Found : ${name} ${id}`);
    return record;
  }

  query(text: string): { name: string; records: BookRecord[] } {
    const parsed = /^select \* from (\w+)(?: where (.*?))? orderby Id startposition (\d+) maxresults (\d+)$/.exec(text);
    if (parsed === null) throw new BookFault('4000', 'Error parsing query', text);
    const [, name = '', where = '', start = '1', size = '1'] = parsed;
    if (name === 'Preferences')
      return {
        name,
        records: [{ Id: '1', SyncToken: '0', CurrencyPrefs: { HomeCurrency: { value: this.home_currency } } }],
      };
    const conditions = parseConditions(where);
    const active = conditions.some(({ field }) => field === 'Active') || name !== 'Customer';
    const found = this.list(name).filter(
      (record) => (active || record['Active'] !== false) && conditions.every((condition) => meets(record, condition)),
    );
    return { name, records: found.slice(Number(start) - 1, Number(start) - 1 + Number(size)) };
  }

  create(name: string, body: Record<string, unknown>): BookRecord {
    const Id = String(++this.#number);
    const record: BookRecord = { ...body, Id, SyncToken: '0', MetaData: { CreateTime: new Date().toISOString() } };
    if (name === 'Customer') this.#checkUnique('Customer', 'DisplayName', record);
    if (name === 'Item') this.#checkUnique('Item', 'Name', record);
    if (name === 'Invoice' || name === 'CreditMemo') this.#addSale(name, record);
    if (name === 'Payment') this.#applyPayment(record);
    this.records.set(`${name}:${Id}`, record);
    if (name === 'CreditMemo' && this.applies_credits) this.#applyCredit(record);
    return record;
  }

  end(name: string, operation: string, { Id, SyncToken }: BookRecord): BookRecord {
    const record = this.read(name, Id);
    if (record.SyncToken !== SyncToken) throw new BookFault('5010', 'Stale Object Error', 'Stale Object Error');
    const links = (record['LinkedTxn'] ?? []) as Link[];
    if (name !== 'Payment' && links.some(({ TxnType }) => TxnType === 'Payment'))
      throw new BookFault('6540', 'Deposited Transaction cannot be changed', 'linked to a payment');
    if (name === 'Payment') this.#release(record);
    if (operation === 'delete') this.records.delete(`${name}:${Id}`);
    else Object.assign(record, { TotalAmt: '0', Balance: '0', PrivateNote: `Voided - ${record['PrivateNote']}` });
    this.touch(record);
    return record;
  }

  /** Changes the record as if a person edited it in QuickBooks. */
  touch(record: BookRecord): void {
    record.SyncToken = String(Number(record.SyncToken) + 1);
  }

  #checkUnique(name: string, field: string, record: BookRecord): void {
    const same = this.list(name).find((other) => String(other[field]) === String(record[field]));
    if (same !== undefined)
      throw new BookFault('6240', 'Duplicate Name Exists Error', `The name supplied already exists. : Id=${same.Id}`);
    if (String(record[field]).length > 100) throw new BookFault('2050', 'String length is either shorter or longer');
  }

  #addSale(name: string, record: BookRecord): void {
    const number = record['DocNumber'];
    if (typeof number === 'string' && number.length > 21) throw new BookFault('2050', 'DocNumber is too long');
    if (number !== undefined && this.list(name).some((other) => other['DocNumber'] === number))
      throw new BookFault('6140', 'Duplicate Document Number Error', `DocNumber=${number} is assigned already`);
    this.#readCustomer(record);
    const lines = record['Line'] as Line[];
    let total = new Decimal(0);
    for (const line of lines) {
      const { ItemRef, Qty, UnitPrice, TaxCodeRef } = line.SalesItemLineDetail!;
      this.read('Item', ItemRef!.value);
      if (Qty !== undefined && !new Decimal(Qty).times(UnitPrice!).equals(line.Amount))
        throw new BookFault('6070', 'Amount is not equal to UnitPrice * Qty');
      if (this.country !== 'US' && TaxCodeRef) throw new BookFault('6000', 'Invalid tax code');
      line.Amount = new Decimal(line.Amount).toDecimalPlaces(this.places).toFixed();
      const isTaxed = this.country === 'US' && TaxCodeRef?.value !== 'NON';
      total = total.plus(line.Amount).plus(isTaxed ? new Decimal(line.Amount).times(this.tax_rate) : 0);
    }
    if (total.isNegative()) throw new BookFault('6000', 'Amount must be 0 or greater');
    record['Line'] = [...lines, { Amount: total.toFixed(), DetailType: 'SubTotalLineDetail' }];
    record['TotalAmt'] = record['Balance'] = total.toFixed();
    if (name === 'CreditMemo') record['RemainingCredit'] = total.toFixed();
  }

  #readCustomer(record: BookRecord): void {
    this.read('Customer', (record['CustomerRef'] as { value: string }).value);
    if (!this.has_multicurrency) delete record['CurrencyRef'];
  }

  #applyPayment(record: BookRecord): void {
    this.#readCustomer(record);
    const lines = (record['Line'] ?? []) as Line[];
    const linked = lines.map(({ Amount, LinkedTxn = [] }) => ({ Amount, ...LinkedTxn[0]! }));
    let applied = new Decimal(0);
    for (const { Amount, TxnId, TxnType } of linked) {
      const rest = TxnType === 'Invoice' ? 'Balance' : 'RemainingCredit';
      if (new Decimal(Amount).greaterThan(String(this.read(TxnType, TxnId)[rest])))
        throw new BookFault('6000', 'A business validation error has occurred', 'The amount exceeds what is open');
      applied = TxnType === 'Invoice' ? applied.plus(Amount) : applied.minus(Amount);
    }
    const unapplied = new Decimal(String(record['TotalAmt'])).minus(applied);
    if (unapplied.isNegative())
      throw new BookFault('6000', 'A business validation error has occurred', 'too much applied');
    record['UnappliedAmt'] = unapplied.toFixed();
    for (const { Amount, TxnId, TxnType } of linked) this.#link(this.read(TxnType, TxnId), record.Id, Amount, TxnType);
  }

  #link(target: BookRecord, payment_id: string, amount: string, type: string): void {
    const rest = type === 'Invoice' ? 'Balance' : 'RemainingCredit';
    target[rest] = new Decimal(String(target[rest])).minus(amount).toFixed();
    target['LinkedTxn'] = [...((target['LinkedTxn'] ?? []) as Link[]), { TxnId: payment_id, TxnType: 'Payment' }];
    this.touch(target);
  }

  #release(payment: BookRecord): void {
    for (const { Amount, LinkedTxn = [] } of (payment['Line'] ?? []) as Line[]) {
      const { TxnId, TxnType } = LinkedTxn[0]!;
      const target = this.read(TxnType, TxnId);
      const rest = TxnType === 'Invoice' ? 'Balance' : 'RemainingCredit';
      target[rest] = new Decimal(String(target[rest])).plus(Amount).toFixed();
      target['LinkedTxn'] = ((target['LinkedTxn'] ?? []) as Link[]).filter((link) => link.TxnId !== payment.Id);
      this.touch(target);
    }
  }

  /** Applies a credit to the customer's oldest invoice, as QuickBooks does by a setting of the company. */
  #applyCredit(memo: BookRecord): void {
    const { value } = memo['CustomerRef'] as { value: string };
    const invoice = this.list('Invoice').find((one) => (one['CustomerRef'] as { value: string }).value === value)!;
    const Amount = String(memo['RemainingCredit']);
    const toLine = (TxnType: string, TxnId: string) => ({ Amount, LinkedTxn: [{ TxnId, TxnType }] });
    this.create('Payment', {
      CustomerRef: { value },
      TotalAmt: '0',
      Line: [toLine('Invoice', invoice.Id), toLine('CreditMemo', memo.Id)],
    });
  }
}

type Condition = { field: string; operator: string; value: string };

/** Parses `Field = 'text' and Field >= 'text' and Field in (true, false)`; a backslash escapes a quote. */
function parseConditions(where: string): Condition[] {
  const conditions: Condition[] = [];
  for (let rest = where; rest !== ''; ) {
    const parsed = /^([\w.]+) (=|>=|in) (?:'((?:[^'\\]|\\.)*)'|(\(true, false\)))(?: and |$)/.exec(rest);
    if (parsed === null) throw new BookFault('4000', 'Error parsing query', rest);
    const [all, field = '', operator = '', text = '', list] = parsed;
    conditions.push({ field, operator, value: list ?? text.replace(/\\(.)/g, '$1') });
    rest = rest.slice(all.length);
  }
  return conditions;
}

const QUERIED = ['DisplayName', 'Name', 'DocNumber', 'CustomerRef', 'MetaData.CreateTime', 'Active'];

function meets(record: BookRecord, { field, operator, value }: Condition): boolean {
  if (!QUERIED.includes(field)) throw new BookFault('4001', 'Invalid query', `${field} is not queryable`);
  if (operator === 'in') return true;
  const found = field.split('.').reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], record);
  const text = typeof found === 'object' ? (found as { value: string }).value : String(found);
  return operator === '=' ? text === value : Date.parse(text) >= Date.parse(value);
}
