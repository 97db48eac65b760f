/** The discount for yearly payment, as a share of twelve months, and contradictions between discounts and prices. */
import { Decimal } from '../../foundation/decimal.ts';
import type { PricingFact } from './fact.ts';
import type { NotUnderstood } from './record.ts';

type DiscountedFact = Extract<PricingFact, { kind: 'base' | 'seat' }>;
/** How many of the twelve months are paid, and the wording of the discount. */
type YearlyDiscount = { readonly text: string; readonly months: Decimal };

export function deriveDiscounts(facts: readonly PricingFact[]): YearlyDiscount[] {
  return facts.flatMap((fact) => {
    if (fact.kind === 'yearly_discount')
      return [
        {
          text: `${fact.percent.toFixed()}% off by the year`,
          months: new Decimal('12').times(new Decimal('100').minus(fact.percent)).dividedBy('100'),
        },
      ];
    if (fact.kind === 'yearly_free_months')
      return [
        { text: `${fact.months.toFixed()} months free by the year`, months: new Decimal('12').minus(fact.months) },
      ];
    return [];
  });
}

type PaymentOptions = {
  readonly pairs: readonly { monthly: DiscountedFact; yearly: DiscountedFact }[];
  readonly byMonth: number;
};

/** Lists contradicting discounts. A given yearly price takes precedence over a discount, and the first discount over later ones. */
export function contradictions(
  discounts: readonly YearlyDiscount[],
  { pairs, byMonth }: PaymentOptions,
): NotUnderstood[] {
  const [first] = discounts;
  return discounts.flatMap(({ text, months }) => {
    const other = pairs.find(({ monthly, yearly }) => !isAbout(paidMonths(monthly, yearly), months));
    if (other)
      return [{ text, reason: `the price by the year is stated, and is another: ${formatAmounts(other.yearly)}` }];
    if (pairs.length === 0 && byMonth === 0)
      return [{ text, reason: 'nothing is paid by the month that it could be taken off' }];
    return isAbout(first!.months, months) ? [] : [{ text, reason: `something else is said, too: ${first!.text}` }];
  });
}

const formatAmounts = ({ moneys }: DiscountedFact) => moneys.map(({ amount }) => amount.toFixed()).join(', ');

function paidMonths(monthly: DiscountedFact, yearly: DiscountedFact): Decimal {
  const month = monthly.moneys[0]!.amount;
  return month.isZero() ? new Decimal('12') : yearly.moneys[0]!.amount.dividedBy(month);
}

/** Compares numbers of months with a tolerance of half a percent of a year, because prices are rounded to pleasant numbers. */
const isAbout = (a: Decimal, b: Decimal) => a.minus(b).abs().lte('0.06');
