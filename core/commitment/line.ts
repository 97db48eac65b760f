/**
 * The commitment of a line item (docs/rules/commitments.md): in money or in units, for each billing period, for a longer term,
 * or for each window of its meter. Units are priced first: what they cost is the committed amount.
 */
import { Decimal, sumOf, ZERO } from '../decimal.ts';
import { roundMoney } from '../money.ts';
import type { TimeBucket } from '../price/time-buckets.ts';
import { chargeParts, type PriceTerms } from '../pricing/charge.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { RecurringPeriod } from '../time/period.ts';
import type { WindowGrid, WindowSize } from '../time/window.ts';
import { applyCommitment, type Charged, type Committed } from './pool.ts';

export type LineCommitment = {
  readonly type: 'amount' | 'quantity';
  /** Null where times of day alone have a commitment. */
  readonly value: Decimal | null;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
  /** Longer than the billing period of the line; null is one billing period, or one window. */
  readonly duration: RecurringPeriod | null;
  /** Of a windowed one: the windows of the meter. */
  readonly windows: (WindowGrid & { readonly size: WindowSize }) | null;
  readonly time_buckets: readonly TimeBucket[];
};

/** Which part of a commitment a charge is about. */
export type CommitmentPart = {
  /** Of the committed amount: less than 1 of a period that is cut, more of several periods together. */
  readonly share: Decimal;
  /** What was drawn in the term before. */
  readonly used: Decimal;
  /** Whether what is lacking is charged now: at the end of the term. */
  readonly is_last: boolean;
  /** When the term began, where it is one of several periods. */
  readonly since?: Milliseconds;
};

export const WHOLE_COMMITMENT: CommitmentPart = { share: new Decimal(1), used: ZERO, is_last: true };

/** What a period's usage, priced already, costs under the commitment. */
export function committedCharge(
  usage: Decimal,
  { commitment, price, part }: { commitment: LineCommitment; price: PriceTerms; part: CommitmentPart },
): Charged & { readonly amount: Decimal } {
  const whole = committedAmount(commitment.type, commitment.value ?? ZERO, price);
  const amount = roundMoney(whole.times(part.share), price.currency);
  const committed: Committed = { ...commitment, amount, true_up: commitment.true_up && part.is_last };
  return { ...applyCommitment(usage, committed, part.used), amount };
}

export function committedAmount(type: LineCommitment['type'], value: Decimal, price: PriceTerms): Decimal {
  return type === 'amount' ? value : sumOf(chargeParts(price, value).map((part) => part.amount));
}
