/** Shape of a usage query: events, customers, range and windows. */

import type { Microseconds, Milliseconds } from '../../core/foundation/time/instant.ts';
import type { WindowSize } from '../../core/foundation/time/window.ts';
import type { PropertySource } from '../../core/metering/event-text.ts';
import type { Meter } from '../../core/metering/meter/record.ts';
import type { MeterDefinition } from '../../core/metering/meter-definition.ts';
import type { QueryBounds } from '../concurrency/query-bounds.ts';
import type { PositionedRawEvent } from '../events/raw-events.ts';

/** Query for the value of a meter in the half-open range [start_us, end_us), divided into windows if requested. */
export type MeterUsageQuery = {
  readonly meter: Pick<Meter, 'id'>;
  /** Definition by which events count instead of the meter's own. A query with a definition reads raw rows. */
  readonly definition?: MeterDefinition | undefined;
  /** Null means all customers. Several customers are counted as one set. */
  readonly external_customer_ids: readonly string[] | null;
  /** Customers that count only in the given ranges. Their events outside these ranges are excluded. */
  readonly clipped?: ClippedRanges | undefined;
  readonly start_us: Microseconds;
  readonly end_us: Microseconds;
  readonly window_size?: WindowSize | undefined;
  /** If true, each window is computed as if the range ended with it; for meters for which `canRun` is true. */
  readonly running?: boolean;
  /** If true, each window also has the value of the range up to its end. */
  readonly running_values?: boolean;
  /** If true, windows without events are included. */
  readonly every_window?: boolean;
  /** Start of the windows; all time before it is one window. Default: the start of the range. */
  readonly windows_from_us?: Microseconds | undefined;
  readonly timezone?: string | undefined;
  readonly billing_anchor_ms?: Milliseconds | undefined;
  /** If true, the answer is per customer instead of one answer for the set. */
  readonly by_customer?: boolean;
  /** Filter for events; a query with it reads raw rows. */
  readonly only?:
    | {
        readonly sources?: readonly string[] | undefined;
        readonly passes?: ((properties: PropertySource) => boolean) | undefined;
      }
    | undefined;
  /** Stored event that is left out, so that the answer is the usage as if it had not been sent. */
  readonly without?: PositionedRawEvent | undefined;
  /** Groups the answer by a key of each event. A query with this function reads raw rows. */
  readonly key_of?: ((event: KeyedEvent) => string) | undefined;
  /** True if the keys are groups that a request names. Their number is bounded for a tenant's own query. */
  readonly is_grouped?: boolean;
  /** True if the caller runs many similar queries. If each needs few raw events, one batch reads the events of all. */
  readonly is_of_many?: boolean;
  readonly now_ms?: Milliseconds;
  /** Bounds of a tenant's own query, which may be rejected or aborted; billing has none. */
  readonly bounds?: QueryBounds | undefined;
};

/** Half-open ranges in which a customer's usage counts, by customer. */
export type ClippedRanges = ReadonlyMap<string, readonly (readonly [start_us: Microseconds, end_us: Microseconds])[]>;

export type KeyedEvent = {
  source: string;
  external_customer_id: string;
  timestamp_us: Microseconds;
  properties: PropertySource;
};
