/** The shape of a question about usage: which events, of whom, in which range, by which windows. */
import type { Meter } from '../../core/meter/record.ts';
import type { PropertySource } from '../../core/metering/event-text.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { Microseconds, Milliseconds } from '../../core/time/instant.ts';
import type { WindowSize } from '../../core/time/window.ts';
import type { QueryBounds } from './question.ts';

/** What a meter measured in the half-open range [start_us, end_us), cut into windows when asked. */
export type MeterUsageQuery = {
  readonly meter: Pick<Meter, 'id'>;
  /** Counts by this instead of what the meter says: such a question is answered from raw rows. */
  readonly definition?: MeterDefinition | undefined;
  /** All customers when null; several are one set. */
  readonly external_customer_ids: readonly string[] | null;
  /** Those of them who are counted in these times only; what they sent in others is not asked for. */
  readonly clipped?: ClippedRanges | undefined;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly window_size?: WindowSize | undefined;
  /** Each window is answered as if the range had ended with it, for the meters of which `canRun` says so. */
  readonly running?: boolean;
  /** Each window says beside its own value what the range came to at its end. */
  readonly running_values?: boolean;
  /** Windows without events are answered, too. */
  readonly every_window?: boolean;
  /** Start of the windows; all time before it is answered as one. Default: the start of the range. */
  readonly windows_from_us?: Microseconds | undefined;
  readonly timezone?: string | undefined;
  readonly billing_anchor_ms?: Milliseconds | undefined;
  /** One answer per customer instead of one for the set. */
  readonly by_customer?: boolean;
  /** Only events that pass; such a question is answered from raw rows. */
  readonly only?:
    | {
        readonly sources?: readonly string[] | undefined;
        readonly passes?: ((properties: PropertySource) => boolean) | undefined;
      }
    | undefined;
  /** One answer per key that an event belongs to; such a question is answered from raw rows. */
  readonly key_of?: ((event: KeyedEvent) => string) | undefined;
  /** The keys are groups that the caller asked for, of which a tenant's own question has a bound. */
  readonly is_grouped?: boolean;
  /** Many like it are asked at this time: where its raw events are few they are read together with those of the others. */
  readonly is_of_many?: boolean;
  readonly now_ms?: Milliseconds;
  /** A tenant's own question, which may be too much, or called off; none where billing asks. */
  readonly bounds?: QueryBounds | undefined;
};

/** By customer: half-open ranges. */
export type ClippedRanges = ReadonlyMap<string, readonly (readonly [start_us: Microseconds, end_us: Microseconds])[]>;

export type KeyedEvent = {
  source: string;
  external_customer_id: string;
  timestamp_us: Microseconds;
  properties: PropertySource;
};
