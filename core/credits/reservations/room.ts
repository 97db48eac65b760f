/**
 * Decides whether a customer may use a number of units of a feature now (docs/rules/reservations.md, "What is answered"). Used, held and
 * requested units must fit into every hard limit. A soft limit may be exceeded, and the reason says so. A feature that the customer does
 * not have is refused. If usage cannot be read, the setting decides.
 */
import { Decimal, type DecimalInput, sumDecimals, ZERO } from '../../foundation/decimal.ts';
import type { GrantMeasure } from '../../rating/allowances/grants.ts';
import { computeAddedValue, type UnitValuation } from '../../rating/valued-usage.ts';

export const REASONS = [
  'entitled',
  'within_limit',
  'over_soft_limit',
  'limit_reached',
  'not_entitled',
  'not_enabled',
  'no_wallet',
  'insufficient_credits',
  'in_doubt',
] as const;
type ReservationReason = (typeof REASONS)[number];

/** One limit of the feature in the current window. */
export type FeatureLimit = {
  /** Null means unlimited. */
  readonly limit: Decimal | null;
  readonly is_soft_limit: boolean;
  readonly usage_reset_period: string | null;
  /** Measure of a limit from usage-ordered grants; null for other limits. */
  readonly grant_measure: GrantMeasure | null;
  readonly window_start: string;
  readonly window_end: string | null;
  /** Usage counted by the usage reader. */
  readonly counted: Decimal;
  /** Committed units that `counted` does not certainly include. */
  readonly committed: Decimal;
  /** Part of `committed` that `counted` may already include, because the usage reader does not read everything at one instant. */
  readonly doubtful: Decimal;
  /** Units held for other customers that share the limit. */
  readonly held_by_others: Decimal;
  /**
   * Set if the limit is in money. `limit` and `counted` are then amounts; this field values the other numbers, which
   * are units.
   */
  readonly valuation?: UnitValuation;
};

export type FeatureRoom =
  | { readonly kind: 'none'; readonly reason: 'not_entitled' | 'not_enabled' }
  /** The customer has the feature and nothing limits it. */
  | { readonly kind: 'open' }
  | { readonly kind: 'limited'; readonly limits: readonly FeatureLimit[]; readonly as_of: string }
  /** Usage could not be read. */
  | { readonly kind: 'unknown' };

export type ReservationVerdict = {
  readonly allowed: boolean;
  readonly reason: ReservationReason;
  /**
   * True if a retry may change the verdict or its numbers: a refused quantity would fit without the `doubtful` units, or the numbers of an
   * allowed one include such units.
   */
  readonly is_doubtful: boolean;
  /** Set if a limit refuses: true if the returned numbers include `doubtful` units. A retry may then return better numbers. */
  readonly is_unclear?: boolean;
};

type RoomQuery = { readonly quantity: Decimal; readonly held: Decimal; readonly when_in_doubt: 'deny' | 'allow' };

export function deriveFeatureVerdict(
  room: FeatureRoom,
  { quantity, held, when_in_doubt }: RoomQuery,
): ReservationVerdict {
  if (room.kind === 'none') return toVerdict(false, room.reason);
  if (room.kind === 'open') return toVerdict(true, 'entitled');
  if (room.kind === 'unknown') return toVerdict(when_in_doubt === 'allow', 'in_doubt');
  const over = room.limits.filter((limit) => isOverLimit(limit, held.plus(quantity), ZERO));
  const isUnclear = room.limits.some(({ doubtful }) => !doubtful.isZero());
  if (over.length === 0) return { ...toVerdict(true, 'within_limit'), is_doubtful: isUnclear };
  const hard = over.filter(({ is_soft_limit }) => !is_soft_limit);
  if (hard.length === 0) return { ...toVerdict(true, 'over_soft_limit'), is_doubtful: isUnclear };
  const certain = hard.filter((limit) => isOverLimit(limit, held.plus(quantity), limit.doubtful));
  return { ...toVerdict(false, 'limit_reached'), is_doubtful: certain.length === 0, is_unclear: isUnclear };
}

function toVerdict(allowed: boolean, reason: ReservationReason): ReservationVerdict {
  return { allowed, reason, is_doubtful: false };
}

function isOverLimit(of: FeatureLimit, more: Decimal, less: Decimal): boolean {
  const { limit, counted, committed, held_by_others } = of;
  const further = committed.minus(less).plus(held_by_others).plus(more);
  return limit !== null && counted.plus(convertToLimit(further, of)).gt(limit);
}

/** Converts units to the unit of the limit. */
function convertToLimit(units: Decimal, { valuation }: FeatureLimit): Decimal {
  return valuation ? computeAddedValue(units, valuation) : units;
}

/**
 * Builds the returned form of a limit. Committed units count as used, even if they are not counted yet. `held` is the quantity held for the
 * customer.
 */
export function showLimit(of: FeatureLimit, held: Decimal) {
  const { counted, committed, doubtful: _doubtful, held_by_others, limit, valuation: _valuation, ...fields } = of;
  const used = counted.plus(convertToLimit(committed, of));
  const taken = counted.plus(convertToLimit(committed.plus(held_by_others).plus(held), of));
  return {
    ...fields,
    limit: limit?.toFixed() ?? null,
    used: used.toFixed(),
    held: taken.minus(used).toFixed(),
    remaining: limit === null ? null : Decimal.max(ZERO, limit.minus(taken)).toFixed(),
  };
}

/** Limit with the least left, which the response describes. Hard limits come before soft ones; unlimited ones come last. */
export function findTightestLimit(limits: readonly FeatureLimit[]): FeatureLimit | undefined {
  const left = (one: FeatureLimit) =>
    one.limit?.minus(one.counted).minus(convertToLimit(one.committed.plus(one.held_by_others), one)) ?? null;
  return [...limits].sort((a, b) => {
    const [of, other] = [left(a), left(b)];
    if (of === null || other === null) return Number(of === null) - Number(other === null);
    return Number(a.is_soft_limit) - Number(b.is_soft_limit) || of.comparedTo(other);
  })[0];
}

/** Spendable credits of a wallet: usable credits less its debt, unpaid usage and holds. */
export function computeSpendable(of: {
  readonly usable: Decimal;
  readonly owed: DecimalInput;
  readonly unpaid: Decimal;
  readonly held: Decimal;
}): Decimal {
  return of.usable.minus(sumDecimals([new Decimal(of.owed), of.unpaid, of.held]));
}

/** Derives the verdict on credits. `left` is null if the spendable credits are unknown. */
export function deriveCreditsVerdict(of: {
  readonly is_active: boolean;
  readonly left: Decimal | null;
  /** Whether enough credits remain for the other holds of the wallet. */
  readonly keepsPromises: boolean;
  readonly quantity: Decimal;
  readonly when_in_doubt: 'deny' | 'allow';
}): ReservationVerdict {
  if (!of.is_active) return toVerdict(false, 'no_wallet');
  if (of.left === null) return toVerdict(of.when_in_doubt === 'allow', 'in_doubt');
  return of.keepsPromises && of.quantity.lte(of.left)
    ? toVerdict(true, 'within_limit')
    : toVerdict(false, 'insufficient_credits');
}
