/** The order of money, and the laws that hold for all amounts: nothing is lost between the lines and the total. */
import { expect } from 'chai';
import currencyCodes from 'currency-codes';
import fc from 'fast-check';
import type { Coupon } from '../../../core/catalog/coupon/record.ts';
import { sumTax, toLineTaxes } from '../../../core/catalog/tax/line-tax.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import { checkCurrency, minorUnits } from '../../../core/foundation/money.ts';
import { spread } from '../../../core/foundation/spread.ts';
import { computeCreditAdjustments, sumBilledLines } from '../../../core/rating/credit-adjustments.ts';
import type { CouponInForce, DiscountShare, LineDiscount } from '../../../core/rating/discounts.ts';
import { type AdjustableLine, applyLineAdjustments, computeNetTotal } from '../../../core/rating/line-adjustments.ts';
import { computeTaxes, type RateInForce } from '../../../core/rating/taxes.ts';
import { buildPrepaidWallet } from '../../support/lots.ts';
import { samples } from '../../support/samples.ts';

const CURRENCIES = currencyCodes.codes().filter((code) => {
  try {
    return checkCurrency(code) !== '';
  } catch {
    return false;
  }
});

const currency = fc.constantFrom(...CURRENCIES.map((code) => code.toLowerCase()));
const units = fc.bigInt(0n, 10n ** 12n);
const inUnits = (amount: bigint, code: string) =>
  new Decimal(String(amount)).dividedBy(new Decimal(10).pow(minorUnits(code)));

function line(amount: Decimal | string, key: string, more: Partial<AdjustableLine> = {}): AdjustableLine {
  return { amount: new Decimal(amount), price_type: 'USAGE', key, charged_ms: null, ...more };
}

function coupon(type: 'fixed' | 'percentage', off: string, more: Partial<CouponInForce> = {}): CouponInForce {
  const terms = {
    id: off,
    type,
    amount_off: type === 'fixed' ? off : null,
    percentage_off: type === 'fixed' ? null : off,
  };
  const open = { line: null, start_ms: null, end_ms: null, coupon_association_id: null, subscription_id: null };
  return { ...open, coupon: terms as unknown as Coupon, ...more };
}

function rate(value: string, more: Partial<RateInForce['rate']> = {}): RateInForce {
  const terms = {
    tax_rate_type: 'percentage',
    tax_behavior: 'exclusive',
    percentage_value: value,
    fixed_value: null,
  } as const;
  return { rate: { id: `rate ${value}`, ...terms, ...more }, tax_association_id: null };
}
const fixedRate = (fixed_value: string) => rate('0', { tax_rate_type: 'fixed', fixed_value });
const inclusive = (value: string) => rate(value, { tax_behavior: 'inclusive' });

const percent = fc.integer({ min: 0, max: 10_000 }).map((share) => new Decimal(share).dividedBy(100).toFixed());
const anyCoupon = (lines: number) =>
  fc.record({
    type: fc.constantFrom('fixed' as const, 'percentage' as const),
    off: percent,
    of: fc.option(fc.nat(lines), { nil: null }),
  });
const anyRate = fc.oneof(
  percent.map((share) => rate(share)),
  percent.map(inclusive),
);

const anyInvoice = fc.record({
  code: currency,
  amounts: fc.array(units, { minLength: 1, maxLength: 8 }),
  coupons: fc.array(anyCoupon(7), { maxLength: 5 }),
  prepaid: fc.array(units, { maxLength: 2 }),
  rates: fc.array(anyRate, { maxLength: 3 }),
});

const forUsage = (balance: Decimal) => buildPrepaidWallet({ balance, price_types: ['USAGE'] });

describe('the order of money', () => {
  it('is lines, less discounts, less credits, and tax; by line as by invoice, in every currency', () => {
    const law = ({
      code,
      amounts,
      coupons,
      prepaid,
      rates,
    }: typeof anyInvoice extends fc.Arbitrary<infer T> ? T : never) => {
      const lines = amounts.map((amount, index) => line(inUnits(amount, code), String(index)));
      const settled = applyLineAdjustments(lines, {
        currency: code,
        coupons: coupons.map(({ type, off, of }) =>
          coupon(type, new Decimal(off).toDecimalPlaces(minorUnits(code)).toFixed(), {
            line: of === null ? null : String(of),
          }),
        ),
        prepaid: prepaid.map((balance) => forUsage(inUnits(balance, code))),
        rates,
      });
      const { adjustments: money, coupons_applied, taxes_applied } = settled;
      expect(settled.total.toFixed()).to.equal(computeNetTotal(settled).toFixed());
      for (const [index, one] of money.entries()) {
        const left = lines[index]!.amount.minus(one.line_item_discount).minus(one.invoice_level_discount);
        expect(left.minus(one.prepaid_credits_applied).isNegative(), 'nothing is taken off twice').to.equal(false);
        for (const part of [
          one.line_item_discount,
          one.invoice_level_discount,
          ...one.taxes.map((tax) => tax.tax_amount),
        ])
          expect(part.decimalPlaces()).to.be.at.most(minorUnits(code));
      }
      const discount = sumDecimals(money.map((one) => one.line_item_discount.plus(one.invoice_level_discount)));
      expect(discount.toFixed()).to.equal(settled.total_discount.toFixed());
      expect(sumDecimals(coupons_applied.map((one) => one.discounted_amount)).toFixed()).to.equal(discount.toFixed());
      const added = taxes_applied.filter(({ by }) => by.rate.tax_behavior === 'exclusive');
      expect(sumDecimals(added.map(({ tax_amount }) => tax_amount)).toFixed()).to.equal(settled.total_tax.toFixed());
      expect(sumDecimals(money.map(({ taxes }) => sumTax(taxes, 'exclusive'))).toFixed()).to.equal(
        settled.total_tax.toFixed(),
      );
    };
    fc.assert(fc.property(anyInvoice, law), { numRuns: samples(150) });
  });

  /** Given back with a fifth of tax: the tax is what it was, whatever is taxed now. */
  const back = (amount: string, tax: string) =>
    line(amount, 'back', {
      price_type: 'FIXED',
      credit_adjustments: {
        line_item_discount: ZERO,
        invoice_level_discount: ZERO,
        prepaid_credits_applied: ZERO,
        taxes: [{ tax_rate_id: 'old', tax_behavior: 'exclusive', tax_amount: new Decimal(tax) }],
      },
    });
  const purse = buildPrepaidWallet({ balance: new Decimal(1000) });

  it('reserved credits pay nothing, whichever kind of credits is left for them', () => {
    const ten = new Decimal(10);
    const both = buildPrepaidWallet({ balance: ten, balance_after_tax: ten });
    const pay = (reserved: number) => {
      const promised = [{ until: 1, credits: new Decimal(reserved) }];
      const paid = applyLineAdjustments([line('30', 'a')], { currency: 'usd', prepaid: [{ ...both, promised }] });
      return [...paid.prepaid_used, ...paid.used_after_tax].map((amount) => amount.toFixed());
    };
    expect([0, 5, 12].map(pay)).to.deep.equal([
      ['10', '10'],
      ['10', '5'],
      ['8', '0'],
    ]);
  });

  it('tax that comes back lowers what credits pay: nothing of it is lost', () => {
    const lines = [back('-67.74', '-12.87'), line('135.48', 'new')];
    const settled = applyLineAdjustments(lines, { currency: 'usd', prepaid: [purse] });
    expect(settled.total_prepaid_credits_applied.toFixed()).to.equal('54.87');
    expect(computeNetTotal(settled).toFixed()).to.equal('0');
    const taxed = applyLineAdjustments(lines, { currency: 'usd', prepaid: [purse], rates: [rate('10')] });
    expect([taxed.total_prepaid_credits_applied.toFixed(), computeNetTotal(taxed).toFixed()]).to.deep.equal([
      '62.2',
      '0',
    ]);
  });

  it('credits never make less than nothing of an invoice, and pay all that they can', () => {
    const cents = fc.integer({ min: 0, max: 20_000 }).map((amount) => new Decimal(amount).dividedBy(100).toFixed());
    const law = fc.property(cents, cents, cents, fc.array(anyRate, { maxLength: 2 }), (charged, given, tax, rates) => {
      const lines = [back(`-${given}`, `-${tax}`), line(charged, 'new')];
      const settle = (balance: Decimal) =>
        applyLineAdjustments(lines, { currency: 'usd', rates, prepaid: [buildPrepaidWallet({ balance })] });
      const [settled, without] = [settle(new Decimal(1000)), settle(ZERO)];
      const used = settled.total_prepaid_credits_applied;
      if (computeNetTotal(without).lt(0)) {
        expect(used.toFixed()).to.equal('0');
        return;
      }
      expect(computeNetTotal(settled).gte(0)).to.equal(true);
      const open = sumDecimals(lines.map(({ amount }) => amount)).minus(used);
      if (open.gt(0))
        expect(netWith(charged, new Decimal(given).plus(tax), { rates, credits: used.plus('0.01') }).lt(0)).to.equal(
          true,
        );
    });
    fc.assert(law, { numRuns: samples(300) });
  });

  /** Answers the net of the invoice, if credits paid this much of its charge. */
  function netWith(charged: string, back: Decimal, { rates, credits }: { rates: RateInForce[]; credits: Decimal }) {
    const rest = new Decimal(charged).minus(credits);
    const added = computeTaxes([rest], rates, 'usd').lines.map((taxes) => sumTax(taxes, 'exclusive'));
    return rest.plus(sumDecimals(added)).minus(back);
  }

  it('an amount is spread to its last minor unit, each part within a unit of its share', () => {
    const law = (code: string, weights: bigint[], share: number) => {
      const whole = weights.reduce((sum, one) => sum + one, 0n);
      const amount = (whole * BigInt(share)) / 100n;
      const parts = spread(
        inUnits(amount, code),
        weights.map((one) => inUnits(one, code)),
        code,
      );
      expect(sumDecimals(parts).toFixed()).to.equal(inUnits(amount, code).toFixed());
      for (const [index, part] of parts.entries()) {
        const exact = inUnits(amount, code)
          .times(String(weights[index]!))
          .dividedBy(whole === 0n ? 1 : String(whole));
        expect(part.minus(exact).abs().lt(inUnits(1n, code))).to.equal(true);
        expect(part.lte(inUnits(weights[index]!, code))).to.equal(true);
      }
    };
    const weights = fc.array(units, { minLength: 1, maxLength: 9 });
    fc.assert(fc.property(currency, weights, fc.integer({ min: 0, max: 100 }), law), { numRuns: samples(200) });
  });

  it('what is given back bit by bit takes all of its discounts and its tax with it, and never more', () => {
    const law = (amount: number, discount: number, tax: number, credits: number[]) => {
      const charged = {
        amount: String(amount),
        line_item_discount: String(Math.min(discount, amount)),
        invoice_level_discount: '0',
        prepaid_credits_applied: '0',
      };
      const share = { tax_rate_id: 'r', tax_behavior: 'exclusive' as const };
      let lines = [{ ...charged, taxes: [{ ...share, tax_amount: String(tax) }] }];
      let left = amount;
      for (const wanted of [...credits, amount]) {
        const credit = Math.min(wanted, left);
        left -= credit;
        if (credit === 0) continue;
        const back = computeCreditAdjustments(new Decimal(credit), sumBilledLines(lines), 'jpy');
        lines = [
          ...lines,
          {
            amount: String(-credit),
            line_item_discount: back.line_item_discount.toFixed(),
            invoice_level_discount: '0',
            prepaid_credits_applied: '0',
            taxes: toLineTaxes(back.taxes)?.map((one) => ({ ...one, ...share })) ?? [],
          },
        ];
        const rest = sumBilledLines(lines);
        expect(rest.line_item_discount.isNegative() || (rest.taxes[0]?.tax_amount.isNegative() ?? false)).to.equal(
          false,
        );
      }
      const rest = sumBilledLines(lines);
      expect([rest.amount, rest.line_item_discount, sumTax(rest.taxes, 'exclusive')].map(String)).to.deep.equal([
        '0',
        '0',
        '0',
      ]);
    };
    const amount = fc.integer({ min: 1, max: 5000 });
    fc.assert(fc.property(amount, amount, amount, fc.array(amount, { maxLength: 5 }), law), { numRuns: samples(150) });
  });

  it('sums billed lines in two steps as at once, with the discounts of each coupon', () => {
    const billed = fc.record({
      amount: fc.integer({ min: -500, max: 500 }).map(String),
      discounts: fc.array(
        fc.record({
          coupon_association_id: fc.constantFrom('one', 'two'),
          discount_amount: fc.integer({ min: -50, max: 50 }).map(String),
        }),
        { maxLength: 2 },
      ),
    });
    const law = (drawn: { amount: string; discounts: LineDiscount[] }[], cut: number) => {
      const lines = drawn.map((one) => ({
        ...one,
        line_item_discount: sumDecimals(
          one.discounts.map(({ discount_amount }) => new Decimal(discount_amount)),
        ).toFixed(),
        invoice_level_discount: '0',
        prepaid_credits_applied: '0',
      }));
      const inTwoSteps = sumBilledLines(lines.slice(cut), sumBilledLines(lines.slice(0, cut)));
      const sorted = (shares: readonly DiscountShare[] | undefined) =>
        [...(shares ?? [])].map((one) => `${one.coupon_association_id} ${one.discount_amount.toFixed()}`).sort();
      const atOnce = sumBilledLines(lines);
      expect(sorted(inTwoSteps.shares)).to.deep.equal(sorted(atOnce.shares));
      expect(inTwoSteps.line_item_discount.toFixed()).to.equal(atOnce.line_item_discount.toFixed());
    };
    fc.assert(fc.property(fc.array(billed, { maxLength: 4 }), fc.nat(4), law), { numRuns: samples(150) });
  });

  const cases: [string, AdjustableLine[], Parameters<typeof applyLineAdjustments>[1], Record<string, string>][] = [
    ['a rate of 0', [line('9.99', 'a')], { currency: 'usd', rates: [rate('0')] }, { total_tax: '0', total: '9.99' }],
    [
      'all of it off',
      [line('9.99', 'a'), line('1', 'b')],
      { currency: 'eur', coupons: [coupon('percentage', '100')], rates: [rate('19'), fixedRate('2')] },
      { total_discount: '10.99', total_tax: '0', total: '0' },
    ],
    [
      'yen',
      [line('101', 'a')],
      { currency: 'jpy', coupons: [coupon('percentage', '50')], rates: [rate('10')] },
      { total_discount: '51', total_tax: '5', total: '55' },
    ],
    [
      'dinars of thousandths',
      [line('1.005', 'a')],
      { currency: 'kwd', coupons: [coupon('percentage', '10')], rates: [rate('5')] },
      { total_discount: '0.101', total_tax: '0.045', total: '0.949' },
    ],
    [
      'a tax that is in the price',
      [line('119', 'a')],
      { currency: 'eur', rates: [inclusive('19')] },
      { total_tax: '0', total: '119' },
    ],
    [
      'a fixed tax',
      [line('50', 'a')],
      { currency: 'usd', rates: [fixedRate('1.5'), rate('10')] },
      { total_tax: '6.5', total: '56.5' },
    ],
    [
      'line coupons before those of the invoice',
      [line('100', 'a'), line('100', 'b')],
      {
        currency: 'usd',
        coupons: [
          coupon('percentage', '10'),
          coupon('fixed', '60', { line: 'a' }),
          coupon('percentage', '50', { line: 'a' }),
        ],
      },
      { total_discount: '110', total: '90' },
    ],
    [
      'what credits pay is not taxed',
      [line('100', 'a')],
      { currency: 'usd', prepaid: [forUsage(new Decimal('40'))], rates: [rate('10')] },
      { total_tax: '6', total: '66' },
    ],
    [
      'unless taxes come first',
      [line('100', 'a')],
      { currency: 'usd', prepaid: [forUsage(new Decimal('40'))], rates: [rate('10')], taxes_before_credits: true },
      { total_tax: '10', total: '70' },
    ],
    [
      'credits pay no more than what is left when something is given back',
      [line('100', 'a'), line('-30', 'b')],
      { currency: 'usd', prepaid: [forUsage(new Decimal('500'))] },
      { total_prepaid_credits_applied: '70', total: '0' },
    ],
    [
      'a wallet pays for the prices that it is for, and the next for the rest',
      [line('100', 'a'), { ...line('50', 'b'), price_type: 'FIXED' }],
      {
        currency: 'usd',
        prepaid: [forUsage(new Decimal('80.999')), buildPrepaidWallet({ balance: new Decimal('60') })],
      },
      { total_prepaid_credits_applied: '140.99', total: '9.01' },
    ],
    [
      'nor more than what was not paid before',
      [line('100', 'a')],
      { currency: 'usd', prepaid: [forUsage(new Decimal('500'))], amount_paid: new Decimal('90') },
      { total_prepaid_credits_applied: '10', amount_remaining: '0' },
    ],
  ];
  for (const [what, lines, terms, expected] of cases)
    it(what, () => {
      const settled = applyLineAdjustments(lines, terms);
      const said = Object.keys(expected).map((field) => [field, settled[field as 'total'].toFixed()]);
      expect(Object.fromEntries(said)).to.deep.equal(expected);
    });

  it('what a price holds of two taxes is told by rate, and what remains is the ground of a third', () => {
    const { taxes_applied } = applyLineAdjustments([line('125', 'a')], {
      currency: 'usd',
      rates: [inclusive('20'), inclusive('5'), rate('10')],
    });
    const told = taxes_applied.map(
      ({ taxable_amount, tax_amount }) => `${taxable_amount.toFixed()} ${tax_amount.toFixed()}`,
    );
    expect(told).to.deep.equal(['100 20', '100 5', '100 10']);
  });

  it('a coupon works on what is charged while it is in force, and on nothing that is given back', () => {
    const at = (charged_ms: number) => ({ charged_ms });
    const credit_adjustments = {
      line_item_discount: new Decimal('-1'),
      invoice_level_discount: ZERO,
      prepaid_credits_applied: ZERO,
      taxes: [],
    };
    const lines = [line('10', 'a', at(5)), line('10', 'b', at(10)), line('-10', 'c', { ...at(5), credit_adjustments })];
    const settled = applyLineAdjustments(lines, {
      currency: 'usd',
      coupons: [coupon('percentage', '30', { start_ms: 5, end_ms: 10 })],
    });
    const off = settled.adjustments.map((one) => one.line_item_discount.plus(one.invoice_level_discount).toFixed());
    expect(off).to.deep.equal(['3', '0', '-1']);
  });

  it('a fixed coupon takes off of a change what the change gives back of it', () => {
    const beside = { line_item_discount: ZERO, prepaid_credits_applied: ZERO, taxes: [] };
    const credit_adjustments = { ...beside, invoice_level_discount: new Decimal('-5') };
    const lines = [line('-25', 'a', { credit_adjustments }), line('40', 'b')];
    const settled = applyLineAdjustments(lines, {
      currency: 'usd',
      coupons: [coupon('fixed', '10', { is_returning: true })],
    });
    expect([settled.total_discount.toFixed(), settled.total.toFixed()]).to.deep.equal(['0', '15']);
  });
});
