/**
 * The commitment of a line item (docs/rules/commitments.md): in money or in units, for each billing period, for a longer term, or for each
 * window of its meter. For a commitment in units, the committed amount is the price of these units.
 */

import type { TimeBucket } from '../../catalog/price/time-buckets.ts';
import { chargeParts, type PriceTerms } from '../../catalog/pricing/charge.ts';
import { Decimal, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';
import type { RecurringPeriod } from '../../foundation/time/period.ts';
import type { WindowGrid, WindowSize } from '../../foundation/time/window.ts';
import { applyCommitment, type CommittedAmount, type CommittedCharge } from './pool.ts';
import { roundedCharge } from './rounded.ts';

export type LineCommitment = {
  readonly type: 'amount' | 'quantity';
  /** Null if only the price's times of day (`time_buckets`) have commitments. */
  readonly value: Decimal | null;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
  /** Duration, if it is longer than the billing period of the line; null means one billing period, or one window. */
  readonly duration: RecurringPeriod | null;
  /** Windows of the meter; null if the commitment is not windowed. */
  readonly windows: (WindowGrid & { readonly size: WindowSize }) | null;
  readonly time_buckets: readonly TimeBucket[];
};

export type CommitmentPart = {
  /** Share of the committed amount: less than 1 for a period that is cut, more than 1 for several periods. */
  readonly share: Decimal;
  /** Part of the committed amount that earlier charges of the term or period have used. */
  readonly used: Decimal;
  /** Start of the term; set only for a commitment over several periods. */
  readonly is_last: boolean;
  /**
   * True for a commitment over several periods: its earlier charges have drawn `used`. If false, `used` is the cost of earlier lines in the
   * period, and the committed amount is lowered by it.
   */
  readonly since?: Milliseconds;
  /**
   * True for a commitment over several periods. Otherwise `used` of earlier lines in the period lowers the committed
   * amount.
   */
  readonly is_term: boolean;
};

export const WHOLE_COMMITMENT: CommitmentPart = { share: new Decimal(1), used: ZERO, is_last: true, is_term: false };

/**
 * Charges the priced usage of a period under the commitment. `amount` is the committed amount that applies: for lines
 * of one period, the rest that earlier lines left, rounded like their charges. If `is_trued_up`, the shortfall is
 * charged.
 */
export function committedCharge(
  usage: Decimal,
  { commitment, price, part }: { commitment: LineCommitment; price: PriceTerms; part: CommitmentPart },
): {
  /** Charge under the commitment, before rounding. */
  readonly charged: CommittedCharge;
  readonly rounded: CommittedCharge;
  readonly amount: Decimal;
  readonly is_trued_up: boolean;
} {
  const { used, is_term, is_last } = part;
  const whole = committedAmount(commitment.type, commitment.value ?? ZERO, price);
  const all = roundMoney(whole.times(part.share), price.currency);
  const amount = is_term ? all : Decimal.max(ZERO, all.minus(roundMoney(used, price.currency)));
  const committed: CommittedAmount = { ...commitment, amount, true_up: commitment.true_up && is_last };
  const drawn_before = is_term ? used : ZERO;
  return {
    charged: applyCommitment(usage, committed, drawn_before),
    rounded: roundedCharge(usage, committed, { used: drawn_before, currency: price.currency }),
    amount,
    is_trued_up: is_term ? commitment.true_up : committed.true_up,
  };
}

export function committedAmount(type: LineCommitment['type'], value: Decimal, price: PriceTerms): Decimal {
  return type === 'amount' ? value : sumDecimals(chargeParts(price, value).map((part) => part.amount));
}
