/**
 * The rule that decides whether a usage line counted an event. The line records the first uncounted offset of each partition of the log. An
 * event at or after it is late for a final line (docs/rules/invoices.md, "Late events").
 */
import { type Microseconds, toInstant, toUs } from '../foundation/time/instant.ts';
import type { ComputedFrom } from './computed-from.ts';

export type ReceivedPosition = {
  readonly partition: number;
  readonly offset: number;
  readonly received_at_us: Microseconds;
};

export function hasCounted(
  computed_from: Pick<ComputedFrom, 'high_water' | 'as_of'> | null | undefined,
  { partition, offset, received_at_us }: ReceivedPosition,
): boolean {
  const { high_water, as_of } = computed_from ?? {};
  if (high_water) return BigInt(offset) < BigInt(high_water[partition] ?? 0);
  // The first releases recorded only the instant of the computation.
  return Boolean(as_of) && received_at_us < toUs(toInstant(as_of!));
}
