/**
 * The sum behind the amount of a line, from its `computed_from`: the parts of the price as the service has priced them, and the steps
 * that follow. Nothing is priced here; the sum of the parts is shown only where it alone decides the amount.
 */
import { addDecimals, compareDecimals, isZero, shiftDecimal } from '../decimals.ts';
import type { InvoiceLine } from '../invoice.ts';

export type PartPlace = 'first' | 'next' | 'last' | 'all' | 'units' | 'packages';

export type PricedPart = {
  readonly key: string;
  readonly place: PartPlace;
  readonly units: string;
  readonly unit_amount: string;
  /** A flat amount of the tier; null without one. */
  readonly flat_amount: string | null;
  readonly amount: string;
};

/** A step between the sum of the parts and the amount, with its figures. */
export type ExplainedStep =
  | { readonly kind: 'share'; readonly share: string }
  | { readonly kind: 'chain'; readonly until_end: string; readonly until_begin: string }
  | { readonly kind: 'utilized' | 'overage' | 'true_up' | 'less' | 'term'; readonly amount: string }
  | { readonly kind: 'edited'; readonly amount: string; readonly quantity: string };

export type LineExplanation = {
  readonly parts: readonly PricedPart[];
  readonly units: string;
  readonly cost: string;
  readonly steps: readonly ExplainedStep[];
  /** The exact amount that was rounded once; null if a step above decides the amount, too. */
  readonly rounded_from: string | null;
  readonly is_rounded: boolean;
  /** Units that entitlements or grants make free. */
  readonly free_units: string | null;
};

type BreakdownPart = {
  tier?: number | null;
  units: string;
  unit_amount: string;
  flat_amount?: string | null;
  amount: string;
};

/** Null for a line that was written by hand. */
export function explainLine(line: InvoiceLine): LineExplanation | null {
  const from = line.computed_from;
  if (!from) return null;
  const breakdown = (from.breakdown ?? []) as BreakdownPart[];
  const mode = from.price?.['tier_mode'];
  const model = typeof from.price?.['billing_model'] === 'string' ? from.price['billing_model'] : '';
  const parts = breakdown.map((part, index) => ({
    key: String(index),
    place: findPlace(part, { index, count: breakdown.length, model, is_volume: mode === 'VOLUME' }),
    units: part.units,
    unit_amount: part.unit_amount,
    flat_amount: part.flat_amount && !isZero(part.flat_amount) ? part.flat_amount : null,
    amount: part.amount,
  }));
  const cost = addDecimals(parts.map(({ amount }) => amount));
  const steps = listSteps(line);
  const isAlone = steps.length === 0 && parts.length > 0;
  const free = line.adjusted_entitlement_quantity;
  return {
    parts,
    units: addDecimals(parts.map(({ units }) => units)),
    cost,
    steps,
    rounded_from: isAlone ? cost : null,
    is_rounded: isAlone && compareDecimals(cost, line.amount) !== 0,
    free_units: free && !isZero(free) ? free : null,
  };
}

function findPlace(
  { tier }: BreakdownPart,
  { index, count, model, is_volume }: { index: number; count: number; model: string; is_volume: boolean },
): PartPlace {
  if (model === 'PACKAGE') return 'packages';
  if (tier === null || tier === undefined) return 'units';
  if (is_volume) return 'all';
  if (tier === 0) return 'first';
  return index === count - 1 ? 'last' : 'next';
}

function listSteps({ computed_from, commitment_info: info }: InvoiceLine): ExplainedStep[] {
  const from = computed_from!;
  const steps: ExplainedStep[] = [];
  if (from.proration) steps.push({ kind: 'share', share: from.proration });
  if (from.chain) {
    const { until_begin, until_end } = from.chain;
    if (from.chain.lines.length > 1) steps.push({ kind: 'chain', until_begin, until_end });
  }
  if (info) {
    steps.push({ kind: 'utilized', amount: info.computed_commitment_utilized_amount });
    if (!isZero(info.computed_overage_amount)) steps.push({ kind: 'overage', amount: info.computed_overage_amount });
    if (!isZero(info.computed_true_up_amount)) steps.push({ kind: 'true_up', amount: info.computed_true_up_amount });
  }
  if (from.of_term && !info) steps.push({ kind: 'term', amount: from.of_term.used });
  if (from.less) steps.push({ kind: 'less', amount: from.less.amount });
  if (from.edited) steps.push({ kind: 'edited', ...from.edited });
  return steps;
}

/** Numbers of units for which a price is shown, by their power of ten. */
export const POWER_NAMES = { 0: '1', 3: '1 K', 6: '1 M' } as const;

/** A unit price that people can read: 0.00003 is 30 per million. `power` is that of ten by which it was multiplied. */
export function toReadablePrice(unit_amount: string): { amount: string; power: 0 | 3 | 6 } {
  const zeros = /^-?0\.(0*)/.exec(unit_amount)?.[1]?.length ?? 0;
  const power = zeros < 2 || isZero(unit_amount) ? 0 : zeros < 4 ? 3 : 6;
  return { amount: shiftDecimal(unit_amount, power), power };
}
