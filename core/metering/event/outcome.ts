/** Record of an input that took no effect or could not be measured: why, and its position in the log. */
import type { Microseconds } from '../../foundation/time/instant.ts';

export type OutcomeKind = 'duplicate' | 'conflict' | 'dead_letter' | 'unusable';

export type EventOutcome = {
  readonly tenant_id: string;
  readonly environment_id: string;
  readonly event_id: string;
  readonly outcome: OutcomeKind;
  readonly meter_id: string;
  readonly reason: string;
  readonly received_at_us: Microseconds;
  readonly partition: number;
  readonly offset: number;
  readonly position: number;
  readonly body: string;
};
