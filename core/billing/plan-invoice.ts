/**
 * What should this period's invoice say? The one function behind preview, draft and recomputation, so that they cannot
 * disagree (docs/rules/invoices.md, "Preview and invoice agree"). Lines are rounded, then added up
 * (docs/rules/numbers.md, "Each line first, then the sum"). Charges that stand on another invoice that is not void are left
 * out (docs/rules/invoices.md, "Charged once"). What a line costs is in line-amount.ts.
 */
import { type CommitmentPartInput, commitmentPart, drawInOrder, type RecordedUsage } from '../commitment/part.ts';
import type { PoolFacts, SubscriptionCommitment } from '../commitment/subscription.ts';
import { applyCoupons, type LineDiscounts } from '../coupon/discounts.ts';
import { sumDecimals } from '../decimal.ts';
import { FarthingError } from '../error.ts';
import type { Milliseconds } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import { type Chain, usageWindowIn } from './chains/chain.ts';
import { ChainCharges, chargeKey } from './chains/charge-chains.ts';
import { type BilledItem, type ChargeInput, type DueCharge, nextPeriod, planDueCharges } from './charges.ts';
import { buildPriorCommitments } from './committed-before.ts';
import { applySubscriptionCommitment, planTrueUp, toBaseAmount } from './committed-lines.ts';
import { periodGridEnd } from './earlier-periods.ts';
import { type ClosedCharge, planCorrections } from './late-events.ts';
import { type AdjustedLines, applyLineAdjustments, type ChargedLine, type InvoiceTerms } from './line-adjustments.ts';
import { fixedCharge, type MeasuredUsage, type PlannedLine, type PricedItem, usageCharge } from './line-amount.ts';
import { offsetPartialCharges, type PartialCharge, planOverbilledCredits } from './partial-charges.ts';

/** `money` and the lines are in one order. */
export type InvoicePlan<Item extends PricedItem = PricedItem> = AdjustedLines & {
  readonly lines: readonly PlannedLine<Item>[];
};

export type InvoicePlanInput<Item extends PricedItem> = ChargeInput<Item> & {
  readonly currency: string;
  /** `invoicedKeys` of everything that stands on another invoice that is not void. */
  readonly invoiced: ReadonlySet<string>;
  /** By `chargeKey`, one answer for all usage of `openCharges` that is to be read (`usageToRead`). */
  readonly usage: ReadonlyMap<string, MeasuredUsage>;
  /** What `openCharges` says of it, where that is known: nothing of it depends on usage. */
  readonly open?: readonly DueCharge<Item>[];
  /** Usage charges of final invoices whose events have grown since (docs/rules/invoices.md, "Late events"). */
  readonly closed: readonly ClosedCharge<Item>[];
  /** Usage charges of the subscription on other invoices: what was drawn from its commitments. */
  readonly recorded?: readonly RecordedUsage[];
  /** What was invoiced of usage before its period was over. */
  readonly partial?: readonly PartialCharge[];
  /** Of the subscription as a whole; null or nothing without one. */
  readonly commitment?: SubscriptionCommitment | null;
  /** Services whose lacking amount stands on another invoice. */
  readonly true_ups?: readonly Period[];
  /** Its charges are forgiven: it only gives back what was invoiced too much before. */
  readonly forgives_charges?: boolean | undefined;
  /** It is planned for what comes behind it (invoices-to-come.ts): what it cannot give back comes off the next one, and is said in full. */
  readonly is_followed?: boolean | undefined;
  readonly coupons?: InvoiceTerms['coupons'];
  readonly rates?: InvoiceTerms['rates'];
  readonly prepaid?: InvoiceTerms['prepaid'];
  readonly taxes_before_credits?: InvoiceTerms['taxes_before_credits'];
};

/** What stands on an invoice, in this order: each step says its lines and sees those of the steps before. */
const LINE_STEPS = [planChargeLines, planLateEventLines, planTrueUpLines, planOverbilledLines];

export function planInvoice<Item extends PricedItem>(input: InvoicePlanInput<Item>): InvoicePlan<Item> {
  return buildInvoicePlan(plannedLines(input), input);
}

/** Its lines with what coupons take off them, for whoever asks for neither credits nor taxes nor totals, which come behind these. */
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

/** What stands between the lines and the total (docs/rules/invoices.md, "Totals"). */
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

/** A correction of a charge is a line of its own, outside of the chain. */
function deriveChainKey({ computed_from: { chain }, parent_line_item_id }: PlannedLine): string | undefined {
  return chain && parent_line_item_id === null ? `${chain.lines[0]!.line_item_id}/${chain.whole_start}` : undefined;
}

/** What is charged in advance is charged when its time begins, all else when that is over. */
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
 * What of the usage of a running period is not invoiced yet, as it stands at its end, which is now: with what is free and what
 * is committed to in the whole of the period, and nothing for what is lacking, because it may still be used. Of closed periods it says
 * late events, and what is carried forward, as every invoice does.
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

/** Usage of the running period alone, whole as its invoice will charge it, and counted until now. */
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

/** What is given back lowers what stands on the invoice already, to 0 at most; the last one gives back all. */
function planLateEventLines<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  const available = isLast(input) ? null : sumDecimals(before.map((line) => line.amount));
  const committed = buildPriorCommitments(buildPartInput(input), poolFacts(input), before);
  return planCorrections(input.closed, { currency: input.currency, available, committed });
}

/** What is lacking at the end of a term is known when its usage is. */
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

/** What was invoiced too much before the period was over. */
function planOverbilledLines<Item extends PricedItem>(
  input: InvoicePlanInput<Item>,
  before: readonly PlannedLine<Item>[],
): PlannedLine<Item>[] {
  return planOverbilledCredits(before, { is_last: isLast(input), carries: true, currency: input.currency });
}

/** No invoice comes behind it, or one that is told what is left. */
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

/** The charges that are due and stand on no other invoice: what the usage answers are gathered for. */
export function openCharges<Item extends BilledItem>(
  input: ChargeInput<Item> & { readonly invoiced: ReadonlySet<string> },
): DueCharge<Item>[] {
  return planDueCharges(input).filter(({ item, service }) => !isInvoiced(item, service, input.invoiced));
}

export { chargeKey };

/** By which what stands on an invoice is found again: its charge, and of what was charged in advance where it begins. */
export function invoicedKeys(lineItemId: string, service: Period): string[] {
  return [chargeKey(lineItemId, service), beginningKey(lineItemId, service)];
}

/** What is charged in advance was charged, also when its line has ended since: a change settles the difference itself. */
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
 * What a cancellation ends is ended, whatever the record says yet; a period that others cut ends there, and what is committed to goes on. Later
 * periods have drawn nothing from the terms of this.
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
