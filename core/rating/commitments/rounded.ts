/**
 * Rounds the parts of a committed charge to minor units (docs/rules/commitments.md, "What is paid"). Each part is the rounded amount up to
 * its end, less the rounded amount up to its start. So the parts add up to the line, and the true-up is the commitment less the rounded
 * use. The periods of a term are rounded in the same way, so they add up to the term.
 */
import type { Decimal } from '../../foundation/decimal.ts';
import { roundMoney } from '../../foundation/money.ts';
import { applyCommitment, type CommitmentPool, type CommittedAmount, type CommittedCharge } from './pool.ts';

export function roundParts(
  { utilized, overage, true_up }: Omit<CommittedCharge, 'charge'>,
  currency: string,
): CommittedCharge {
  const within = roundMoney(utilized, currency);
  const used = roundMoney(utilized.plus(overage), currency);
  const charge = roundMoney(utilized.plus(overage).plus(true_up), currency);
  return { charge, utilized: within, overage: used.minus(within), true_up: charge.minus(used) };
}

/** Computes the rounded charge of usage in a term. `used` is the cost of usage that drew from the term before. */
export function roundedCharge(
  usage: Decimal,
  committed: CommittedAmount,
  { used, currency }: { used: Decimal; currency: string },
): CommittedCharge {
  const before = roundParts(applyCommitment(used, { ...committed, true_up: false }), currency);
  const after = roundParts(applyCommitment(used.plus(usage), committed), currency);
  return {
    charge: after.charge.minus(before.charge),
    utilized: after.utilized.minus(before.utilized),
    overage: after.overage.minus(before.overage),
    true_up: after.true_up,
  };
}

/** Computes the rounded charge that late usage adds to a pool; it is negative if usage is removed. */
export function roundedAddition(pool: CommitmentPool, usage: Decimal, currency: string): Decimal {
  const { used, is_trued_up } = pool;
  const { utilized, overage } = roundedCharge(usage, { ...pool, true_up: false }, { used, currency });
  return is_trued_up ? overage : utilized.plus(overage);
}
