/**
 * Whether a customer may use so many units of a feature now (docs/rules/reservations.md, "What is answered"): what was used, what is held for others,
 * and what is asked for must fit into every limit that is hard; past one that is soft it goes on, and is told so. What the customer does not
 * have is refused, and what cannot be known goes as the setting says.
 */
import { Decimal, type DecimalInput, sumDecimals, ZERO } from '../decimal.ts';
import type { GrantMeasure } from '../entitlement/grants.ts';

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
export type ReservationReason = (typeof REASONS)[number];

/** One limit of the feature, in the window that runs. */
export type FeatureLimit = {
  /** Null is unlimited. */
  readonly limit: Decimal | null;
  readonly is_soft_limit: boolean;
  readonly usage_reset_period: string | null;
  /** Of what is granted bit by bit: what it is a limit of. */
  readonly grant_measure: GrantMeasure | null;
  readonly window_start: string;
  readonly window_end: string | null;
  /** As the reader of usage has counted it. */
  readonly counted: Decimal;
  /** Committed, and not in what was counted. */
  readonly committed: Decimal;
  /** Of that what may be in what was counted after all: the answer of the reader is not of one moment. */
  readonly doubtful: Decimal;
  /** For those who share the limit with the customer. */
  readonly held_by_others: Decimal;
  /** What so many units more use of a limit that is not one of units: the limit, and what was counted, are money. */
  readonly worth?: (units: Decimal) => Decimal;
};

export type FeatureRoom =
  | { readonly kind: 'none'; readonly reason: 'not_entitled' | 'not_enabled' }
  /** A feature that has no limits: it is there. */
  | { readonly kind: 'open' }
  | { readonly kind: 'limited'; readonly limits: readonly FeatureLimit[]; readonly as_of: string }
  /** Usage could not be read. */
  | { readonly kind: 'unknown' };

export type ReservationVerdict = {
  readonly allowed: boolean;
  readonly reason: ReservationReason;
  /** Of one that is not allowed: whether it would be if nothing were in doubt. Else whether its numbers are: it is worth looking again. */
  readonly is_doubtful: boolean;
  /** Of one that is not allowed either way: whether its numbers are in doubt. */
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
  const { limit, counted, committed, held_by_others, worth = identityWorth } = of;
  return limit !== null && counted.plus(worth(committed.minus(less).plus(held_by_others).plus(more))).gt(limit);
}

function identityWorth(units: Decimal): Decimal {
  return units;
}

/** A limit as it is answered: what was committed was used, whether it was counted yet or not. `held` is of the customer. */
export function showLimit(of: FeatureLimit, held: Decimal) {
  const { counted, committed, doubtful: _, held_by_others, limit, worth = identityWorth, ...fields } = of;
  const used = counted.plus(worth(committed));
  const taken = counted.plus(worth(committed.plus(held_by_others).plus(held)));
  return {
    ...fields,
    limit: limit?.toFixed() ?? null,
    used: used.toFixed(),
    held: taken.minus(used).toFixed(),
    remaining: limit === null ? null : Decimal.max(ZERO, limit.minus(taken)).toFixed(),
  };
}

/** Of which the least is left: the answer is about it. Hard ones come before soft ones, and those that are unlimited last. */
export function findTightestLimit(limits: readonly FeatureLimit[]): FeatureLimit | undefined {
  const left = ({ limit, counted, committed, held_by_others, worth = identityWorth }: FeatureLimit) =>
    limit?.minus(counted).minus(worth(committed.plus(held_by_others))) ?? null;
  return [...limits].sort((a, b) => {
    const [of, other] = [left(a), left(b)];
    if (of === null || other === null) return Number(of === null) - Number(other === null);
    return Number(a.is_soft_limit) - Number(b.is_soft_limit) || of.comparedTo(other);
  })[0];
}

/** What can be spent of a wallet: the credits that can be used, less what they will pay and what is held of them. */
export function computeSpendable(of: {
  readonly usable: Decimal;
  readonly owed: DecimalInput;
  readonly unpaid: Decimal;
  readonly held: Decimal;
}): Decimal {
  return of.usable.minus(sumDecimals([new Decimal(of.owed), of.unpaid, of.held]));
}

/** Of credits: null is what cannot be known. */
export function deriveCreditsVerdict(of: {
  readonly is_active: boolean;
  readonly left: Decimal | null;
  /** Whether it leaves what others were promised. */
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
