/**
 * The law of credits (docs/rules/credit-notes.md, "As the line was paid"): a credit leaves all parties as if that much less had been invoiced.
 * So whatever is invoiced, credited, changed and voided, and whichever credits pay of it, the money that is paid in the end is what is charged
 * less what is credited and less the bought credits, with one tax.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { sumTax, toLineTaxes } from '../../../../core/catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../../../../core/foundation/decimal.ts';
import { minorUnits, roundMoney } from '../../../../core/foundation/money.ts';
import {
  type CreditableLine,
  computeLineRemainder,
  splitRefundable,
} from '../../../../core/invoicing/credit-note/creditable.ts';
import { planCreditedInvoice } from '../../../../core/invoicing/credit-note/effect.ts';
import { planCreditNote } from '../../../../core/invoicing/credit-note/plan.ts';
import type { Invoice } from '../../../../core/invoicing/invoice/record.ts';
import { computeCreditAdjustments, sumBilledLines } from '../../../../core/rating/credit-adjustments.ts';
import {
  type AdjustableLine,
  type AdjustedLines,
  applyLineAdjustments,
  computeNetTotal,
} from '../../../../core/rating/line-adjustments.ts';
import type { RateInForce } from '../../../../core/rating/taxes.ts';
import { buildPrepaidWallet } from '../../../support/lots.ts';
import { samples } from '../../../support/samples.ts';

const NOW = new Date('2026-03-01T00:00:00Z');
const BEYOND = new Decimal(10).pow(14);
const MORE = { units: 600, discount: 0 as const };

type Invoiced = { invoice: Invoice; lines: CreditableLine[]; settled: AdjustedLines; isVoid: boolean };
type How = { currency: string; percent: string; taxes_before_credits: boolean };

/** One customer with a wallet for all prices, who pays at once what remains. */
class Account {
  bought = ZERO;
  before_tax = ZERO;
  after_tax = ZERO;
  /** Paid in money. */
  money = ZERO;
  /** Charged less credited, after discounts, without tax. */
  net = ZERO;
  readonly invoices: Invoiced[] = [];
  readonly how: How;
  constructor(how: How) {
    this.how = how;
  }

  buy(credits: Decimal) {
    this.bought = this.bought.plus(credits);
    this.before_tax = this.before_tax.plus(credits);
  }

  invoice(lines: readonly AdjustableLine[]): Invoiced {
    const { percent, ...terms } = this.how;
    const rate = { id: 'vat', tax_rate_type: 'percentage', percentage_value: percent, fixed_value: null } as const;
    const rates: RateInForce[] = [{ rate: { ...rate, tax_behavior: 'exclusive' }, tax_association_id: null }];
    const wallet = buildPrepaidWallet({ balance: this.before_tax, balance_after_tax: this.after_tax });
    const settled = applyLineAdjustments(lines, { ...terms, rates, prepaid: [wallet] });
    expect(settled.total_credits_applied_after_tax.lte(settled.total)).to.equal(true);
    this.before_tax = this.before_tax.minus(settled.total_prepaid_credits_applied);
    this.after_tax = this.after_tax.minus(settled.total_credits_applied_after_tax);
    this.money = this.money.plus(settled.amount_remaining);
    if (computeNetTotal(settled).isNegative()) this.after_tax = this.after_tax.minus(computeNetTotal(settled));
    for (const [index, { amount }] of lines.entries()) {
      const { line_item_discount, invoice_level_discount } = settled.adjustments[index]!;
      this.net = this.net.plus(amount).minus(line_item_discount).minus(invoice_level_discount);
    }
    const invoiced = { ...paid(settled, lines, this.how.currency), isVoid: false };
    this.invoices.push(invoiced);
    this.check();
    return invoiced;
  }

  note(invoiced: Invoiced, index: number, amount: Decimal) {
    const line = invoiced.lines[index]!;
    const plan = planCreditNote(invoiced.invoice, invoiced.lines, [
      { invoice_line_item_id: line.id, amount: amount.toFixed() },
    ]);
    const [part] = plan.lines;
    invoiced.lines[index] = {
      ...line,
      credited: line.credited.plus(part!.amount),
      tax_credited: line.tax_credited.plus(part!.tax),
      prepaid_credited: line.prepaid_credited!.plus(part!.prepaid),
    };
    const note = {
      credit_note_type: plan.credit_note_type,
      total_amount: plan.total.toFixed(),
      total_prepaid_credits_returned: plan.total_prepaid.toFixed(),
    };
    invoiced.invoice = { ...invoiced.invoice, ...planCreditedInvoice(invoiced.invoice, note, NOW) };
    this.before_tax = this.before_tax.plus(plan.total_prepaid);
    this.after_tax = this.after_tax.plus(plan.total).minus(plan.total_prepaid);
    this.net = this.net.minus(part!.amount);
    this.check();
  }

  /** Gives back a part of a line beside other charges, on one netted invoice. */
  change(invoiced: Invoiced, index: number, { credit, charges }: { credit: Decimal; charges: AdjustableLine[] }) {
    const line = invoiced.lines[index]!;
    const money = invoiced.settled.adjustments[index]!;
    const billed = sumBilledLines([
      {
        amount: line.amount.toFixed(),
        line_item_discount: money.line_item_discount.toFixed(),
        invoice_level_discount: money.invoice_level_discount.toFixed(),
        prepaid_credits_applied: money.prepaid_credits_applied.toFixed(),
        taxes: toLineTaxes(money.taxes),
      },
    ]);
    const credit_adjustments = computeCreditAdjustments(credit, billed, this.how.currency);
    const back = { amount: credit.negated(), price_type: 'FIXED', key: null, charged_ms: null, credit_adjustments };
    // A line that a change gave back is left for no note, and for no other change.
    invoiced.lines[index] = { ...line, credited: line.amount, tax_credited: line.tax, prepaid_credited: line.prepaid! };
    invoiced.isVoid = true;
    this.invoice([back, ...charges]).isVoid = true;
  }

  void(invoiced: Invoiced) {
    const { prepaid, rest } = splitRefundable(invoiced.invoice);
    this.before_tax = this.before_tax.plus(prepaid);
    this.after_tax = this.after_tax.plus(rest);
    this.net = this.net.minus(sumDecimals(invoiced.lines.map((line) => computeLineRemainder(line).amount)));
    invoiced.isVoid = true;
    this.check();
  }

  check() {
    expect([this.before_tax.isNegative(), this.after_tax.isNegative()]).to.deep.equal([false, false]);
  }

  /** All credits are used: what is left is money. */
  drain(): { paid: Decimal; owed: Decimal } {
    this.invoice([charge(BEYOND)]);
    expect([this.before_tax.toFixed(), this.after_tax.toFixed()]).to.deep.equal(['0', '0']);
    const taxed = new Decimal(this.how.percent).dividedBy(100).plus(1);
    const { net, bought, how } = this;
    const owed = how.taxes_before_credits ? net.times(taxed).minus(bought) : net.minus(bought).times(taxed);
    return { paid: this.money, owed };
  }
}

function paid(settled: AdjustedLines, lines: readonly AdjustableLine[], currency: string) {
  const { total, amount_due, total_prepaid_credits_applied } = settled;
  const invoice = {
    invoice_status: 'FINALIZED',
    payment_status: 'SUCCEEDED',
    currency,
    total: total.toFixed(),
    amount_due: amount_due.toFixed(),
    amount_paid: amount_due.toFixed(),
    adjustment_amount: '0',
    refunded_amount: '0',
    prepaid_credits_returned: '0',
    total_prepaid_credits_applied: total_prepaid_credits_applied.toFixed(),
  } as Invoice;
  const creditable = lines.map(({ amount }, index): CreditableLine => {
    const money = settled.adjustments[index]!;
    return {
      id: String(index),
      amount,
      discount: money.line_item_discount.plus(money.invoice_level_discount),
      tax: sumTax(money.taxes, 'exclusive'),
      prepaid: money.prepaid_credits_applied,
      credited: ZERO,
      tax_credited: ZERO,
      prepaid_credited: ZERO,
    };
  });
  return { invoice, lines: creditable, settled };
}

function charge(amount: Decimal, discount = ZERO): AdjustableLine {
  const discounted = { line_item_discount: discount, invoice_level_discount: ZERO };
  return { amount, price_type: 'FIXED', key: null, charged_ms: null, discounted };
}

const line = fc.record({ units: fc.integer({ min: 1, max: 60 }), discount: fc.constantFrom(0, 0, 1, 3, 5) });
const deed = fc.oneof(
  fc.record({ kind: fc.constant('buy' as const), units: fc.integer({ min: 1, max: 80 }) }),
  fc.record({ kind: fc.constant('invoice' as const), lines: fc.array(line, { minLength: 1, maxLength: 3 }) }),
  fc.record({
    kind: fc.constant('note' as const),
    which: fc.nat(50),
    index: fc.nat(2),
    tenths: fc.integer({ min: 1, max: 10 }),
  }),
  fc.record({
    kind: fc.constant('change' as const),
    which: fc.nat(50),
    index: fc.nat(2),
    tenths: fc.integer({ min: 1, max: 10 }),
    charges: fc.array(line, { maxLength: 2 }),
  }),
  fc.record({ kind: fc.constant('void' as const), which: fc.nat(50) }),
);
type Deed = typeof deed extends fc.Arbitrary<infer T> ? T : never;
type Sizes = { readonly unit: Decimal; readonly currency: string };

function act(account: Account, one: Deed, { unit, currency }: Sizes): void {
  const charges = (lines: readonly { units: number; discount: number }[]) =>
    lines.map(({ units, discount }) => {
      const amount = unit.times(units);
      return charge(amount, roundMoney(amount.times(discount).dividedBy(10), currency));
    });
  if (one.kind === 'buy') return account.buy(unit.times(one.units));
  if (one.kind === 'invoice') return void account.invoice(charges(one.lines));
  const open = account.invoices.filter(({ isVoid }) => !isVoid);
  const invoiced = open[one.which % Math.max(1, open.length)];
  if (!invoiced) return;
  if (one.kind === 'void') return account.void(invoiced);
  const index = one.index % invoiced.lines.length;
  const { amount, discount } = invoiced.lines[index]!;
  if (one.kind === 'note') {
    const part = roundMoney(amount.minus(discount).times(one.tenths).dividedBy(10), currency);
    const most = computeLineRemainder(invoiced.lines[index]!).amount;
    const asked = Decimal.min(part, most);
    if (asked.gt(0)) account.note(invoiced, index, asked);
    return;
  }
  const isTouched = invoiced.lines.some(({ credited }) => !credited.isZero());
  const credit = roundMoney(amount.times(one.tenths).dividedBy(10), currency);
  if (!isTouched && credit.gt(0)) account.change(invoiced, index, { credit, charges: charges(one.charges) });
}

/** How many amounts are rounded on the way, each by half a unit at most, and a credit by its tax beside that. */
function roundingsOf({ invoices }: Account): number {
  return invoices.reduce((sum, { lines }) => sum + 2 * lines.length + 3, 0);
}

describe('the law of credits', () => {
  const deeds = fc.array(deed, { minLength: 1, maxLength: 12 });

  it('holds to the minor unit where no share has to be rounded', () => {
    // Tenths of tenths of a large round amount, with a fifth of tax. A change charges nothing, or more than it gives back.
    const exact = deeds.map((all) =>
      all
        .slice(0, 5)
        .map((one) => (one.kind === 'change' && one.charges.length > 0 ? { ...one, charges: [MORE] } : one)),
    );
    fc.assert(
      fc.property(exact, fc.boolean(), (all, taxes_before_credits) => {
        const account = new Account({ currency: 'usd', percent: '20', taxes_before_credits });
        for (const one of all) act(account, one, { unit: new Decimal(10).pow(10), currency: 'usd' });
        const { paid: money, owed } = account.drain();
        expect(money.toFixed()).to.equal(owed.toFixed());
      }),
      { numRuns: samples(500) },
    );
  });

  it('holds in every currency, less what is rounded', () => {
    const currency = fc.constantFrom('usd', 'jpy', 'kwd');
    const percent = fc.constantFrom('0', '7.5', '19', '20', '8.875');
    fc.assert(
      fc.property(deeds, currency, percent, fc.boolean(), (all, code, rate, taxes_before_credits) => {
        const account = new Account({ currency: code, percent: rate, taxes_before_credits });
        const least = new Decimal(10).pow(-minorUnits(code));
        for (const one of all) act(account, one, { unit: least.times(37), currency: code });
        const { paid: money, owed } = account.drain();
        expect(money.minus(owed).abs().dividedBy(least).toNumber()).to.be.at.most(roundingsOf(account));
      }),
      { numRuns: samples(500) },
    );
  });
});
