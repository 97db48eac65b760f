/**
 * Order in which the credit lots of a wallet are used (docs/rules/wallets.md, "Which credits are used first"). A credit
 * lot is one credit with its remaining credits. Credit lots that pay before taxes come first. Among those, and among
 * the others, the order is: lower priority (null last), earlier expiry (null last), larger credit, older credit.
 */
import { Decimal, ZERO } from '../../foundation/decimal.ts';
import type { Milliseconds } from '../../foundation/time/instant.ts';

export type Lot = {
  readonly id: string;
  readonly credit_amount: Decimal;
  readonly available: Decimal;
  readonly priority: number | null;
  readonly expiry_ms: Milliseconds | null;
  readonly created_ms: Milliseconds;
  /** The credit came from an invoice and includes tax (docs/rules/wallets.md, "Before and after tax"). */
  readonly pays_after_tax: boolean;
};

/** Whether a credit lot pays an invoice before its taxes, or pays the rest after them. */
export type LotKind = 'before_tax' | 'after_tax';

/** Selects the credit lots of a kind; all credit lots if `kind` is undefined. */
export function filterLotsByKind(lots: readonly Lot[], kind: LotKind | undefined): readonly Lot[] {
  return kind === undefined ? lots : lots.filter(({ pays_after_tax }) => pays_after_tax === (kind === 'after_tax'));
}

export type LotPart = { readonly lot_id: string; readonly credits: Decimal };

/** A lot is usable up to and including the instant of its expiry. */
function isUsable(lot: Lot, at_ms: Milliseconds): boolean {
  return lot.available.gt(0) && (lot.expiry_ms === null || lot.expiry_ms >= at_ms);
}

export function sumUsableCredits(lots: readonly Lot[], at_ms: Milliseconds): Decimal {
  return lots.reduce((sum, lot) => (isUsable(lot, at_ms) ? sum.plus(lot.available) : sum), ZERO);
}

/** Takes credits from the usable lots in order of use; `lacking` is the rest that they cannot cover. */
export function takeFromLots(
  lots: readonly Lot[],
  credits: Decimal,
  at_ms: Milliseconds,
): { parts: LotPart[]; lacking: Decimal } {
  let lacking = credits;
  const parts: LotPart[] = [];
  for (const lot of lots.filter((one) => isUsable(one, at_ms)).sort(compareLots)) {
    if (lacking.isZero()) break;
    const taken = Decimal.min(lot.available, lacking);
    parts.push({ lot_id: lot.id, credits: taken });
    lacking = lacking.minus(taken);
  }
  return { parts, lacking };
}

export function deductFromLots(lots: readonly Lot[], parts: readonly LotPart[]): Lot[] {
  const taken = new Map<string, Decimal>();
  for (const { lot_id, credits } of parts) taken.set(lot_id, (taken.get(lot_id) ?? ZERO).plus(credits));
  return lots.map((lot) => ({ ...lot, available: lot.available.minus(taken.get(lot.id) ?? ZERO) }));
}

export function compareLots(a: Lot, b: Lot): number {
  return (
    Number(a.pays_after_tax) - Number(b.pays_after_tax) ||
    compareNullsLast(a.priority, b.priority) ||
    compareNullsLast(a.expiry_ms, b.expiry_ms) ||
    b.credit_amount.comparedTo(a.credit_amount) ||
    a.created_ms - b.created_ms ||
    (a.id < b.id ? -1 : 1)
  );
}

function compareNullsLast(a: number | null, b: number | null): number {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  return a - b;
}
