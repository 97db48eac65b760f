/**
 * The balance of a wallet in real time (docs/rules/wallets.md, "The balance in real time"): from the ledger, from the invoices that are not
 * paid, and from the preview of each subscription's next invoice, which rates the running period as the invoice will.
 */
import { Decimal, sumOf, ZERO } from '../../core/decimal.ts';
import { type RealTime, realTimeBalance, type UnpaidInvoice } from '../../core/wallet/real-time.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { InvoiceLineItemModel } from '../../storage/models/invoice-line-item.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import type { WalletModel } from '../../storage/models/wallet.ts';
import { WalletTransactionModel } from '../../storage/models/wallet-transaction.ts';
import type { Database, Stores } from '../../storage/stores.ts';
import { addresseeOf } from '../billing/invoice-records.ts';
import { previewInvoice } from '../invoices/preview-invoice.ts';

export async function realTimeOf(stores: Stores, wallet: WalletModel, now: Date): Promise<RealTime> {
  const isAsked = wallet.wallet_type === 'PRE_PAID' && wallet.wallet_status === 'active';
  // In the order in which a charge goes from the one to the other, so that none is missed by who reads meanwhile.
  const current_usage = isAsked ? await currentUsage(stores, wallet, now) : ZERO;
  const unpaid = isAsked ? await unpaidOf(wallet, stores.postgres) : [];
  return realTimeBalance(wallet, { current_usage, unpaid });
}

/** Of the running periods, after coupons. */
async function currentUsage(stores: Stores, wallet: WalletModel, now: Date): Promise<Decimal> {
  const { customer_id, currency } = wallet;
  const found = await SubscriptionModel.in(wallet, stores.postgres)
    .where({ currency, status: 'published' })
    .whereIn('subscription_status', ['active', 'trialing', 'incomplete'])
    .where((either) => void either.where({ customer_id }).orWhere({ invoicing_customer_id: customer_id }));
  const charged = found.filter((one) => addresseeOf(one) === customer_id);
  let usage = ZERO;
  for (const { id } of charged) {
    const { line_items } = await previewInvoice(stores, wallet, { subscription_id: id }, now);
    const lines = line_items.filter(({ price_type }) => price_type === 'USAGE');
    const nets = lines.map(({ amount, line_item_discount, invoice_level_discount }) =>
      new Decimal(amount).minus(line_item_discount).minus(invoice_level_discount),
    );
    usage = usage.plus(sumOf(nets));
  }
  return usage;
}

/** Drafts too: their period is over, and they will be paid. What buys credits is no charge on them. */
async function unpaidOf(wallet: WalletModel, database: Database): Promise<UnpaidInvoice[]> {
  const { customer_id, currency } = wallet;
  const purchases = WalletTransactionModel.in(wallet, database)
    .where({ customer_id, transaction_reason: 'PURCHASED_CREDIT_INVOICED', reference_type: 'INVOICE' })
    .select('reference_id');
  const invoices = await InvoiceModel.in(wallet, database)
    .where({ customer_id, currency, status: 'published' })
    .whereIn('invoice_status', ['DRAFT', 'FINALIZED'])
    .where('amount_remaining', '>', 0)
    .where('invoice_type', '<>', 'CREDIT')
    .whereNotIn('id', purchases);
  const ids = invoices.map(({ id }) => id);
  const lines = ids.length === 0 ? [] : await InvoiceLineItemModel.in(wallet, database).whereIn('invoice_id', ids);
  return invoices.map((invoice) => ({
    amount_paid: new Decimal(invoice.amount_paid),
    amount_remaining: new Decimal(invoice.amount_remaining),
    lines: lines
      .filter(({ invoice_id }) => invoice_id === invoice.id)
      .map((line) => ({
        price_type: line.price_type ?? null,
        amount: new Decimal(line.amount),
        credits_applied: new Decimal(line.prepaid_credits_applied),
        discount: new Decimal(line.line_item_discount).plus(line.invoice_level_discount),
      })),
  }));
}
