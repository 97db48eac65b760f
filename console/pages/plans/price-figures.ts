/** Figures of the price editor: decimal strings in other units, and the quantities whose cost draws the curve. */
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { CurvePoint } from '../../charts/series.ts';
import { isTiered, type PriceDraft } from './price-draft.ts';

/** Prices are shown per 1, per 1,000 or per 1,000,000 units, as powers of ten. */
export const SCALES = [0, 3, 6] as const;
export type PriceScale = (typeof SCALES)[number];

/** A price per unit as the price of 10^power units. */
export function scalePrice(amount: string, power: number): string {
  return amount === '' ? '' : new Decimal(amount).times(new Decimal(10).pow(power)).toFixed();
}

/** The smallest scale in which the least price of the draft can be read: a cent, or a tenth of a larger scale. */
export function chooseScale(draft: PriceDraft): PriceScale {
  const prices = isTiered(draft.model) ? draft.tiers.map(({ unit_amount }) => unit_amount) : [draft.amount];
  const known = prices.filter((price) => price !== '' && !new Decimal(price).isZero());
  if (draft.model === 'flat' || draft.model === 'package' || known.length === 0) return 0;
  const least = Decimal.min(...known);
  if (least.gte('0.01')) return 0;
  return least.gte('0.0001') ? 3 : 6;
}

/** The priced answer of one quantity. */
export type PricedQuantity = {
  readonly quantity: string;
  readonly amount: string;
  readonly amount_rounded: string;
  readonly lines: readonly PricedTier[];
};
export type PricedTier = {
  readonly from: string;
  readonly up_to: string | null;
  readonly quantity: string;
  readonly unit_amount: string;
  readonly flat_amount: string | null;
  readonly amount: string;
};

const EVEN_POINTS = 24;
const PACKAGES_MAX = 40;
/** The service prices up to 500 quantities in one request. */
const ENDS_MAX = 180;

/** The last bound of the tiers, or null without one. */
export function findLastEnd(draft: PriceDraft): string | null {
  if (!isTiered(draft.model)) return null;
  return draft.tiers.findLast(({ up_to }) => up_to !== '')?.up_to ?? null;
}

/** The quantity that a reader sees first: beyond the last bound, so that every tier has a part. */
export function suggestQuantity(draft: PriceDraft): string {
  const end = findLastEnd(draft);
  if (end !== null) return new Decimal(end).times('1.2').toFixed(0);
  if (draft.model === 'flat') return '1';
  if (draft.model === 'package' && draft.divide_by !== '') return new Decimal(draft.divide_by).times('2.5').toFixed(0);
  return draft.type === 'FIXED' ? '10' : '1000000';
}

/**
 * The quantities of the curve, in order and each once: 0, even steps to a little beyond the chosen one and the last bound, and both sides
 * of each bound, where the cost may jump.
 */
export function listCurveQuantities(draft: PriceDraft, chosen: string): string[] {
  const end = Decimal.max(chosen, findLastEnd(draft) ?? '0', '1')
    .times('1.15')
    .ceil();
  const quantities = [...evenSteps(end), ...bounds(draft, end)].filter((quantity) => quantity.gte(0));
  const least = draft.type === 'FIXED' && draft.min_quantity !== '' ? new Decimal(draft.min_quantity) : new Decimal(0);
  const texts = new Set(
    quantities
      .filter((quantity) => quantity.gte(least) && quantity.lte(end))
      .sort((a, b) => a.comparedTo(b))
      .map((quantity) => quantity.toFixed()),
  );
  return [...texts];
}

function evenSteps(end: Decimal): Decimal[] {
  return Array.from({ length: EVEN_POINTS + 1 }, (_, step) => end.times(step).dividedBy(EVEN_POINTS).floor());
}

function bounds(draft: PriceDraft, end: Decimal): Decimal[] {
  const ends = isTiered(draft.model)
    ? draft.tiers.filter(({ up_to }) => up_to !== '').map(({ up_to }) => new Decimal(up_to))
    : draft.model === 'package' && draft.divide_by !== ''
      ? listPackageEnds(new Decimal(draft.divide_by), end)
      : [];
  return [new Decimal(1), ...ends.slice(0, ENDS_MAX).flatMap((bound) => [bound, bound.plus(1)])];
}

function listPackageEnds(size: Decimal, end: Decimal): Decimal[] {
  if (size.lte(0) || end.dividedBy(size).gt(PACKAGES_MAX)) return [];
  return Array.from({ length: end.dividedBy(size).floor().toNumber() }, (_, at) => size.times(at + 1)).flatMap(
    (each) => [each.minus(1), each],
  );
}

/** The quantity after the chosen one: a further unit, thousand or million. */
export function addScale(quantity: string, power: PriceScale): string {
  return new Decimal(quantity).plus(new Decimal(10).pow(power)).toFixed();
}

/** Cost of 10^power units on average, in six digits; null of quantity 0. */
export function computeAverage(cost: Pick<PricedQuantity, 'quantity' | 'amount'>, power: PriceScale): string | null {
  const quantity = new Decimal(cost.quantity);
  if (quantity.isZero()) return null;
  return new Decimal(cost.amount)
    .times(new Decimal(10).pow(power))
    .dividedBy(quantity)
    .toSignificantDigits(6)
    .toFixed();
}

export function subtractAmounts(amount: string, subtracted: string): string {
  return new Decimal(amount).minus(subtracted).toFixed();
}

/** Cost of each tier at its end, in the order of the tiers; null of the open one, and of those that are not known. */
export function listTierTotals(draft: PriceDraft, costs: ReadonlyMap<string, PricedQuantity>): (string | null)[] {
  return draft.tiers.map(({ up_to }) => {
    const cost = up_to === '' ? undefined : costs.get(up_to);
    if (!cost) return null;
    return draft.model === 'volume' ? cost.amount : (cost.lines.at(-1)?.amount ?? null);
  });
}

export function buildCurve(
  draft: PriceDraft,
  quantities: readonly string[],
  costs: ReadonlyMap<string, PricedQuantity>,
) {
  const ends = new Set(isTiered(draft.model) ? draft.tiers.map(({ up_to }) => up_to) : []);
  const inOrder = [...quantities].sort((a, b) => new Decimal(a).comparedTo(b));
  return inOrder.flatMap((quantity): CurvePoint[] => {
    const cost = costs.get(quantity);
    return cost ? [{ quantity, amount: cost.amount, isTierEnd: ends.has(quantity) }] : [];
  });
}

/** The costs of the answer by the text of their quantity in the request. */
export function indexCosts(
  quantities: readonly string[],
  items: readonly PricedQuantity[],
): Map<string, PricedQuantity> {
  return new Map(items.map((item, at) => [quantities[at] ?? item.quantity, item]));
}
