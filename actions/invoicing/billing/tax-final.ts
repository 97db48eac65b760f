/**
 * Computes the payments of prepaid wallets (docs/rules/wallets.md, "Credits on invoices") and the taxes (docs/rules/taxes.md, "On an
 * invoice") of an invoice that becomes final, after its coupons. Each line has its share, and the totals contain them. The rates are loaded
 * as for the preview, so that both agree.
 */

import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import type { InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { toWholeSetting } from '../../../core/platform/setting/record.ts';
import { applyLineAdjustments, type ChargedLine } from '../../../core/rating/line-adjustments.ts';
import type { PrepaidWallet } from '../../../core/rating/prepaid.ts';
import { totalsText } from '../../../core/rating/totals.ts';
import type { Database, Transaction } from '../../../storage/foundation/stores.ts';
import { findSetting } from '../../../storage/models/foundation/setting.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { recordAppliedAmounts } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import {
  deriveTaxInstant,
  loadRatesInForce,
  type TaxableInvoice as Taxable,
} from '../../catalog/taxes/rates-in-force.ts';
import { moneyText } from '../records/invoice-records.ts';
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
export async function taxFinal(
  transaction: Transaction,
  { invoice, line_items, prepaid = [] }: UntaxedDraft & { readonly prepaid?: readonly PrepaidWallet[] },
  author: Author,
): Promise<TaxedDraft> {
  const { now } = author;
  const rates = await loadRatesInForce(transaction, toTaxable(invoice, now));
  const isTaxed = rates.length > 0 || line_items.some(({ taxes }) => taxes?.length);
  if (!isTaxed && prepaid.length === 0 && !line_items.some(isCredited))
    return { changes: {}, line_items, prepaid_used: [], used_after_tax: [] };
  const settled = applyLineAdjustments(line_items.map(chargedLine), {
    currency: invoice.currency,
    rates,
    prepaid,
    taxes_before_credits:
      (prepaid.length > 0 || line_items.some(isCredited)) && (await isTaxedBeforeCredits(invoice, transaction)),
    amount_paid: new Decimal(invoice.amount_paid),
    adjustment_amount: new Decimal(invoice.adjustment_amount),
  });
  // A line with amounts from the draft is written again, also if they are 0 now.
  const wereNoted = line_items.map(isNoted);
  const taxed = line_items.map((line, index) => {
    const { tax_amount, included_tax_amount, taxes, prepaid_credits_applied } = moneyText(settled.money[index]!);
    const noted = isTaxed ? { tax_amount, included_tax_amount, taxes } : {};
    return Object.assign(line, { ...noted, prepaid_credits_applied });
  });
  const noted = taxed.filter((line, index) => wereNoted[index] || isNoted(line));
  await recordAppliedAmounts(invoice, noted, transaction);
  const rows = taxRecords(settled.taxes_applied, { invoice, line_items: taxed, author });
  await TaxAppliedModel.addAll(invoice, rows, { database: transaction });
  const { subtotal: _lines, total_discount: _coupons, adjustment_amount: _notes, ...changes } = totalsText(settled);
  const { prepaid_used, used_after_tax } = settled;
  return { changes, line_items: taxed, prepaid_used, used_after_tax };
}

function toTaxable(invoice: InvoiceModel, now: Date): Taxable {
  const { id, tenant_id, environment_id, customer_id, subscription_id, currency, invoice_type } = invoice;
  const whose = { id, tenant_id, environment_id, customer_id, subscription_id, currency, invoice_type };
  return { ...whose, at: deriveTaxInstant(invoice, now), now: now.getTime() };
}

const isCredited = (line: InvoiceLineItem) => !new Decimal(line.prepaid_credits_applied).isZero();
const isNoted = (line: InvoiceLineItem) => line.taxes !== null || isCredited(line);

/** Such a line is computed again at finalization, also without rates and wallets. */
export function isTaxedOrCredited(line: InvoiceLineItem): boolean {
  return (line.taxes?.length ?? 0) > 0 || isCredited(line);
}

export async function isTaxedBeforeCredits(scope: Scope, database: Database): Promise<boolean> {
  const stored = await findSetting(scope, 'tax_config', { database });
  return toWholeSetting('tax_config', stored?.value).taxes_before_credits;
}

/** Line of the draft: a credit has its credits and its tax unchanged; the credits that pay for a charge are recomputed. */
function chargedLine(line: InvoiceLineItem): ChargedLine {
  const amount = new Decimal(line.amount);
  const discounted = {
    line_item_discount: new Decimal(line.line_item_discount),
    invoice_level_discount: new Decimal(line.invoice_level_discount),
  };
  const prepaid_credits_applied = new Decimal(line.prepaid_credits_applied);
  const taxes = (line.taxes ?? []).map((share) => ({ ...share, tax_amount: new Decimal(share.tax_amount) }));
  return {
    amount,
    price_type: line.price_type ?? null,
    key: null,
    charged_ms: null,
    ...(amount.isNegative()
      ? { credit_adjustments: { ...discounted, prepaid_credits_applied, taxes } }
      : { discounted }),
  };
}
