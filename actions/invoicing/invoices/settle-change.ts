/**
 * Settles the credits and charges of a change on one invoice with all its lines (docs/rules/proration.md, "One netted invoice"). An amount
 * to pay is final at once, because no event can change it. An amount of 0 or less is skipped like any such invoice; its lines remain as a
 * record for later changes. A negative amount lowers the open debt of the subscription, and the paid part goes to the prepaid wallet of the
 * invoiced customer.
 */

import type { Author } from '../../../core/foundation/stamp.ts';
import { toChangeKey } from '../../../core/invoicing/invoice/own-key.ts';
import type { Invoice, InvoiceWithLines } from '../../../core/invoicing/invoice/record.ts';
import { computeNetTotal, type InvoiceTerms } from '../../../core/rating/line-adjustments.ts';
import type { PlannedLine } from '../../../core/rating/line-amount.ts';
import { buildInvoicePlan } from '../../../core/rating/plan-invoice.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadRatesInForce } from '../../catalog/taxes/rates-in-force.ts';
import { listPreviewWallets } from '../../credits/wallets/prepaid-wallets.ts';
import { type BillableItem, currentPeriod, toScope } from '../../rating/billable-items.ts';
import { loadCouponsInForce } from '../../rating/coupons/coupons-in-force.ts';
import { isTaxedBeforeCredits } from '../billing/tax-final.ts';
import { type GivenCredit, giveCredit, type LeftOver } from '../credit-notes/give-credit.ts';
import { toInvoiceParts, toInvoiceRecord } from '../records/invoice-records.ts';
import { addInvoice } from './draft-invoice.ts';
import { finalizeWithin } from './finalize-invoice.ts';
import { returnCredits } from './return-credits.ts';

export type Settlement = {
  readonly subscription: SubscriptionModel;
  /** The charged customer; for a grouped subscription, the payer of its parent. */
  readonly payer_id: string;
  /** Lines with the credits and charges of the change; at least one. */
  readonly lines: readonly PlannedLine<BillableItem>[];
  /** Key derived from the changed lines, so that a repeated request does not settle the change twice. */
  readonly key: string;
  /** Coupons and tax rates for the charges; a credit uses those of its original charge. */
  readonly terms: SettlementTerms;
  /** Reason of the credit notes; default ORDER_CHANGE. */
  readonly reason?: LeftOver['reason'];
  readonly author: Author;
};

type SettlementTerms = Pick<InvoiceTerms, 'coupons' | 'rates' | 'taxes_before_credits'> & {
  /** Preview only: prepaid credits that can pay the invoice. An executed change applies credits at finalization. */
  readonly previewed?: Pick<InvoiceTerms, 'prepaid'>;
};

/**
 * Loads the current tax rates and the coupons of the running period, or of the period that begins with the change. `begins`: line items of
 * the change that are not stored yet.
 */
export async function loadChargeTerms(
  database: Database,
  { subscription, payer_id, author }: Pick<Settlement, 'subscription' | 'payer_id' | 'author'>,
  { beginsPeriod = false, begins = [] }: { beginsPeriod?: boolean; begins?: readonly BillableItem[] } = {},
): Promise<SettlementTerms> {
  const inside = beginsPeriod ? {} : { inside: currentPeriod(subscription) };
  const begun = begins.map(({ line_item }) => line_item);
  const coupons = await loadCouponsInForce(database, { subscriptions: [subscription], ...inside, begun });
  const rates = await loadRatesInForce(database, {
    ...toScope(subscription),
    customer_id: payer_id,
    subscription_id: subscription.id,
    currency: subscription.currency,
    invoice_type: 'SUBSCRIPTION',
    at: author.now.getTime(),
  });
  const payer = { customer_id: payer_id, currency: subscription.currency, at_ms: author.now.getTime() };
  const prepaid = await listPreviewWallets(database, subscription, payer);
  const taxes_before_credits = rates.length > 0 && (await isTaxedBeforeCredits(subscription, database));
  return { coupons, rates, taxes_before_credits, previewed: { prepaid } };
}

export type SettledChange = { invoice: InvoiceWithLines } & GivenCredit;

const NOTHING_GIVEN: GivenCredit = { credit_notes: [], lowered: [], wallet_transaction: null };

/** Previews the invoice of the change, with empty ids. Line items in `unmade` do not exist yet, so references to them are empty, too. */
export function previewSettlement(
  settlement: Settlement,
  unmade: ReadonlySet<string | null | undefined>,
): InvoiceWithLines {
  const { previewed, ...terms } = settlement.terms;
  const { record, lines } = planSettlementInvoice({ ...settlement, terms: { ...terms, ...previewed } }, '');
  const line_items = lines.map((line) =>
    unmade.has(line.subscription_line_item_id) ? { ...line, subscription_line_item_id: '' } : line,
  );
  return { ...record, idempotency_key: null, line_items };
}

/** Writes the invoice of a change and settles its amount. `transaction` holds the lock on the subscription's row. */
export async function settleChange(transaction: Transaction, settlement: Settlement): Promise<SettledChange> {
  const { subscription, author } = settlement;
  const id = newId('invoice', author.now.getTime());
  const { previewed, ...terms } = settlement.terms;
  const draft_terms = { ...terms, draft_wallets: previewed?.prepaid };
  const { net, ...planned } = planSettlementInvoice({ ...settlement, terms: draft_terms }, id);
  const invoice = await addInvoice(transaction, subscription, { ...planned, now: author.now });
  if (net.gt(0)) {
    const drafted = { invoice_id: invoice.id, now: author.now };
    return { ...NOTHING_GIVEN, ...(await finalizeWithin(transaction, toScope(subscription), drafted)) };
  }
  await TaxAppliedModel.addAll(toScope(subscription), planned.taxes, { database: transaction });
  await returnCredits(transaction, invoice, { line_items: invoice.line_items, author });
  if (net.isZero()) return { invoice, ...NOTHING_GIVEN };
  const given = await giveCredit(transaction, {
    invoice,
    lines: invoice.line_items,
    subscription,
    amount: net.negated(),
    key: 'change',
    reason: settlement.reason ?? 'ORDER_CHANGE',
    description: 'Unused time that was charged in advance',
    author,
  });
  return { invoice, ...given };
}

type PlannedSettlement = Omit<Settlement, 'terms'> & {
  readonly terms: Pick<InvoiceTerms, 'coupons' | 'rates' | 'prepaid' | 'draft_wallets' | 'taxes_before_credits'>;
};

function planSettlementInvoice({ subscription, payer_id, lines, key, terms, author }: PlannedSettlement, id: string) {
  const { now } = author;
  const plan = buildInvoicePlan(lines, { ...terms, currency: subscription.currency });
  const period = {
    start: Math.min(...lines.map(({ service }) => service.start)),
    end: Math.max(...lines.map(({ service }) => service.end)),
  };
  const record: Invoice = {
    ...toInvoiceRecord({ subscription, period, reason: 'SUBSCRIPTION_UPDATE', plan }, id, now),
    customer_id: payer_id,
    // An invoice that prepaid credits pay in full is not skipped.
    invoice_status: plan.total.gt(0) || plan.total_prepaid_credits_applied.gt(0) ? 'DRAFT' : 'SKIPPED',
    idempotency_key: toChangeKey(subscription.id, key),
  };
  return { record, ...toInvoiceParts(plan, record, now), net: computeNetTotal(plan) };
}
