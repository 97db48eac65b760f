/**
 * Plans the invoice of a period. Preview, draft and recomputation share this one function, so that they cannot disagree
 * (docs/rules/invoices.md, "Preview and invoice agree"). Lines are rounded, then added up (docs/rules/numbers.md, "Each line first, then
 * the sum"). Charges on another invoice that is not void are left out (docs/rules/invoices.md, "Charged once"). Line amounts are computed
 * in line-amount.ts.
 */

import { sumDecimals } from '../foundation/decimal.ts';
import { FarthingError } from '../foundation/error.ts';
import type { Milliseconds } from '../foundation/time/instant.ts';
import type { Period } from '../foundation/time/period.ts';
import { type Chain, computeChainUsageWindow } from './chains/chain.ts';
import { ChainCharges, chargeKey } from './chains/charge-chains.ts';
import { type BilledItem, type ChargeInput, type DueCharge, nextPeriod, planDueCharges } from './charges.ts';
import { type CommitmentPartInput, commitmentPart, drawInOrder, type RecordedUsage } from './commitments/part.ts';
import type { PoolFacts, SubscriptionCommitment } from './commitments/subscription.ts';
import { buildPriorCommitments } from './committed-before.ts';
import { applySubscriptionCommitment, planTrueUp, toBaseAmount } from './committed-lines.ts';
import { applyCoupons, type CouponInForce, type LineDiscounts } from './discounts.ts';
import { periodGridEnd } from './earlier-periods.ts';
import { type ClosedCharge, planCorrections } from './late-events.ts';
import {
  type AdjustableLine,
  type AdjustedLines,
  applyLineAdjustments,
  type InvoiceTerms,
} from './line-adjustments.ts';
import {
  type MeasuredUsage,
  type PlannedLine,
  type PricedItem,
  priceFixedCharge,
  priceUsageCharge,
} from './line-amount.ts';
import { offsetPartialCharges, type PartialCharge, planOverbilledCredits } from './partial-charges.ts';

/** Plan of an invoice. `adjustments` has one entry for each line, in line order. */
export type InvoicePlan<Item extends PricedItem = PricedItem> = AdjustedLines & {
  readonly lines: readonly PlannedLine<Item>[];
};

/** Facts of one subscription from which the lines of an invoice are planned. */
export type LinePlanInput<Item extends PricedItem> = ChargeInput<Item> & {
  readonly currency: string;
  /** Keys of all charges on other invoices that are not void (`invoicedKeys`). */
  readonly invoiced: ReadonlySet<string>;
  /** Measured usage by `chargeKey`, for all charges of `listOpenCharges` whose usage must be read (`usageToRead`). */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  /** Usage charges of final invoices with new or corrected events since (docs/rules/invoices.md, "Late events"). */
  readonly closed: readonly ClosedCharge<Item>[];
  /** Usage charges of the subscription on other invoices, which have drawn from its commitments. */
  readonly recorded: readonly RecordedUsage[];
  /** Usage invoiced before its period was over. */
  readonly partial: readonly PartialCharge[];
  /** Commitment of the whole subscription; null without one. */
  readonly commitment: SubscriptionCommitment | null;
  /** Service periods whose true-up is on another invoice. */
  readonly true_ups: readonly Period[];
};

export type InvoicePlanInput<Item extends PricedItem> = LinePlanInput<Item> & {
  readonly coupons: readonly CouponInForce[];
};

type LineStepInput<Item extends PricedItem> = LinePlanInput<Item> & {
  /** Due charges that are on no other invoice. */
  readonly open_charges: readonly DueCharge<Item>[];
  /** True if no later invoice follows that could offset the rest of a credit. This invoice then contains all credits in full. */
  readonly is_last: boolean;
};

/** Groups of lines in invoice order. Each step adds its lines and sees those of the earlier steps. */
const LINE_STEPS = [planChargeLines, planLateEventLines, planTrueUpLines, planOverbilledLines];

function runLineSteps<Item extends PricedItem>(input: LineStepInput<Item>): readonly PlannedLine<Item>[] {
  let lines: readonly PlannedLine<Item>[] = [];
  for (const planStep of LINE_STEPS) lines = [...lines, ...planStep(input, lines)];
  return lines;
}

/**
 * Plans the lines of an invoice. `open_charges` is the result of `listOpenCharges`, if the caller has computed it; it
 * does not depend on usage.
 */
export function planLines<Item extends PricedItem>(
  input: LinePlanInput<Item>,
  open_charges: readonly DueCharge<Item>[] = listOpenCharges(input),
): readonly PlannedLine<Item>[] {
  return runLineSteps({ ...input, open_charges, is_last: isLast(input) });
}

/**
 * Plans the lines of an invoice that is planned together with the next one (invoices-to-come.ts). Credits appear in full, because their
 * excess lowers the next invoice. An invoice at the start of a period (`period_start`) has no such credits.
 */
export function planFollowedLines<Item extends PricedItem>(
  input: LinePlanInput<Item>,
  open_charges: readonly DueCharge<Item>[] = listOpenCharges(input),
): readonly PlannedLine<Item>[] {
  return runLineSteps({ ...input, open_charges, is_last: input.reference !== 'period_start' });
}

/** Plans an invoice whose charges are waived: it has only credits for overbilled usage. */
export function planCreditLines<Item extends PricedItem>(input: LinePlanInput<Item>): readonly PlannedLine<Item>[] {
  return planLines(input).filter(({ amount }) => amount.isNegative());
}

export type DiscountedLines<Item extends PricedItem> = {
  readonly lines: readonly PlannedLine<Item>[];
  readonly adjustments: readonly LineDiscounts[];
};

/** Discounts lines by coupons, without the later steps: credits, taxes and totals. */
export function applyCouponsToLines<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  { coupons, currency }: Pick<InvoicePlanInput<Item>, 'coupons' | 'currency'>,
): DiscountedLines<Item> {
  return { lines, adjustments: applyCoupons(lines.map(toAdjustableLine), coupons, currency).lines };
}

export function planDiscounted<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  open_charges: readonly DueCharge<Item>[] = listOpenCharges(input),
): DiscountedLines<Item> {
  return applyCouponsToLines(planLines(input, open_charges), input);
}

/** Applies the steps between the lines and the total (docs/rules/invoices.md, "Totals"). */
export function buildInvoicePlan<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  {
    currency,
    coupons,
    rates,
    prepaid,
    draft_wallets,
    taxes_before_credits,
  }: Omit<InvoiceTerms, 'amount_paid' | 'adjustment_amount'>,
): InvoicePlan<Item> {
  const terms = { currency, coupons, rates, prepaid, draft_wallets, taxes_before_credits };
  return { lines, ...applyLineAdjustments(lines.map(toAdjustableLine), terms) };
}

function toAdjustableLine(line: PlannedLine): AdjustableLine {
  return {
    amount: line.amount,
    credit_adjustments: line.credit_adjustments,
    price_type: line.is_true_up ? 'FIXED' : line.item.price_type,
    key: line.is_true_up ? null : line.item.id,
    charged_ms: deriveChargedAt(line),
    chain: deriveChainKey(line),
  };
}

/** Returns the key of the line's chain. Undefined for a correction, which is a separate line and not a part of the chain. */
function deriveChainKey({ computed_from: { chain }, parent_line_item_id }: PlannedLine): string | undefined {
  return chain && parent_line_item_id === null ? `${chain.lines[0]!.line_item_id}/${chain.whole_start}` : undefined;
}

/** Instant of a charge, for coupons: the start of the service for an advance charge, otherwise its last millisecond. */
function deriveChargedAt({ item, service, is_true_up }: PlannedLine): Milliseconds {
  if (item.invoice_cadence === 'ADVANCE' && !is_true_up) return service.start;
  return Math.max(service.start, service.end - 1);
}

function planChargeLines<Item extends PricedItem>(input: LineStepInput<Item>): PlannedLine<Item>[] {
  const lines = priceCharges(input.open_charges, input);
  const facts = buildPoolFacts(input);
  const committed = facts === null ? lines : applySubscriptionCommitment(lines, facts, input.currency);
  return offsetPartialCharges(committed, input.partial);
}

/**
 * Plans the uninvoiced usage of a running period; `period.end` is the current instant. Free units and commitments are those of the whole
 * period. No true-up is charged, because the rest of the commitment may still be used. Late events of closed periods and carried amounts
 * are included, as on every invoice.
 */
export function planThreshold<Item extends PricedItem>(input: InvoicePlanInput<Item>): InvoicePlan<Item> {
  const whole = priceCharges(planThresholdCharges(input), { ...input, isRunning: true });
  const running = whole.map((line) => ({
    ...line,
    service: { start: line.service.start, end: Math.min(line.service.end, input.period.end) },
  }));
  const facts = buildPoolFacts(input);
  const committed = facts === null ? running : applySubscriptionCommitment(running, facts, input.currency);
  const offset = offsetPartialCharges(committed, input.partial);
  const charged = offset.filter(({ amount }) => !amount.isZero());
  const { currency, coupons } = input;
  const overbilled = planOverbilledCredits(offset, { is_last: false, carries: false, currency });
  const lines = [...charged, ...overbilled];
  const late = planLateEventLines({ ...input, is_last: isLast(input) }, lines);
  return buildInvoicePlan([...lines, ...late], { currency, coupons });
}

/**
 * Lists the usage charges of the running period. Each covers the whole service period, as on the invoice of the period, with the usage
 * until now.
 */
export function planThresholdCharges<Item extends BilledItem>(
  input: ChargeInput<Item> & { readonly invoiced: ReadonlySet<string> },
): DueCharge<Item>[] {
  const { subscription, period } = input;
  const whole = { start: period.start, end: nextPeriod(period.start, subscription)?.end ?? period.end };
  const running = new Map<Chain<Item>, Chain<Item>>();
  return listOpenCharges({ ...input, period: whole, reference: 'period_end' }).flatMap((charge) => {
    const { item, service, usage_window } = charge;
    if (item.price_type !== 'USAGE' || usage_window === null) return [];
    const isRunning = service.start >= period.start && service.start < period.end;
    if (!isRunning) return [];
    if (!charge.chain) return [{ ...charge, usage_window: cutAt(usage_window, period.end) }];
    const chain = running.get(charge.chain) ?? { ...charge.chain, measured_until: period.end };
    running.set(charge.chain, chain);
    return [{ ...charge, chain, usage_window: computeChainUsageWindow(chain, service) }];
  });
}

function cutAt({ start, end }: Period, until: Milliseconds): Period {
  return { start, end: Math.min(end, until) };
}

/** Plans lines for late events. Credits lower the invoice at most to 0, except on the last invoice, which has all of them. */
function planLateEventLines<Item extends PricedItem>(
  input: Omit<LineStepInput<Item>, 'open_charges'>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  const available = input.is_last ? null : sumDecimals(before.map((line) => line.amount));
  const committed = buildPriorCommitments(buildPartInput(input), buildPoolFacts(input), before);
  return planCorrections(input.closed, { currency: input.currency, available, committed });
}

/** Plans the true-up of the subscription's commitment. It follows the charge lines, because their usage draws from the commitment. */
function planTrueUpLines<Item extends PricedItem>(
  input: LineStepInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  const { reference } = input;
  const facts = reference === 'period_start' || reference === 'late' ? null : buildPoolFacts(input);
  if (facts === null) return [];
  const { currency, period, items } = input;
  const { ends_at = null } = buildPartInput(input);
  return planTrueUp({ facts, currency, period, ends_at, before, items });
}

/** Credits the amount overbilled before the period was over. */
function planOverbilledLines<Item extends PricedItem>(
  { is_last, currency }: LineStepInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  return planOverbilledCredits(before, { is_last, carries: true, currency });
}

/** Whether this is the last invoice of the subscription. */
function isLast<Item extends PricedItem>({ reference, subscription, period }: ChargeInput<Item>): boolean {
  if (reference === 'period_start') return false;
  if (reference === 'cancel' || reference === 'late') return true;
  return subscription.end_ms !== null && subscription.end_ms <= period.end;
}

function buildPoolFacts<Item extends PricedItem>(input: LinePlanInput<Item>): PoolFacts | null {
  const { subscription, commitment, true_ups } = input;
  if (commitment === null) return null;
  const { recorded, ends_at } = buildPartInput(input);
  const ended = { ...subscription, end_ms: ends_at ?? subscription.end_ms };
  return { subscription: ended, commitment, true_ups, recorded };
}

/** The due charges that are on no other invoice; usage is read for these. */
export function listOpenCharges<Item extends BilledItem>(
  input: ChargeInput<Item> & { readonly invoiced: ReadonlySet<string> },
): DueCharge<Item>[] {
  return planDueCharges(input).filter(({ item, service }) => !isInvoiced(item, service, input.invoiced));
}

export { chargeKey };

/** Keys by which an invoiced charge is found: the charge, and for advance charges the start of its service. */
export function invoicedKeys(lineItemId: string, service: Period): string[] {
  return [chargeKey(lineItemId, service), beginningKey(lineItemId, service)];
}

/**
 * Whether a charge is on an invoice. An advance charge counts as invoiced even if its line has ended since, because the change that ended
 * the line has credited any unused time.
 */
function isInvoiced(item: BilledItem, service: Period, invoiced: ReadonlySet<string>): boolean {
  if (invoiced.has(chargeKey(item.id, service))) return true;
  return item.invoice_cadence === 'ADVANCE' && invoiced.has(beginningKey(item.id, service));
}

function beginningKey(lineItemId: string, { start }: Period): string {
  return `${lineItemId}/${start}`;
}

function priceCharges<Item extends PricedItem>(
  charges: readonly DueCharge<Item>[],
  input: LinePlanInput<Item> & { readonly isRunning?: boolean },
): PlannedLine<Item>[] {
  const chains = new ChainCharges<Item>(input.usage);
  return drawInOrder(charges, input.recorded, {
    priceLine: (charge, recorded) => priceCharge(charge, { ...input, recorded, chains }),
    toDrawnAmount: toBaseAmount,
  });
}

function priceCharge<Item extends PricedItem>(
  charge: DueCharge<Item>,
  input: LinePlanInput<Item> & { readonly isRunning?: boolean; readonly chains: ChainCharges<Item> },
): PlannedLine<Item> {
  const { currency, usage, chains } = input;
  const { item, service, usage_window: window } = charge;
  const line = { item, service, display_name: item.display_name, parent_line_item_id: null };
  if (window === null) return { ...line, ...priceFixedCharge(item, charge.share, currency) };
  const measured = usage.get(chargeKey(item.id, service));
  // A failed usage read is an error (docs/rules/usage.md, "Never a quiet zero").
  if (measured === undefined) throw new FarthingError('system_error', `no usage was read for line item ${item.id}`);
  const whole = item.commitment ? commitmentPart(item, service, buildPartInput(input)) : undefined;
  const part = whole && input.isRunning ? { ...whole, is_last: false } : whole;
  const amount = chains.price(charge, (chained) =>
    priceUsageCharge(item, window, { measured, currency, part, chained }),
  );
  return { ...line, ...amount };
}

/**
 * Inputs of the commitment for one invoice. A cancellation ends the subscription, even if its record has no end yet. If the billing periods
 * change, the period ends with the old grid, but the commitment continues. Usage of later periods is left out, because it draws nothing
 * from the commitment of this period.
 */
function buildPartInput<Item extends PricedItem>({
  subscription,
  recorded,
  reference,
  period,
}: LinePlanInput<Item>): CommitmentPartInput {
  return {
    subscription,
    recorded: recorded.filter(({ service }) => service.end <= period.end),
    ends_at: reference === 'cancel' && periodGridEnd(subscription, period.end - 1) !== period.end ? period.end : null,
  };
}
