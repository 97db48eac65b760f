/**
 * Shared by both tier modes of TIERED: the order of tiers, and the check whether they are valid (docs/rules/pricing.md,
 * "Which tiers are valid").
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import { invalid } from '../../foundation/error.ts';
import { amountText, checkNotNegative } from './amount.ts';
import type { TierTerms } from './terms.ts';

/** Sorts tiers by `up_to`, the open tier last, which is the order in which they are filled. */
export function sortTiers<Tier extends Pick<TierTerms, 'up_to'>>(tiers: readonly Tier[]): Tier[] {
  return [...tiers].sort((a, b) => {
    if (isOpen(a) || isOpen(b)) return Number(isOpen(a)) - Number(isOpen(b));
    return new Decimal(a.up_to ?? 0).comparedTo(b.up_to ?? 0);
  });
}

export function checkTiers(field: string, tiers: readonly TierTerms[] | null | undefined): void {
  if (!tiers || tiers.length === 0) throw invalid(field, 'needs at least one tier for TIERED');
  let previous = ZERO;
  for (const [index, tier] of sortTiers(tiers).entries()) {
    const at = `${field}[${index}]`;
    checkNotNegative(`${at}.unit_amount`, tier.unit_amount);
    checkNotNegative(`${at}.flat_amount`, tier.flat_amount ?? ZERO);
    const isLast = index === tiers.length - 1;
    if (isOpen(tier) !== isLast) throw invalid(`${at}.up_to`, 'must be null on the last tier, and only there');
    if (isOpen(tier)) continue;
    const up_to = new Decimal(tier.up_to!);
    if (up_to.lte(0)) throw invalid(`${at}.up_to`, 'must be greater than 0');
    if (up_to.lte(previous)) throw invalid(`${at}.up_to`, 'must be greater than that of the tier before');
    previous = up_to;
  }
}

export function isOpen({ up_to }: Pick<TierTerms, 'up_to'>): boolean {
  return up_to === null || up_to === undefined;
}

/** With SLAB each tier prices the units that fall in it; with VOLUME the tier that contains the quantity prices all of it. */
export function tiersText(tier_mode: string, tiers: readonly TierTerms[] | null | undefined): string {
  return `${tier_mode}: ${(tiers ?? []).map(tierText).join(', ')}`;
}

function tierText(tier: TierTerms): string {
  const where = isOpen(tier) ? 'above' : `up to ${tier.up_to}`;
  const flat = new Decimal(tier.flat_amount ?? ZERO);
  return `${where} ${amountText(tier.unit_amount)}${flat.isZero() ? '' : ` and ${flat.toFixed()} once`}`;
}
