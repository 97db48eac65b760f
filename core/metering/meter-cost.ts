/**
 * Caps the total cost of all meters of one event name in one environment at 100 µs per event. Otherwise a tenant could delay the events of
 * others. Each meter and filter adds to the cost. The unit is that of expression/work.ts, a tenth of a microsecond. Meters from before the
 * cap still work. The worst cost of the meters limits the length of a slice (pipeline/slices/slice-work.ts).
 */
import { invalid } from '../foundation/error.ts';
import { type CompiledMeter, compiledMeter } from './compiled-meter.ts';
import { WORK_MAX } from './expression/work.ts';
import { compileNewExpression } from './expression.ts';
import { compileMeters, type MeterIndex } from './match.ts';
import type { MeterDefinition } from './meter-definition.ts';

const METER_WEIGHTS = {
  /** Cost of matching and measuring an event and adding it to an existing row. */
  meter: 4,
  filter: 1,
  /** Cost per character of the accepted values: every partition compiles and caches them. */
  filter_character: 0.001,
  /** Additional cost of a row with a set of texts. */
  uniques: 16,
} as const;

export const EVENT_NAME_COST_MAX = 1_000;

/** Computes the cost of a meter for one event. Assumes ordinary values and rows that gather many events. */
export function computeMeterCost({ filters, expression, aggregation }: CompiledMeter): number {
  const uniques = aggregation.fills.includes('uniques') ? METER_WEIGHTS.uniques : 0;
  return METER_WEIGHTS.meter + computeFilterCost(filters) + uniques + (expression?.cost ?? 0);
}

function computeFilterCost(filters: CompiledMeter['filters']): number {
  const characters = filters.reduce((sum, { characters }) => sum + characters, 0);
  return filters.length * METER_WEIGHTS.filter + characters * METER_WEIGHTS.filter_character;
}

/** Cost of a separate row per event, or of the outcome that explains why there is no row. */
const ROW = 30;
/** Factor by which long numbers raise the cost of an expression, found by the search of `npm run bench -- cost`. */
const WORST_TO_ORDINARY = 8;

/** Computes the cost of a meter for one event if an attacker chooses the slowest values. */
function computeWorstMeterCost(meter: CompiledMeter): number {
  const ordinary = meter.expression?.cost ?? 0;
  return computeMeterCost(meter) - ordinary + ROW + Math.min(WORK_MAX, ordinary * WORST_TO_ORDINARY);
}

/** Cost of an event that no meter counts: it is read, matched and written. */
const EVENT_WORK = 20;
/** Work per byte that no meter reads: a bulk of 30 MB takes 0.6 s to read, compress and write. */
const BYTE_WORK = 0.2;
/** Work per byte and meter: a long number must be parsed, a long text must be compared and written again. */
const METER_BYTE_WORK = 0.02;

/** Cost and meter count of the most expensive event name of a tenant and environment. */
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

/** Upper bound of the work for events whose names have not been read yet. */
export function worstWork({ cost, meters }: WorstCost, { events, bytes }: { events: number; bytes: number }): number {
  return events * (EVENT_WORK + cost) + bytes * (BYTE_WORK + METER_BYTE_WORK * meters);
}

/**
 * Checks a new meter, or a changed version of `before`, against the cap for all meters of its event name. A change that adds no cost is
 * always allowed. `field` names the request field to change.
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
