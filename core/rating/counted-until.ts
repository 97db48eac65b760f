/**
 * Whether a usage line counted an event: the line records for each partition of the log the first offset that it did not count. An event at
 * or after it is late for a final line (docs/rules/invoices.md, "Late events").
 */
import { type Microseconds, toInstant, toUs } from '../foundation/time/instant.ts';
import type { ComputedFrom } from './computed-from.ts';

export type EventPlaceInLog = {
  readonly partition: number;
  readonly offset: number;
  readonly received_at_us: Microseconds;
};

export function hasCounted(
  computed_from: Pick<ComputedFrom, 'high_water' | 'as_of'> | null | undefined,
  { partition, offset, received_at_us }: EventPlaceInLog,
): boolean {
  const { high_water, as_of } = computed_from ?? {};
  if (high_water) return BigInt(offset) < BigInt(high_water[partition] ?? 0);
  // Lines of the earliest versions have only the instant.
  return Boolean(as_of) && received_at_us < toUs(toInstant(as_of!));
}
