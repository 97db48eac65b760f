/**
 * What a commitment makes of usage (docs/rules/commitments.md, "What is paid"): usage costs what it costs until the committed
 * amount is used up, and what is above so many times as much; with a true-up what is lacking is charged. A pool is the
 * committed amount of one term with what was drawn from it so far, so that a commitment over several periods bills in each of
 * them what that period adds. Nothing is rounded here.
 */
import { Decimal, ZERO } from '../decimal.ts';

/** One committed amount, and what is above it. */
export type CommittedAmount = {
  readonly amount: Decimal;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
};

export type CommitmentPool = Omit<CommittedAmount, 'true_up'> & {
  /** Charges of usage, before the commitment, that were drawn from it. */
  readonly used: Decimal;
  /** What was lacking is paid: usage that comes late and lies within costs nothing more. */
  readonly is_trued_up: boolean;
};

export type PoolDraw = {
  /** Paid out of the committed amount. */
  readonly utilized: Decimal;
  /** Above it, before the factor. */
  readonly above: Decimal;
  /** Above it, after the factor. */
  readonly overage: Decimal;
  readonly left: CommitmentPool;
};

/** What so much usage adds to what is paid; less than nothing where usage is taken back. */
export function drawFrom(pool: CommitmentPool, usage: Decimal): PoolDraw {
  const used = pool.used.plus(usage);
  const above = computeAbove(pool, used).minus(computeAbove(pool, pool.used));
  return {
    utilized: pool.is_trued_up ? ZERO : usage.minus(above),
    above,
    overage: above.times(pool.overage_factor),
    left: { ...pool, used },
  };
}

/** What is lacking to the committed amount. */
export function lackingAmount({ amount, used }: CommitmentPool): Decimal {
  return Decimal.max(ZERO, amount.minus(used));
}

function computeAbove({ amount }: CommitmentPool, used: Decimal): Decimal {
  return Decimal.max(ZERO, used.minus(amount));
}

export type CommittedCharge = {
  readonly charge: Decimal;
  readonly utilized: Decimal;
  readonly overage: Decimal;
  readonly true_up: Decimal;
};

export const NOTHING: CommittedCharge = { charge: ZERO, utilized: ZERO, overage: ZERO, true_up: ZERO };

/** What usage costs under a commitment of which `used` was drawn before. */
export function applyCommitment(usage: Decimal, committed: CommittedAmount, used: Decimal = ZERO): CommittedCharge {
  const { utilized, overage, left } = drawFrom({ ...committed, used, is_trued_up: false }, usage);
  const true_up = committed.true_up ? lackingAmount(left) : ZERO;
  return { charge: utilized.plus(overage).plus(true_up), utilized, overage, true_up };
}

export function addCharged(a: CommittedCharge, b: CommittedCharge): CommittedCharge {
  return {
    charge: a.charge.plus(b.charge),
    utilized: a.utilized.plus(b.utilized),
    overage: a.overage.plus(b.overage),
    true_up: a.true_up.plus(b.true_up),
  };
}
