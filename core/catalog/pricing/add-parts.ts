/** Combines the parts of several charges into one explanation: one part per tier, in tier order. */
import type { ChargePart } from './terms.ts';

export function addParts(parts: readonly ChargePart[]): ChargePart[] {
  const byTier = new Map<number | null, ChargePart>();
  for (const part of parts) {
    const before = byTier.get(part.tier);
    byTier.set(part.tier, before === undefined ? part : plusPart(before, part));
  }
  return [...byTier.values()].sort((a, b) => (a.tier ?? 0) - (b.tier ?? 0));
}

function plusPart(a: ChargePart, b: ChargePart): ChargePart {
  return {
    tier: a.tier,
    units: a.units.plus(b.units),
    unit_amount: a.unit_amount,
    flat_amount: a.flat_amount.plus(b.flat_amount),
    amount: a.amount.plus(b.amount),
  };
}
