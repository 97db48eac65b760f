/**
 * Events that arrive or are corrected after the invoice of their period is final: the difference becomes a line of the next invoice, with
 * the reason (docs/rules/invoices.md, "Late events"). A difference in the customer's favour lowers the invoice to 0 at most. The excess
 * lowers the next invoice, and the last invoice credits all of it.
 */

import { Decimal, sumDecimals, ZERO } from '../foundation/decimal.ts';
import type { Period } from '../foundation/time/period.ts';
import type { Chain } from './chains/chain.ts';
import { ChainCharges } from './chains/charge-chains.ts';
import type { CommitmentPart } from './commitments/line.ts';
import type { CommitmentPool } from './commitments/pool.ts';
import { roundedAddition } from './commitments/rounded.ts';
import { toBaseAmount } from './committed-lines.ts';
import type { ComputedFrom } from './computed-from.ts';
import { type BilledLine, type BilledTotal, computeCreditAdjustments, sumBilledLines } from './credit-adjustments.ts';
import {
  type LineAmount,
  type MeasuredUsage,
  type PlannedLine,
  type PricedItem,
  priceUsageCharge,
} from './line-amount.ts';

/** A usage charge on final invoices, and the current measurement of its usage window. */
export type ClosedCharge<Item extends PricedItem = PricedItem> = {
  readonly item: Item;
  readonly service: Period;
  readonly usage_window: Period;
  /** Sums over the charge's own line and its corrections so far. */
  readonly billed_amount: Decimal;
  /** Billed amount before commitments. */
  readonly billed_base_amount?: Decimal;
  readonly billed_quantity: Decimal;
  readonly billed_event_count: number;
  readonly invoice_line_item_id: string;
  readonly measured: MeasuredUsage;
  /** Overbilled amount of progressive billing that later invoices could not offset yet. */
  readonly carried?: Decimal;
  /** Maximum credit of a manually edited charge: the amount billed after the edit. */
  readonly max_credit?: Decimal;
  /** Billed total including discounts and tax. */
  readonly billed?: BilledTotal;
  /** Credit lines of credit notes and refunds for the charge. */
  readonly returned?: readonly BilledLine[];
  /** Chain of the charge, with the current measurements of its lines; absent if the line was charged by itself. */
  readonly chained?: ClosedChain<Item>;
};

type ClosedChain<Item extends PricedItem = PricedItem> = {
  readonly chain: Chain<Item>;
  /** Measured usage of all lines of the chain, by `chargeKey`. */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  /** Number of late events over all lines of the chain. */
  readonly late_count: number;
};

/** Commitments of a charge that is recomputed. */
export type PriorCommitments<Item extends PricedItem> = {
  /** Derives the part of the line's own commitment that applies to a service period. */
  derivePart(item: Item, service: Period): CommitmentPart | undefined;
  /** Derives the committed amount that the charge shares with other charges; null if it shares none. */
  derivePool(item: Item, service: Period): CommitmentPool | null;
  /** Records the part of the commitment that a charge uses. Call it before `derivePool` of the next charge. */
  recordDraw(item: Item, service: Period, base_amount: Decimal): void;
};

type CorrectionInput<Item extends PricedItem> = {
  readonly currency: string;
  /** Maximum amount by which the invoice can be lowered; null for the last invoice, whose excess goes to the wallet. */
  readonly available: Decimal | null;
  readonly committed?: PriorCommitments<Item>;
};

const UNCOMMITTED: PriorCommitments<PricedItem> = {
  derivePart: () => undefined,
  derivePool: () => null,
  recordDraw: () => undefined,
};

export function planCorrections<Item extends PricedItem>(
  closed: readonly ClosedCharge<Item>[],
  { currency, available, committed = UNCOMMITTED }: CorrectionInput<Item>,
): PlannedLine<Item>[] {
  const usage = new Map(closed.flatMap(({ chained }) => [...(chained?.usage ?? [])]));
  const chains = new ChainCharges<Item>(usage);
  const differences = closed.map((charge) => computeDifference(charge, { currency, committed, chains }));
  // Charges precede credits, because they increase the amount that credits may lower.
  const ordered = [...differences].sort((a, b) => b.amount.comparedTo(a.amount));
  let room: Decimal | null = available;
  return ordered.flatMap(({ charge, today, amount, base_amount }) => {
    const granted = room === null ? amount : Decimal.max(amount, room.negated());
    room = room === null ? null : room.plus(granted);
    const isWhole = granted.eq(amount);
    const quantity = isWhole ? today.quantity.minus(charge.billed_quantity) : ZERO;
    if (granted.isZero() && quantity.isZero()) return [];
    const carried = isWhole || carriedForwardAmount(charge).isZero() ? null : granted.minus(amount);
    const base = base_amount && (isWhole || carried ? base_amount : base_amount.times(granted).dividedBy(amount));
    const computed_from = {
      ...today.computed_from,
      ...(base === null ? {} : { base_amount: base.toFixed() }),
      ...(carried === null ? {} : { carried_amount: carried.toFixed() }),
    };
    const line = correctionLine(charge, { quantity, amount: granted, computed_from }, isWhole || carried !== null);
    if (!granted.isNegative() || !charge.billed) return [line];
    const billed = sumBilledLines(charge.returned ?? [], charge.billed);
    return [{ ...line, credit_adjustments: computeCreditAdjustments(granted.negated(), billed, currency) }];
  });
}

type ChargeDifference<Item extends PricedItem> = {
  charge: ClosedCharge<Item>;
  today: LineAmount;
  amount: Decimal;
  /** Difference before commitments; null if no commitment applies. */
  base_amount: Decimal | null;
};

type CorrectionContext<Item extends PricedItem> = {
  currency: string;
  committed: PriorCommitments<Item>;
  chains: ChainCharges<Item>;
};

/**
 * Computes the difference between the current and the billed amount. A credit is limited to the billed amount less credit notes and
 * refunds.
 */
function computeDifference<Item extends PricedItem>(
  charge: ClosedCharge<Item>,
  input: CorrectionContext<Item>,
): ChargeDifference<Item> {
  const { returned = [], billed_amount } = charge;
  const difference = computeWholeDifference(charge, input);
  if (returned.length === 0) return difference;
  const left = sumDecimals([billed_amount, ...returned.map(({ amount }) => new Decimal(amount))]);
  return { ...difference, amount: Decimal.max(difference.amount, ZERO.minus(Decimal.max(ZERO, left))) };
}

function computeWholeDifference<Item extends PricedItem>(
  charge: ClosedCharge<Item>,
  { currency, committed, chains }: CorrectionContext<Item>,
): ChargeDifference<Item> {
  const { item, service, usage_window, measured, billed_amount, billed_base_amount = billed_amount } = charge;
  const part = committed.derivePart(item, service);
  const today = chains.price({ item, service, ...(charge.chained ? { chain: charge.chained.chain } : {}) }, (chained) =>
    priceUsageCharge(item, usage_window, { measured, currency, part, chained }),
  );
  const base_amount = toBaseAmount(today).minus(billed_base_amount);
  const pool = committed.derivePool(item, service);
  if (pool === null) {
    const isCommitted = today.computed_from.base_amount !== undefined;
    const amount = limitCredit(charge.max_credit, today.amount.minus(billed_amount));
    return { charge, today, amount, base_amount: isCommitted ? base_amount : null };
  }
  committed.recordDraw(item, service, base_amount);
  const amount = roundedAddition(pool, base_amount, currency).minus(carriedForwardAmount(charge));
  return { charge, today, amount: limitCredit(charge.max_credit, amount), base_amount };
}

function limitCredit(max_credit: Decimal | undefined, amount: Decimal): Decimal {
  return max_credit ? Decimal.max(amount, max_credit.negated()) : amount;
}

function carriedForwardAmount({ carried = ZERO }: Pick<ClosedCharge, 'carried'>): Decimal {
  return carried;
}

function correctionLine<Item extends PricedItem>(
  charge: ClosedCharge<Item>,
  difference: LineAmount,
  isFullyApplied: boolean,
): PlannedLine<Item> {
  const late = charge.chained?.late_count ?? charge.measured.event_count - charge.billed_event_count;
  const isOverbilled = late === 0 && carriedForwardAmount(charge).gt(0);
  return {
    item: charge.item,
    service: charge.service,
    display_name: `${charge.item.display_name} (${isOverbilled ? 'invoiced before' : 'late events'})`,
    parent_line_item_id: charge.invoice_line_item_id,
    quantity: difference.quantity,
    amount: difference.amount,
    computed_from: {
      ...difference.computed_from,
      // The recorded count stays old until the difference is fully applied, so that the next invoice checks this charge again.
      event_count: isFullyApplied ? charge.measured.event_count : charge.billed_event_count,
      ...(isOverbilled ? OVERBILLED : deriveReason(late)),
      billed_before: { amount: charge.billed_amount.toFixed(), quantity: charge.billed_quantity.toFixed() },
    },
  };
}

type CorrectionReason = Required<Pick<ComputedFrom, 'kind' | 'reason'>>;

const OVERBILLED: CorrectionReason = {
  kind: 'threshold_surplus',
  reason: 'threshold_surplus: more was invoiced before the period was over than its usage costs',
};

function deriveReason(late: number): CorrectionReason {
  if (late === 0)
    return {
      kind: 'corrected_events',
      reason: 'corrected_events: events of this period were corrected after its invoice was final',
    };
  const events = `${late} event${late === 1 ? '' : 's'}`;
  return { kind: 'late_events', reason: `late_events: ${events} of this period came after its invoice was final` };
}

/** Event count of a closed usage charge, as recorded on its invoice line. */
type RecordedWindow = { readonly window: Period; readonly event_count: number };

/**
 * Returns the event count that one query over all these windows finds if no event came late. If the windows are not contiguous and have
 * different starts, returns undefined: each window then needs its own query.
 */
export function expectedEventCount(recorded: readonly RecordedWindow[]): number | undefined {
  const sorted = [...recorded].sort((a, b) => a.window.start - b.window.start || a.window.end - b.window.end);
  const first = sorted[0];
  const last = sorted.at(-1);
  if (first === undefined || last === undefined) return 0;
  if (sorted.every(({ window }) => window.start === first.window.start)) return last.event_count;
  const isTiled = sorted.every(({ window }, index) => index === 0 || sorted[index - 1]!.window.end === window.start);
  return isTiled ? sorted.reduce((sum, { event_count }) => sum + event_count, 0) : undefined;
}
