/**
 * Adjustments of Paddle's fake (developer.paddle.com/api-reference/adjustments, /build/transactions/create-transaction-adjustments;
 * /changelog/2025/tax-exclusive-refunds; the refusals below /errors/adjustments). An issued invoice that is credited in
 * full stays `billed` with a balance of 0.
 */
import {
  computeTax,
  type FakeLine,
  type FakeRecord,
  type PaddleBook,
  type TransactionRecord,
} from './paddle-fake-book.ts';
import type { PaddleBody } from './paddle-fake-fields.ts';
import { PaddleRefusal } from './paddle-fake-refusal.ts';

type NetAndTax = { subtotal: string; tax: string; total: string };
type AdjustedItem = { id: string; item_id: string; type: string; amount: string; totals: NetAndTax };
export type AdjustmentRecord = FakeRecord & {
  action: string;
  transaction_id: string;
  status: 'approved' | 'pending_approval' | 'rejected' | 'reversed' | 'undocumented';
  reason: string;
  items: AdjustedItem[];
  totals: NetAndTax & Record<string, unknown>;
};

const IN_FORCE = ['approved', 'pending_approval'];

export class PaddleAdjustments {
  readonly #book: PaddleBook;
  /** Status of new refunds. Paddle approves some at once, and decides about others. */
  refund_status: 'approved' | 'pending_approval' | 'undocumented' = 'approved';

  constructor(book: PaddleBook) {
    this.#book = book;
  }

  list(transaction_id: string): AdjustmentRecord[] {
    return this.#book.list<AdjustmentRecord>('adj').filter((one) => one.transaction_id === transaction_id);
  }

  create(body: PaddleBody<'adjustment'>): AdjustmentRecord {
    const { action, type, transaction_id, items, tax_mode } = body;
    const transaction = this.#book.find<TransactionRecord>(transaction_id, 'txn');
    this.#checkStatus(transaction, action);
    if (type === 'full' && (items !== undefined || action === 'credit'))
      throw new PaddleRefusal('bad_request', 'a full adjustment has no items, and is a refund');
    if (type === 'partial' && items === undefined) throw new PaddleRefusal('bad_request', 'items are required');
    const lines = transaction.details.line_items;
    const wanted = items ?? lines.map(({ id }) => ({ item_id: id, type: 'full' as const, amount: null }));
    const adjusted = wanted.map((item) => {
      const line = lines.find(({ id }) => id === item.item_id);
      if (line === undefined)
        throw new PaddleRefusal('adjustment_transaction_item_invalid', `unknown item ${item.item_id}`);
      return this.#adjust(line, { ...item, amount: item.amount ?? null, tax_mode, transaction_id });
    });
    const status = action === 'credit' ? 'approved' : this.refund_status;
    return this.#add(transaction, { action, type, reason: body.reason, status, items: adjusted });
  }

  #checkStatus({ id, status, collection_mode }: TransactionRecord, action: 'credit' | 'refund'): void {
    if (action === 'credit' && collection_mode === 'automatic')
      throw new PaddleRefusal(
        'adjustment_invalid_credit_action',
        'You cannot create a credit adjustment for an automatically-collected transaction.',
      );
    const allowed = action === 'credit' ? ['billed', 'past_due'] : ['completed'];
    if (!allowed.includes(status))
      throw new PaddleRefusal(
        `adjustment_transaction_invalid_status_for_${action}`,
        `The transaction being adjusted (${action}) has a non supported status. ID: ${id}`,
      );
    if (this.list(id).some((one) => one.action === 'refund' && one.status === 'pending_approval'))
      throw new PaddleRefusal(
        'adjustment_pending_refund_request',
        'You are unable to create further adjustments against this transaction as there is a pending refund request',
      );
  }

  #adjust(
    line: FakeLine,
    {
      type,
      amount,
      tax_mode,
      transaction_id,
    }: { type: string; amount: string | null; tax_mode: string; transaction_id: string },
  ): AdjustedItem {
    const earlier = this.list(transaction_id)
      .filter(({ action, status }) => (action === 'credit' || action === 'refund') && IN_FORCE.includes(status))
      .flatMap(({ items }) => items.filter(({ item_id }) => item_id === line.id));
    const rest = (field: 'subtotal' | 'tax') =>
      Number(line.totals[field]) - earlier.reduce((sum, { totals }) => sum + Number(totals[field]), 0);
    if (rest('subtotal') <= 0)
      throw new PaddleRefusal(
        'adjustment_transaction_item_has_already_been_fully_adjusted',
        `One of the transaction items has already been adjusted in full. ID: ${line.id}`,
      );
    if (type === 'partial' && tax_mode !== 'external') throw new Error('the fake takes amounts without tax alone');
    const net = type === 'full' ? rest('subtotal') : Number(amount);
    const tax = type === 'full' ? rest('tax') : computeTax(net, Number(line.tax_rate) * 100);
    if (net === 0) throw new PaddleRefusal('adjustment_amount_cannot_be_zero', 'Adjustment amount cannot be zero');
    if (net > rest('subtotal'))
      throw new PaddleRefusal('adjustment_amount_above_remaining_allowed', `Amount Left: ${rest('subtotal')}`);
    const totals = { subtotal: String(net), tax: String(tax), total: String(net + tax) };
    return { id: this.#book.newId('adjitm'), item_id: line.id, type, amount: String(net + tax), totals };
  }

  #add(
    transaction: TransactionRecord,
    { items, ...fields }: Pick<AdjustmentRecord, 'action' | 'reason' | 'status' | 'items'> & { type: string },
  ): AdjustmentRecord {
    const sum = (field: keyof NetAndTax) => items.reduce((total, { totals }) => total + Number(totals[field]), 0);
    const totals = { subtotal: String(sum('subtotal')), tax: String(sum('tax')), total: String(sum('total')) };
    const { id: transaction_id, customer_id, currency_code } = transaction;
    const about = {
      transaction_id,
      customer_id,
      subscription_id: null,
      currency_code,
      credit_applied_to_balance: null,
    };
    const adjustment = this.#book.add('adj', {
      ...{ ...fields, ...about, items, payout_totals: null, tax_rates_used: [] },
      totals: { ...totals, fee: '0', earnings: '0', retained_fee: '0', currency_code },
    }) as AdjustmentRecord;
    if (fields.action === 'credit') credit(transaction, sum('total'));
    this.#book.announce('adjustment.created', adjustment);
    return adjustment;
  }

  /** Paddle decides about a refund. */
  decide(id: string, status: 'approved' | 'rejected'): void {
    const adjustment = this.#book.find<AdjustmentRecord>(id, 'adj');
    adjustment.status = status;
    this.#book.announce('adjustment.updated', adjustment);
  }

  /** The bank of the customer takes the money back. */
  chargeBack(transaction_id: string): AdjustmentRecord {
    const transaction = this.#book.find<TransactionRecord>(transaction_id, 'txn');
    const items = transaction.details.line_items.map(({ id: item_id, totals: { subtotal, tax, total } }) => ({
      ...{ id: this.#book.newId('adjitm'), item_id, type: 'full', amount: total },
      totals: { subtotal, tax, total },
    }));
    const fields = { action: 'chargeback', reason: 'chargeback', status: 'approved' as const, type: 'full' };
    return this.#add(transaction, { ...fields, items });
  }
}

function credit({ details: { totals } }: TransactionRecord, amount: number): void {
  totals['credit'] = String(Number(totals['credit']) + amount);
  totals['balance'] = String(Number(totals['balance']) - amount);
  totals['grand_total'] = String(Number(totals['grand_total']) - amount);
}
