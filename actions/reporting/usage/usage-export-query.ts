/** Parameters of the usage export: range, split, meters and amounts. */
import type { ChargeInterval, Split } from '../../../core/rating/charge-intervals.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';

export type UsageExportQuery = ChargeInterval & {
  /** Null means all published meters. */
  readonly meter_ids: readonly string[] | null;
  /** Time zone of the days and months of `split`, and of the meters' windows for uncharged usage; null means UTC. */
  readonly timezone: string | null;
  /** Null means no split. */
  readonly split: Split | null;
  /** Whether the export contains charges for the usage. */
  readonly amounts: boolean;
  readonly now: Date;
  readonly customers_per_batch?: number;
  readonly bounds?: QueryBounds | undefined;
};
