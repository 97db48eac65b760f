/** The meaning of one phrase of a description. A null amount of money means free. */
import { Decimal } from '../../foundation/decimal.ts';
import type { ParsedInterval, ParsedMoney } from './cursor.ts';

/** End of a tier in a description: at the n-th unit, n units after the previous tier, or never. */
export type RateBound =
  | { readonly upTo: Decimal; readonly from?: Decimal }
  | { readonly next: Decimal }
  | { readonly open: true; readonly from?: Decimal };

/** Conjunction that connects a price with the words before it: "plus $10 …", "or $290 …". */
export type PriceConjunction = 'and' | 'or' | null;

export type PricingFact =
  | ({
      readonly kind: 'base';
      readonly moneys: readonly ParsedMoney[];
      readonly joined: PriceConjunction;
      readonly paid: ParsedInterval | null;
    } & ParsedInterval)
  | ({
      readonly kind: 'seat';
      readonly moneys: readonly ParsedMoney[];
      readonly unit: string;
      readonly joined: PriceConjunction;
      readonly paid: ParsedInterval | null;
    } & ParsedInterval)
  | {
      readonly kind: 'usage';
      readonly moneys: readonly ParsedMoney[];
      readonly unit: string | null;
      readonly per: Decimal;
      readonly after: Decimal | null;
      /** True for units beyond an allowance: "per additional call". */
      readonly isExtra: boolean;
    }
  | {
      readonly kind: 'rate';
      readonly money: ParsedMoney | null;
      readonly unit: string | null;
      readonly bound: RateBound;
      readonly per: Decimal;
    }
  | { readonly kind: 'once'; readonly moneys: readonly ParsedMoney[]; readonly name: string }
  | { readonly kind: 'trial'; readonly days: Decimal; readonly isExact: boolean }
  | { readonly kind: 'yearly_discount'; readonly percent: Decimal }
  | { readonly kind: 'yearly_free_months'; readonly months: Decimal }
  | { readonly kind: 'minimum'; readonly unit: string; readonly count: Decimal }
  | {
      readonly kind: 'allowance';
      readonly unit: string;
      readonly count: Decimal | null;
      readonly span: ParsedInterval | null;
      /** True for "up to": the number limits the use, and none of it is free. */
      readonly isMost: boolean;
    }
  | { readonly kind: 'feature'; readonly name: string }
  | { readonly kind: 'volume' };

/** Units that a customer pays for having, not for each use. */
const HAD = new Set(
  'seat user member license licence editor agent host node device admin employee contact location site store workspace project team-member developer'.split(
    ' ',
  ),
);

export const ONE = new Decimal('1');

export const monthly: ParsedInterval = { billing_period: 'MONTHLY', billing_period_count: 1 };

export const isMonthly = ({ billing_period, billing_period_count }: ParsedInterval) =>
  billing_period === 'MONTHLY' && billing_period_count === 1;

/** Whether customers have the unit, such as a user or a seat. An active user is no such unit, because it is counted by activity. */
export function isHad(unit: string): boolean {
  return HAD.has(unit.split(' ').at(-1)!) && !/\b(?:active|unique|distinct)\b/.test(unit);
}
