/**
 * Phases are consecutive intervals of a subscription with terms of their own (docs/rules/subscriptions.md, "Phases"). A
 * term that a phase changes becomes a line that begins and ends with the phase. A price that no phase changes has one
 * line throughout. The lines exist from the start, so no job runs when a phase begins.
 */
import { z } from 'zod';
import type { Price } from '../catalog/price/record.ts';
import { invalid } from '../foundation/error.ts';
import { baseFields, metadata, timestampText } from '../foundation/record.ts';
import { formatMs, type Milliseconds, toInstant } from '../foundation/time/instant.ts';
import { type BilledItem, type BilledSubscription, roundUpToPeriodEnd } from '../rating/charges.ts';
import { groupOverridesByPrice, type LineItemInput, type LineItemTerms, type PriceOverride } from './lines.ts';
import { toBilledItem } from './plan-sync.ts';
import type { CreateSubscription } from './record.ts';

export const SubscriptionPhase = z.object({
  id: z.string(),
  subscription_id: z.string().meta({ description: 'Subscription of the phase.' }),
  start_date: timestampText.meta({ description: 'Instant from which the terms of the phase apply.' }),
  end_date: timestampText
    .nullish()
    .meta({ description: 'Exclusive end of the phase. Null if the last phase is open.' }),
  metadata: metadata.nullish().meta({ description: 'Your own key-value pairs; null without any.' }),
  ...baseFields,
});
export type SubscriptionPhase = z.infer<typeof SubscriptionPhase>;

type PhaseInput = NonNullable<CreateSubscription['phases']>[number];
type ExtraLineInput = NonNullable<CreateSubscription['line_items']>[number];

export type PlannedPhase = {
  readonly index: number;
  readonly start: Milliseconds;
  readonly end: Milliseconds | null;
  readonly requested: PhaseInput;
  readonly overrides: ReadonlyMap<string, PriceOverride>;
};

type SubscriptionInterval = { readonly start: Milliseconds; readonly end: Milliseconds | null };

/** The first phase defines the start if the subscription has no start_date. */
export function findRequestedStart({ start_date, phases }: CreateSubscription): string | null {
  return start_date ?? phases?.[0]?.start_date ?? null;
}

/** Phases of a request; each begins at the end of the preceding one. */
export function planPhases(
  request: CreateSubscription,
  life: SubscriptionInterval,
  prices: readonly Price[],
): PlannedPhase[] {
  const requested = request.phases ?? [];
  if (requested.length > 0 && request.subscription_status === 'draft') throw invalid('phases', 'are not for a draft');
  let begins = life.start;
  return requested.map((phase, index) => {
    const field = `phases[${index}]`;
    const end = parsePhaseEnd(phase, { field, begins, isLast: index === requested.length - 1, life });
    const overrides = groupOverridesByPrice(phase.override_line_items ?? [], prices, `${field}.`);
    const found = { index, start: begins, end, requested: phase, overrides };
    begins = end ?? begins;
    return found;
  });
}

type PhaseContext = { field: string; begins: Milliseconds; isLast: boolean; life: SubscriptionInterval };

function parsePhaseEnd(phase: PhaseInput, { field, begins, isLast, life }: PhaseContext): Milliseconds | null {
  if (toInstant(phase.start_date) !== begins) {
    const why = begins === life.start ? 'the start of the subscription' : 'the end of the phase before it';
    throw invalid(`${field}.start_date`, `must be ${why}, ${formatMs(begins)}`);
  }
  if (!phase.end_date) {
    if (!isLast) throw invalid(`${field}.end_date`, 'is required of every phase but the last');
    return null;
  }
  const end = toInstant(phase.end_date);
  if (end <= begins) throw invalid(`${field}.end_date`, 'must be after start_date');
  if (life.end !== null && end > life.end)
    throw invalid(`${field}.end_date`, 'must not lie after the end of the subscription');
  return end;
}

/** One line of a plan price: its terms, and its dates if it does not cover the whole subscription. */
export type PlanPart = {
  readonly plan_price: Price;
  readonly override: PriceOverride | null;
  /** Index of the phase that defines the terms; null if no phase defines them. */
  readonly phase: number | null;
  readonly start_date: string | null;
  readonly end_date: string | null;
};

type PlanPartsInput = {
  readonly phases: readonly PlannedPhase[];
  readonly overrides: ReadonlyMap<string, PriceOverride>;
  readonly billed: BilledSubscription;
  readonly reset_usage: ReadonlyMap<string, BilledItem['reset_usage']>;
};

/** Plans the parts of a plan price: one, unless a phase overrides the price. */
export function planParts(planPrice: Price, { phases, overrides, ...input }: PlanPartsInput): PlanPart[] {
  const always = overrides.get(planPrice.id) ?? null;
  const whole = { plan_price: planPrice, override: always, phase: null, start_date: null, end_date: null };
  if (!phases.some((phase) => phase.overrides.has(planPrice.id))) return [whole];
  if (planPrice.billing_period === 'ONETIME') return [{ ...whole, ...planFirstPhaseOverride(planPrice, phases) }];
  const parts: PlanPart[] = [];
  for (const { override, phase, start, end } of planPriceIntervals(planPrice, phases)) {
    const from = alignToPeriod(start, planPrice, input);
    const to = end === null ? null : alignToPeriod(end, planPrice, input);
    if (to !== null && to <= from) continue;
    const dates = { start_date: formatMs(from), end_date: to === null ? null : formatMs(to) };
    parts.push({ plan_price: planPrice, override: override ?? always, phase, ...dates });
  }
  return parts;
}

/** Plans the part of a one-time charge, which is charged with the first phase. */
function planFirstPhaseOverride(planPrice: Price, [first, ...later]: readonly PlannedPhase[]): Partial<PlanPart> {
  const repeated = later.find((phase) => phase.overrides.has(planPrice.id));
  if (repeated)
    throw invalid(
      `phases[${repeated.index}].override_line_items`,
      `price ${planPrice.id} is charged once, at the start: only the first phase can override it`,
    );
  return { override: first!.overrides.get(planPrice.id)!, phase: 0 };
}

type PriceInterval = {
  override: PriceOverride | null;
  phase: number | null;
  start: Milliseconds;
  end: Milliseconds | null;
};

/** Adjoining intervals without an override are merged, including the time after the last phase. */
function planPriceIntervals(planPrice: Price, phases: readonly PlannedPhase[]): PriceInterval[] {
  const intervals: PriceInterval[] = [];
  for (const { index, start, end, overrides } of phases) {
    const override = overrides.get(planPrice.id) ?? null;
    const before = intervals.at(-1);
    if (override === null && before?.phase === null) before.end = end;
    else intervals.push({ override, phase: override === null ? null : index, start, end });
  }
  const last = intervals.at(-1)!;
  if (last.end === null) return intervals;
  if (last.phase !== null) return [...intervals, { override: null, phase: null, start: last.end, end: null }];
  last.end = null;
  return intervals;
}

/**
 * On a meter that never resets, a price changes only at a period boundary: two lines in one period would charge the standing usage (such as
 * seats) twice.
 */
function alignToPeriod(
  at: Milliseconds,
  planPrice: Price,
  { billed, reset_usage }: Omit<PlanPartsInput, 'phases' | 'overrides'>,
) {
  if (planPrice.meter_id === null || reset_usage.get(planPrice.meter_id) !== 'NEVER') return at;
  return roundUpToPeriodEnd(at, toBilledItem(planPrice, billed.start_ms), billed);
}

/** Dates of the line; undefined if the line is active as long as the subscription. */
export function toLineFields({ start_date, end_date }: PlanPart): LineItemInput['requested'] {
  if (start_date === null && end_date === null) return undefined;
  return { start_date, end_date, display_name: null, metadata: null };
}

/** Whether the line is ever active. A price that is not sold within a phase gives a line without duration. */
export function isEverActive({ start_date, end_date }: Pick<LineItemTerms, 'start_date' | 'end_date'>): boolean {
  return !end_date || toInstant(start_date) < toInstant(end_date);
}

export type ExtraLine = { readonly requested: ExtraLineInput; readonly field: string; readonly phase: number | null };

/** Extra lines of the request, then those of its phases. A line of a phase lies within the phase. */
export function listExtraLines(request: CreateSubscription, phases: readonly PlannedPhase[]): ExtraLine[] {
  const own = (request.line_items ?? []).map((requested, at) => ({
    requested,
    field: `line_items[${at}]`,
    phase: null,
  }));
  const ofPhases = phases.flatMap((phase) =>
    (phase.requested.line_items ?? []).map((requested, at) => {
      const field = `phases[${phase.index}].line_items[${at}]`;
      return { requested: { ...requested, ...computeInsidePhase(requested, phase, field) }, field, phase: phase.index };
    }),
  );
  return [...own, ...ofPhases];
}

function computeInsidePhase({ start_date, end_date }: ExtraLineInput, phase: PlannedPhase, field: string) {
  const start = start_date ? toInstant(start_date) : phase.start;
  const end = end_date ? toInstant(end_date) : phase.end;
  const last = phase.end ?? Number.POSITIVE_INFINITY;
  if (start < phase.start || start >= last) throw invalid(`${field}.start_date`, 'must lie inside the phase');
  if (end !== null && end > last) throw invalid(`${field}.end_date`, 'must not lie after the end of the phase');
  return { start_date: formatMs(start), end_date: end === null ? null : formatMs(end) };
}
