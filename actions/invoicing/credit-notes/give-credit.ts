/**
 * Credits the negative amount of a subscription operation: adjustments lower the amounts that the subscription still owes, and only the
 * remaining part, which was paid, goes to the prepaid wallet (docs/rules/credit-notes.md, "Adjustments of changes").
 */

import { type KeyKind, toOwnKey } from '../../../core/credits/wallet/movement-key.ts';
import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { planCreditedInvoice } from '../../../core/invoicing/credit-note/effect.ts';
import {
  type CreditedLine,
  type CreditOffset,
  computeLineCredit,
  planOffsetLines,
  planOffsets,
  splitUsageCredit,
} from '../../../core/invoicing/credit-note/offsets.ts';
import { TO_ADJUST } from '../../../core/invoicing/credit-note/plan.ts';
import type { CREDIT_NOTE_REASONS } from '../../../core/invoicing/credit-note/record.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { computeLineNet } from '../../../core/rating/adjustment-fields.ts';
import { findInvoicingParentId } from '../../../core/subscriptions/addressee.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Transaction } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import type { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { CreditNoteLineItemModel } from '../../../storage/models/invoicing/credit-note-line-item.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { creditWallet } from '../../credits/wallets/credit-wallet.ts';
import { emit } from '../../foundation/emit.ts';
import { voidOpenPayments } from '../collection/void-open-payments.ts';
import { changeInvoice } from './change-invoice.ts';
import { takeCreditNoteNumber } from './note-number.ts';

export type LeftOver = {
  /** The invoice that causes the credit; its customer receives it. */
  readonly invoice: Invoice;
  /** Lines of the invoice. The negative ones are the credits; they name the lines that charged the credited amounts. */
  readonly lines: readonly InvoiceLineItem[];
  readonly subscription: SubscriptionModel;
  /** Amount to return, with its tax. */
  readonly amount: Decimal;
  readonly key: KeyKind;
  readonly reason: (typeof CREDIT_NOTE_REASONS)[number];
  readonly description: string;
  readonly author: Author;
};

export type GivenCredit = {
  readonly credit_notes: readonly CreditNoteModel[];
  /** Open invoices that the credit notes lowered. The caller passes them to `activateAfterLowered`, which handles those now paid. */
  readonly lowered: readonly InvoiceModel[];
  /** Null if nothing went to the wallet, because no part was paid. */
  readonly wallet_transaction: WalletTransactionModel | null;
};

/**
 * Writes the credit. `transaction` has locked the subscription; payments of its invoices take this lock, too, so none changes an invoice
 * meanwhile.
 */
export async function giveCredit(transaction: Transaction, leftOver: LeftOver): Promise<GivenCredit> {
  const { invoice, lines, subscription, amount } = leftOver;
  const credited = await gatherCredited(transaction, invoice, lines);
  const open = await lockOpenInvoices(transaction, { invoice, subscription, credited });
  const { offsets, rest } = planOffsets(amount, { open, credited });
  // The wallet is locked before the notes take numbers (subscriptions/lock-in-order.ts).
  if (!rest.isZero()) await WalletModel.lockPrepaidWallet(invoice, invoice, transaction);
  const adjusted: Adjustment[] = [];
  for (const offset of offsets) {
    const invoice = open.find(({ id }) => id === offset.invoice_id)!;
    adjusted.push(await adjust(transaction, leftOver, { invoice, offset, credited }));
  }
  return {
    credit_notes: adjusted.map(({ note }) => note),
    lowered: adjusted.map(({ lowered }) => lowered),
    wallet_transaction: rest.isZero() ? null : await putIntoWallet(transaction, leftOver, rest),
  };
}

/**
 * Finds the lines that charged the credited amounts. A fixed credit names its line; usage may have been charged by any line of the same
 * period.
 */
export async function gatherCredited(
  transaction: Transaction,
  invoice: Invoice,
  lines: readonly InvoiceLineItem[],
): Promise<CreditedLine[]> {
  const giving = lines.filter(({ amount }) => new Decimal(amount).isNegative());
  const fixed = giving.filter(({ price_type }) => price_type !== 'USAGE');
  const parentIds = fixed.flatMap(({ parent_line_item_id }) => parent_line_item_id ?? []);
  const parents = await InvoiceLineItemModel.byId(invoice, parentIds, transaction);
  const ofFixed = fixed.flatMap((line) => {
    const parent = parents.get(line.parent_line_item_id ?? '');
    return parent ? [{ invoice_id: parent.invoice_id, line_id: parent.id, ...computeLineCredit(line) }] : [];
  });
  const ofUsage: CreditedLine[] = [];
  for (const line of giving.filter(({ price_type }) => price_type === 'USAGE'))
    ofUsage.push(...splitUsageCredit(computeLineCredit(line), await chargedUsage(transaction, invoice, line)));
  return [...ofFixed, ...ofUsage];
}

async function chargedUsage(transaction: Transaction, invoice: Invoice, line: InvoiceLineItem) {
  const { subscription_line_item_id, period_start, period_end } = line;
  const charged = await InvoiceLineItemModel.in(invoice, transaction)
    .where({ subscription_line_item_id, price_type: 'USAGE', status: 'published' })
    .whereNot('invoice_id', invoice.id)
    .where('amount', '>', 0)
    .where('period_start', '<', period_end!)
    .where('period_end', '>', period_start!)
    .orderBy([
      { column: 'created_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ]);
  return charged.map((one) => ({ ...toLowered(one), invoice_id: one.invoice_id }));
}

function toLowered(line: InvoiceLineItem) {
  return { id: line.id, amount: computeLineNet(line), tax: new Decimal(line.tax_amount) };
}

type OpenInvoicesInput = { readonly subscription: SubscriptionModel; readonly credited: readonly CreditedLine[] };

/** Locks open invoices of the customer, oldest first: those of the subscription, and those that charged the credited lines. */
async function lockOpenInvoices(
  transaction: Transaction,
  { invoice, subscription, credited }: OpenInvoicesInput & { readonly invoice: Invoice },
): Promise<InvoiceModel[]> {
  const { customer_id, currency } = invoice;
  const parent_id = findInvoicingParentId(subscription);
  const subscriptionIds = parent_id ? [subscription.id, parent_id] : [subscription.id];
  const sourceIds = credited.map(({ invoice_id }) => invoice_id);
  const open = await InvoiceModel.in(invoice, transaction)
    .where({ customer_id, currency, invoice_status: 'FINALIZED', status: 'published' })
    .whereIn('payment_status', [...TO_ADJUST])
    .whereNot('id', invoice.id)
    .where('amount_remaining', '>', 0)
    .where((either) => void either.whereIn('subscription_id', subscriptionIds).orWhereIn('id', sourceIds))
    .orderBy(['finalized_at', 'id'])
    .forUpdate();
  return open;
}

type AdjustInput = {
  readonly invoice: InvoiceModel;
  readonly offset: CreditOffset;
  readonly credited: readonly CreditedLine[];
};
type Adjustment = { readonly note: CreditNoteModel; readonly lowered: InvoiceModel };

async function adjust(
  transaction: Transaction,
  { invoice: change, key, reason, description, author }: LeftOver,
  { invoice, offset, credited }: AdjustInput,
): Promise<Adjustment> {
  const { id: invoice_id, customer_id, subscription_id, currency } = invoice;
  const stored = await InvoiceLineItemModel.in(invoice, transaction)
    .where({ invoice_id, status: 'published' })
    .where('amount', '>', 0)
    .orderBy(['position', 'id']);
  const lines = planOffsetLines(offset, { lines: stored.map(toLowered), credited, currency });
  const id = newId('credit_note', author.now.getTime());
  const record = {
    ...createdBy(author),
    id,
    credit_note_number: await takeCreditNoteNumber(transaction, invoice, author.now),
    invoice_id,
    customer_id,
    subscription_id,
    change_invoice_id: change.id,
    credit_note_status: 'FINALIZED',
    credit_note_type: 'ADJUSTMENT',
    finalized_at: author.now.toISOString(),
    reason,
    memo: description,
    currency,
    subtotal: sumDecimals(lines.map(({ amount }) => amount)).toFixed(),
    total_tax: sumDecimals(lines.map(({ tax }) => tax)).toFixed(),
    total_amount: offset.amount.toFixed(),
    total_prepaid_credits_returned: '0',
    idempotency_key: toOwnKey(key, change.id, invoice_id),
    metadata: null,
  };
  const note = await CreditNoteModel.add(invoice, record, { database: transaction });
  const names = new Map(stored.map((line) => [line.id, line.display_name]));
  const items = lines.map((line, position) => ({
    ...createdBy(author),
    id: newId('credit_note_line_item', author.now.getTime()),
    credit_note_id: id,
    invoice_line_item_id: line.id,
    display_name: names.get(line.id) ?? '',
    amount: line.amount.toFixed(),
    tax_amount: line.tax.toFixed(),
    prepaid_credits_returned: '0',
    currency,
    metadata: null,
    position,
  }));
  await CreditNoteLineItemModel.addAll(note, items, { database: transaction });
  await emit(transaction, 'credit_note.created', { record: note, by: author });
  const changes = planCreditedInvoice(invoice, note, author.now);
  const lowered = await changeInvoice(transaction, invoice, { changes, author });
  await voidOpenPayments(transaction, { invoice: lowered, by: author });
  return { note, lowered };
}

function putIntoWallet(
  transaction: Transaction,
  { invoice, key, description, author }: LeftOver,
  amount: Decimal,
): Promise<WalletTransactionModel> {
  const { id, customer_id, currency, subscription_id } = invoice;
  return creditWallet(transaction, invoice, {
    customer_id,
    currency,
    amount,
    transaction_reason: 'CREDIT_NOTE',
    reference_type: 'INVOICE',
    reference_id: id,
    idempotency_key: toOwnKey(key, id),
    description,
    metadata: { subscription_id: subscription_id ?? '' },
    pays_after_tax: true,
    author,
  });
}
