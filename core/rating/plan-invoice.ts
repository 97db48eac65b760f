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
import { type Chain, usageWindowIn } from './chains/chain.ts';
import { ChainCharges, chargeKey } from './chains/charge-chains.ts';
import { type BilledItem, type ChargeInput, type DueCharge, nextPeriod, planDueCharges } from './charges.ts';
import { type CommitmentPartInput, commitmentPart, drawInOrder, type RecordedUsage } from './commitments/part.ts';
import type { PoolFacts, SubscriptionCommitment } from './commitments/subscription.ts';
import { buildPriorCommitments } from './committed-before.ts';
import { applySubscriptionCommitment, planTrueUp, toBaseAmount } from './committed-lines.ts';
import { applyCoupons, type LineDiscounts } from './discounts.ts';
import { periodGridEnd } from './earlier-periods.ts';
import { type ClosedCharge, planCorrections } from './late-events.ts';
import { type AdjustedLines, applyLineAdjustments, type ChargedLine, type InvoiceTerms } from './line-adjustments.ts';
import { fixedCharge, type MeasuredUsage, type PlannedLine, type PricedItem, usageCharge } from './line-amount.ts';
import { offsetPartialCharges, type PartialCharge, planOverbilledCredits } from './partial-charges.ts';

/** `money` has one entry for each line, in line order. */
export type InvoicePlan<Item extends PricedItem = PricedItem> = AdjustedLines & {
  readonly lines: readonly PlannedLine<Item>[];
};

export type InvoicePlanInput<Item extends PricedItem> = ChargeInput<Item> & {
  readonly currency: string;
  /** `invoicedKeys` of all charges on other invoices that are not void. */
  readonly invoiced: ReadonlySet<string>;
  /** Measured usage by `chargeKey`, for all usage of `openCharges` that needs a read (`usageToRead`). */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  /** Result of `openCharges`, if known already: it does not depend on usage. */
  readonly open?: readonly DueCharge<Item>[];
  /** Usage charges of final invoices whose events have grown since (docs/rules/invoices.md, "Late events"). */
  readonly closed: readonly ClosedCharge<Item>[];
  /** Usage charges of the subscription on other invoices: the draws from its commitments. */
  readonly recorded?: readonly RecordedUsage[];
  /** Usage invoiced before its period was over. */
  readonly partial?: readonly PartialCharge[];
  /** Commitment of the whole subscription; null or absent without one. */
  readonly commitment?: SubscriptionCommitment | null;
  /** Service periods whose true-up is on another invoice. */
  readonly true_ups?: readonly Period[];
  /** Waives the charges: only credits for overbilled usage remain. */
  readonly forgives_charges?: boolean | undefined;
  /**
   * Set if the next invoice is planned with this one (invoices-to-come.ts): credits appear in full, and their excess lowers the next
   * invoice.
   */
  readonly is_followed?: boolean | undefined;
  readonly coupons?: InvoiceTerms['coupons'];
  readonly rates?: InvoiceTerms['rates'];
  readonly prepaid?: InvoiceTerms['prepaid'];
  readonly taxes_before_credits?: InvoiceTerms['taxes_before_credits'];
};

/** Groups of lines in invoice order. Each step adds its lines and sees those of the earlier steps. */
const LINE_STEPS = [planChargeLines, planLateEventLines, planTrueUpLines, planOverbilledLines];

export function planInvoice<Item extends PricedItem>(input: InvoicePlanInput<Item>): InvoicePlan<Item> {
  return buildInvoicePlan(plannedLines(input), input);
}

/** Plans the lines with their coupon discounts, without the later steps: credits, taxes and totals. */
export function planDiscounted<Item extends PricedItem>(input: InvoicePlanInput<Item>): DiscountedLines<Item> {
  const lines = plannedLines(input);
  return { lines, money: applyCoupons(lines.map(chargedLine), input.coupons ?? [], input.currency).lines };
}

export type DiscountedLines<Item extends PricedItem> = {
  readonly lines: readonly PlannedLine<Item>[];
  readonly money: readonly LineDiscounts[];
};

function plannedLines<Item extends PricedItem>(input: InvoicePlanInput<Item>): readonly PlannedLine<Item>[] {
  let lines: readonly PlannedLine<Item>[] = [];
  for (const planStep of LINE_STEPS) lines = [...lines, ...planStep(input, lines)];
  return input.forgives_charges ? lines.filter(({ amount }) => amount.isNegative()) : lines;
}

/** Applies the steps between the lines and the total (docs/rules/invoices.md, "Totals"). */
export function buildInvoicePlan<Item extends PricedItem>(
  lines: readonly PlannedLine<Item>[],
  terms: Pick<InvoiceTerms, 'currency' | 'coupons' | 'rates' | 'prepaid' | 'draft_wallets' | 'taxes_before_credits'>,
): InvoicePlan<Item> {
  const { currency, coupons, rates, prepaid, draft_wallets, taxes_before_credits } = terms;
  const settlement = { currency, coupons, rates, prepaid, draft_wallets, taxes_before_credits };
  return { lines, ...applyLineAdjustments(lines.map(chargedLine), settlement) };
}

function chargedLine(line: PlannedLine): ChargedLine {
  return {
    amount: line.amount,
    credit_adjustments: line.credit_adjustments,
    price_type: line.is_true_up ? 'FIXED' : line.item.price_type,
    key: line.is_true_up ? null : line.item.id,
    charged_ms: deriveChargedAt(line),
    chain: deriveChainKey(line),
  };
}

/** A correction of a charge is a separate line, outside of the chain. */
function deriveChainKey({ computed_from: { chain }, parent_line_item_id }: PlannedLine): string | undefined {
  return chain && parent_line_item_id === null ? `${chain.lines[0]!.line_item_id}/${chain.whole_start}` : undefined;
}

/** An advance charge is charged when its service begins, all else when it ends. */
function deriveChargedAt({ item, service, is_true_up }: PlannedLine): Milliseconds {
  if (item.invoice_cadence === 'ADVANCE' && !is_true_up) return service.start;
  return Math.max(service.start, service.end - 1);
}

function planChargeLines<Item extends PricedItem>(input: InvoicePlanInput<Item>): PlannedLine<Item>[] {
  const lines = priceCharges(input.open ?? openCharges(input), input);
  const facts = poolFacts(input);
  const committed = facts === null ? lines : applySubscriptionCommitment(lines, facts, input.currency);
  return offsetPartialCharges(committed, input.partial ?? []);
}

/**
 * Plans the uninvoiced usage of a running period, whose `end` is now. Free units and commitments are those of the whole period. No true-up
 * is charged, because the rest of the commitment may still be used. Late events of closed periods and carried amounts are included, as on
 * every invoice.
 */
export function planThreshold<Item extends PricedItem>(input: InvoicePlanInput<Item>): InvoicePlan<Item> {
  const whole = priceCharges(thresholdCharges(input), { ...input, isRunning: true });
  const running = whole.map((line) => ({
    ...line,
    service: { start: line.service.start, end: Math.min(line.service.end, input.period.end) },
  }));
  const facts = poolFacts(input);
  const committed = facts === null ? running : applySubscriptionCommitment(running, facts, input.currency);
  const offset = offsetPartialCharges(committed, input.partial ?? []);
  const charged = offset.filter(({ amount }) => !amount.isZero());
  const { currency } = input;
  const overbilled = planOverbilledCredits(offset, { is_last: false, carries: false, currency });
  const lines = [...charged, ...overbilled];
  return buildInvoicePlan([...lines, ...planLateEventLines(input, lines)], input);
}

/** Usage charges of the running period only: complete, as its invoice will charge them, and counted until now. */
export function thresholdCharges<Item extends BilledItem>(
  input: ChargeInput<Item> & { readonly invoiced: ReadonlySet<string> },
): DueCharge<Item>[] {
  const { subscription, period } = input;
  const whole = { start: period.start, end: nextPeriod(period.start, subscription)?.end ?? period.end };
  const running = new Map<Chain<Item>, Chain<Item>>();
  return openCharges({ ...input, period: whole, reference: 'period_end' }).flatMap((charge) => {
    const { item, service, usage_window } = charge;
    if (item.price_type !== 'USAGE' || usage_window === null) return [];
    const isRunning = service.start >= period.start && service.start < period.end;
    if (!isRunning) return [];
    if (!charge.chain) return [{ ...charge, usage_window: cutAt(usage_window, period.end) }];
    const chain = running.get(charge.chain) ?? { ...charge.chain, measured_until: period.end };
    running.set(charge.chain, chain);
    return [{ ...charge, chain, usage_window: usageWindowIn(chain, service) }];
  });
}

function cutAt({ start, end }: Period, until: Milliseconds): Period {
  return { start, end: Math.min(end, until) };
}

/** Credits lower the other lines of the invoice, to 0 at most; the last invoice credits everything. */
function planLateEventLines<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  const available = isLast(input) ? null : sumDecimals(before.map((line) => line.amount));
  const committed = buildPriorCommitments(buildPartInput(input), poolFacts(input), before);
  return planCorrections(input.closed, { currency: input.currency, available, committed });
}

/** The true-up at the end of a term is computable once its usage is measured. */
function planTrueUpLines<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  const { reference } = input;
  const facts = reference === 'period_start' || reference === 'late' ? null : poolFacts(input);
  if (facts === null) return [];
  const { currency, period, items } = input;
  const { ends_at = null } = buildPartInput(input);
  return planTrueUp({ facts, currency, period, ends_at, before, items });
}

/** Credits the amount overbilled before the period was over. */
function planOverbilledLines<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  return planOverbilledCredits(before, { is_last: isLast(input), carries: true, currency: input.currency });
}

/** Whether no invoice follows, or the next one is planned with the rest of this one. */
function isLast<Item extends PricedItem>(input: InvoicePlanInput<Item>): boolean {
  const { reference, subscription, period, is_followed } = input;
  if (reference === 'period_start') return false;
  if (is_followed) return true;
  if (reference === 'cancel' || reference === 'late') return true;
  return subscription.end_ms !== null && subscription.end_ms <= period.end;
}

function poolFacts<Item extends PricedItem>(input: InvoicePlanInput<Item>): PoolFacts | null {
  const { subscription, commitment, true_ups = [] } = input;
  if (!commitment) return null;
  const { recorded, ends_at } = buildPartInput(input);
  const ended = { ...subscription, end_ms: ends_at ?? subscription.end_ms };
  return { subscription: ended, commitment, true_ups, recorded };
}

/** The due charges that are on no other invoice; usage is read for these. */
export function openCharges<Item extends BilledItem>(
  input: ChargeInput<Item> & { readonly invoiced: ReadonlySet<string> },
): DueCharge<Item>[] {
  return planDueCharges(input).filter(({ item, service }) => !isInvoiced(item, service, input.invoiced));
}

export { chargeKey };

/** Keys by which an invoiced charge is found: the charge, and for advance charges the start of its service. */
export function invoicedKeys(lineItemId: string, service: Period): string[] {
  return [chargeKey(lineItemId, service), beginningKey(lineItemId, service)];
}

/** An advance charge stays invoiced if its line has ended since: the change settles the difference itself. */
function isInvoiced(item: BilledItem, service: Period, invoiced: ReadonlySet<string>): boolean {
  if (invoiced.has(chargeKey(item.id, service))) return true;
  return item.invoice_cadence === 'ADVANCE' && invoiced.has(beginningKey(item.id, service));
}

function beginningKey(lineItemId: string, { start }: Period): string {
  return `${lineItemId}/${start}`;
}

function priceCharges<Item extends PricedItem>(
  charges: readonly DueCharge<Item>[],
  input: InvoicePlanInput<Item> & { readonly isRunning?: boolean },
): PlannedLine<Item>[] {
  const chains = new ChainCharges<Item>(input.usage);
  return drawInOrder(charges, input.recorded ?? [], {
    priceLine: (charge, recorded) => priceCharge(charge, { ...input, recorded, chains }),
    toDrawnAmount: toBaseAmount,
  });
}

function priceCharge<Item extends PricedItem>(
  charge: DueCharge<Item>,
  input: InvoicePlanInput<Item> & { readonly isRunning?: boolean; readonly chains: ChainCharges<Item> },
): PlannedLine<Item> {
  const { currency, usage, chains } = input;
  const { item, service, usage_window: window } = charge;
  const line = { item, service, display_name: item.display_name, parent_line_item_id: null };
  if (window === null) return { ...line, ...fixedCharge(item, charge.share, currency) };
  const measured = usage.get(chargeKey(item.id, service));
  // A failed usage read is an error (docs/rules/usage.md, "Never a quiet zero").
  if (measured === undefined) throw new FarthingError('system_error', `no usage was read for line item ${item.id}`);
  const whole = item.commitment ? commitmentPart(item, service, buildPartInput(input)) : undefined;
  const part = whole && input.isRunning ? { ...whole, is_last: false } : whole;
  const amount = chains.price(charge, (chained) => usageCharge(item, window, { measured, currency, part, chained }));
  return { ...line, ...amount };
}

/**
 * A cancellation ends the subscription, whatever its record has. A period cut by a change of grid ends there, and the commitment continues.
 * Draws of later periods are left out: they have used nothing of this period's terms.
 */
function buildPartInput<Item extends PricedItem>({
  subscription,
  recorded = [],
  reference,
  period,
}: InvoicePlanInput<Item>): CommitmentPartInput {
  return {
    subscription,
    recorded: recorded.filter(({ service }) => service.end <= period.end),
    ends_at: reference === 'cancel' && periodGridEnd(subscription, period.end - 1) !== period.end ? period.end : null,
  };
}
