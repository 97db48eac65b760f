/** What the usage export is asked: which range, cut how, of which meters, with or without amounts. */
import type { ChargeInterval, Split } from '../../core/billing/charge-intervals.ts';
import type { QueryBounds } from '../../storage/usage/question.ts';

export type UsageExportQuery = ChargeInterval & {
  /** All published meters when null. */
  readonly meter_ids: readonly string[] | null;
  /** Of the days and months of `split`, and of the meters' own windows where nothing is charged; UTC when null. */
  readonly timezone: string | null;
  /** Not split when null. */
  readonly split: Split | null;
  /** What the usage was or will be charged. */
  readonly amounts: boolean;
  readonly now: Date;
  readonly customers_per_batch?: number;
  readonly bounds?: QueryBounds | undefined;
};
