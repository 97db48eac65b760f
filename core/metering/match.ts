/**
 * Finds the meters that count an event: those with its event name whose filters all accept its properties (docs/rules/metering.md, "Which
 * events count"). Several meters may count one event.
 */
import { type CompiledMeter, compiledMeter } from './compiled-meter.ts';
import type { PropertySource } from './event-text.ts';
import { accepts } from './filter.ts';
import type { MeterDefinition } from './meter-definition.ts';

/** The meters of one tenant and environment, by event name. */
export type MeterIndex = ReadonlyMap<string, readonly CompiledMeter[]>;

export function compileMeters(definitions: Iterable<MeterDefinition>): MeterIndex {
  const index = new Map<string, CompiledMeter[]>();
  for (const definition of definitions) {
    const meter = compiledMeter(definition);
    const sameEvent = index.get(meter.event_name);
    if (sameEvent === undefined) index.set(meter.event_name, [meter]);
    else sameEvent.push(meter);
  }
  return index;
}

/** Assumes that the event has the meter's event name. */
export function matches(meter: CompiledMeter, properties: PropertySource): boolean {
  for (const filter of meter.filters) if (!accepts(filter, properties.get(filter.key))) return false;
  return true;
}

export type FilterMismatch = {
  readonly key: string;
  readonly accepted: readonly string[];
  readonly why: 'missing' | 'not an accepted value' | 'not a string, number or boolean';
};

/** The first filter that rejects the event, for the event debugger; undefined if the event matches. */
export function explainMismatch(meter: CompiledMeter, properties: PropertySource): FilterMismatch | undefined {
  for (const filter of meter.filters) {
    const property = properties.get(filter.key);
    if (accepts(filter, property)) continue;
    const accepted = [...filter.values];
    if (property === undefined) return { key: filter.key, accepted, why: 'missing' };
    const scalar = property.kind === 'string' || property.kind === 'number' || property.kind === 'boolean';
    return { key: filter.key, accepted, why: scalar ? 'not an accepted value' : 'not a string, number or boolean' };
  }
  return undefined;
}
