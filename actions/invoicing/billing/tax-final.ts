/**
 * Computes the amounts that prepaid wallets pay (docs/rules/wallets.md, "Credits on invoices") and the taxes (docs/rules/taxes.md, "On an
 * invoice") of an invoice that becomes final. Coupons were deducted before. The amounts are stored per line and summed on the invoice. The
 * rates are loaded as for the preview, so that both agree.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { toWholeSetting } from '../../../core/platform/setting/record.ts';
import { FINAL_FIELDS, parseAdjustments } from '../../../core/rating/adjustment-fields.ts';
import { type AdjustableLine, applyLineAdjustments } from '../../../core/rating/line-adjustments.ts';
import type { PrepaidWallet } from '../../../core/rating/prepaid.ts';
import { totalsText } from '../../../core/rating/totals.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { findSetting } from '../../../storage/models/foundation/setting.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { updateLineAdjustments } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import {
  deriveTaxInstant,
  loadRatesInForce,
  type TaxableInvoice as Taxable,
} from '../../catalog/taxes/rates-in-force.ts';
import { formatLineAdjustments } from '../records/invoice-records.ts';
import { taxRecords } from '../records/tax-records.ts';

type UntaxedDraft = { readonly invoice: InvoiceModel; readonly line_items: readonly InvoiceLineItem[] };

type TaxedDraft = {
  readonly changes: Partial<InvoiceModel>;
  readonly line_items: readonly InvoiceLineItem[];
  /** Amounts that each wallet pays before taxes and after them. */
  readonly prepaid_used: readonly Decimal[];
  readonly used_after_tax: readonly Decimal[];
};

/** Runs in the transaction that finalizes the invoice and has locked its row. */
export async function applyFinalAdjustments(
  transaction: Transaction,
  { invoice, line_items, prepaid = [] }: UntaxedDraft & { readonly prepaid?: readonly PrepaidWallet[] },
  author: Author,
): Promise<TaxedDraft> {
  const { now } = author;
  const rates = await loadRatesInForce(transaction, toTaxable(invoice, now));
  const isTaxed = rates.length > 0 || line_items.some(({ taxes }) => taxes?.length);
  if (!isTaxed && prepaid.length === 0 && !line_items.some(isCredited))
    return { changes: {}, line_items, prepaid_used: [], used_after_tax: [] };
  const adjusted = applyLineAdjustments(line_items.map(toAdjustableDraftLine), {
    currency: invoice.currency,
    rates,
    prepaid,
    taxes_before_credits:
      (prepaid.length > 0 || line_items.some(isCredited)) && (await isTaxedBeforeCredits(invoice, transaction)),
    amount_paid: new Decimal(invoice.amount_paid),
    adjustment_amount: new Decimal(invoice.adjustment_amount),
  });
  // A line that the draft had taxes or credits on is written again, even if its amounts are 0 now.
  const wereAdjusted = line_items.map(isAdjusted);
  const taxed = line_items.map((line, index) => {
    const text = formatLineAdjustments(adjusted.adjustments[index]!);
    const final = Object.fromEntries(FINAL_FIELDS.map((field) => [field, text[field]]));
    return Object.assign(line, final, isTaxed ? { taxes: text.taxes } : {});
  });
  const changed = taxed.filter((line, index) => wereAdjusted[index] || isAdjusted(line));
  await updateLineAdjustments(invoice, changed, transaction);
  const rows = taxRecords(adjusted.taxes_applied, { invoice, line_items: taxed, author });
  await TaxAppliedModel.addAll(invoice, rows, { database: transaction });
  const { subtotal: _lines, total_discount: _coupons, adjustment_amount: _notes, ...changes } = totalsText(adjusted);
  const { prepaid_used, used_after_tax } = adjusted;
  return { changes, line_items: taxed, prepaid_used, used_after_tax };
}

function toTaxable(invoice: InvoiceModel, now: Date): Taxable {
  const { id, tenant_id, environment_id, customer_id, subscription_id, currency, invoice_type } = invoice;
  const whose = { id, tenant_id, environment_id, customer_id, subscription_id, currency, invoice_type };
  return { ...whose, at: deriveTaxInstant(invoice, now), now: now.getTime() };
}

const isCredited = (line: InvoiceLineItem) => !new Decimal(line.prepaid_credits_applied).isZero();
const isAdjusted = (line: InvoiceLineItem) => line.taxes !== null || isCredited(line);

/** Whether a line has taxes or credits. Such a line is computed again at finalization, even if no rate or wallet applies any more. */
export function isTaxedOrCredited(line: InvoiceLineItem): boolean {
  return (line.taxes?.length ?? 0) > 0 || isCredited(line);
}

export async function isTaxedBeforeCredits(scope: Scope, database: Database): Promise<boolean> {
  const stored = await findSetting(scope, 'tax_config', { database });
  return toWholeSetting('tax_config', stored?.value).taxes_before_credits;
}

/**
 * Converts a line of the draft. A credit line keeps its prepaid credits and its tax; the prepaid credits that pay for a charge are
 * recomputed.
 */
function toAdjustableDraftLine(line: InvoiceLineItem): AdjustableLine {
  const amount = new Decimal(line.amount);
  const adjusted = parseAdjustments(line);
  const taxes = (line.taxes ?? []).map((share) => ({ ...share, tax_amount: new Decimal(share.tax_amount) }));
  return {
    amount,
    price_type: line.price_type ?? null,
    key: null,
    charged_ms: null,
    ...(amount.isNegative() ? { credit_adjustments: { ...adjusted, taxes } } : { discounted: adjusted }),
  };
}
