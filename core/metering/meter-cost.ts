/**
 * What all meters of one event name in one environment cost together has a cap, their filters and their mere number
 * included, so that no tenant can make the events of others wait: at most 100 µs of an event. In the unit of
 * expression/work.ts, a tenth of a microsecond. Meters of before the cap go on; what the meters make of a slice is judged
 * by their worst, and the slice is cut shorter (pipeline/slices/slice-work.ts).
 */
import { invalid } from '../error.ts';
import { type CompiledMeter, compiledMeter } from './compiled-meter.ts';
import { WORK_MAX } from './expression/work.ts';
import { compileNewExpression } from './expression.ts';
import { compileMeters, type MeterIndex } from './match.ts';
import type { MeterDefinition } from './meter-definition.ts';

export const METER_WEIGHTS = {
  /** Matching, measuring, and adding to a row that is there. */
  meter: 4,
  filter: 1,
  /** Of accepted values: they are compiled and kept by every partition. */
  filter_character: 0.001,
  /** A set of texts in each row. */
  uniques: 16,
} as const;

export const EVENT_NAME_COST_MAX = 1_000;

/** With ordinary values and rows that gather many events. */
export function computeMeterCost({ filters, expression, aggregation }: CompiledMeter): number {
  const uniques = aggregation.fills.includes('uniques') ? METER_WEIGHTS.uniques : 0;
  return METER_WEIGHTS.meter + computeFilterCost(filters) + uniques + (expression?.cost ?? 0);
}

function computeFilterCost(filters: CompiledMeter['filters']): number {
  const characters = filters.reduce((sum, { characters }) => sum + characters, 0);
  return filters.length * METER_WEIGHTS.filter + characters * METER_WEIGHTS.filter_character;
}

/** A row of its own for each event, or the outcome that says why it has none. */
const ROW = 30;
/** What long numbers can make of an expression, as the search of `npm run bench -- cost` finds it. */
const WORST_TO_ORDINARY = 8;

/** With the values of somebody who means to be slow. */
export function computeWorstMeterCost(meter: CompiledMeter): number {
  const ordinary = meter.expression?.cost ?? 0;
  return computeMeterCost(meter) - ordinary + ROW + Math.min(WORK_MAX, ordinary * WORST_TO_ORDINARY);
}

/** An event that no meter counts: read, looked up, written. */
const EVENT_WORK = 20;
/** A byte that no meter looks at: a bulk of 30 MB is read, compressed and written for 0.6 s. */
const BYTE_WORK = 0.2;
/** What a meter makes of a byte: a long number to be read, a long text to be told apart and written again. */
const METER_BYTE_WORK = 0.02;

/** Of any event of a tenant and environment: by its event name that costs most. */
export type WorstCost = { readonly cost: number; readonly meters: number };

export const NO_COST: WorstCost = { cost: 0, meters: 0 };

export function computeWorstIndexCost(index: MeterIndex): WorstCost {
  let { cost, meters } = NO_COST;
  for (const some of index.values()) {
    const sum = some.reduce((all, meter) => all + computeWorstMeterCost(meter), 0);
    cost = Math.max(cost, sum);
    meters = Math.max(meters, some.length);
  }
  return { cost, meters };
}

export function computeWorstCost(definitions: readonly MeterDefinition[]): WorstCost {
  return computeWorstIndexCost(compileMeters(definitions));
}

/** Of so many events and bytes, whose names nobody has read yet. */
export function worstWork({ cost, meters }: WorstCost, { events, bytes }: { events: number; bytes: number }): number {
  return events * (EVENT_WORK + cost) + bytes * (BYTE_WORK + METER_BYTE_WORK * meters);
}

/**
 * Throws unless a meter that is new, or `before` whose filters change, may stand beside the others of its event name. `field`
 * is what the request can change about it.
 */
export function checkCost(
  meter: MeterDefinition,
  { others, before, field }: { others: readonly MeterDefinition[]; before?: MeterDefinition; field: string },
): void {
  if (before === undefined && meter.aggregation.expression) compileNewExpression(meter.aggregation.expression);
  const own = computeDefinitionCost(meter);
  const cost = Math.ceil(others.reduce((sum, other) => sum + computeDefinitionCost(other), own));
  if (cost <= EVENT_NAME_COST_MAX || (before !== undefined && own <= computeDefinitionCost(before))) return;
  throw invalid(
    field,
    `all meters of the event name "${meter.event_name.trim()}" would cost ${cost} units of work for each event, at most ${EVENT_NAME_COST_MAX} are allowed: archive one, or give it fewer filters or a simpler expression`,
    { cost, cost_max: EVENT_NAME_COST_MAX },
  );
}

function computeDefinitionCost(definition: MeterDefinition): number {
  return computeMeterCost(compiledMeter(definition));
}
