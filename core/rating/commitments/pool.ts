/**
 * Applies a commitment to usage (docs/rules/commitments.md, "What is paid"). Usage has its normal cost until the committed amount is used
 * up; the cost above it is multiplied by the factor. With a true-up the shortfall is charged. A pool is the committed amount of one term
 * with its draws so far, so that each period of the term pays its addition. Nothing is rounded here.
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';

/** A committed amount with its terms for overage and shortfall. */
export type CommittedAmount = {
  readonly amount: Decimal;
  readonly overage_factor: Decimal;
  readonly true_up: boolean;
};

export type CommitmentPool = Omit<CommittedAmount, 'true_up'> & {
  /** Cost of the usage that has drawn from the pool so far, before the commitment is applied. */
  readonly used: Decimal;
  /** True if the shortfall was charged; late usage within the committed amount then adds no charge. */
  readonly is_trued_up: boolean;
};

type PoolDraw = {
  /** Cost covered by the committed amount. */
  readonly utilized: Decimal;
  /** Overage before the factor. */
  readonly above: Decimal;
  /** Overage after the factor. */
  readonly overage: Decimal;
  readonly left: CommitmentPool;
};

/** Computes the amounts that usage adds to the charge; they are negative if usage is removed. */
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

/** Computes the charge of usage under a commitment. `used` is the cost of usage that drew from it before. */
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
