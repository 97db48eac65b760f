/** Lengths of the steps in which usage is shown. */
export const USAGE_WINDOWS = ['HOUR', 'DAY', 'MONTH'] as const;
export type UsageWindowSize = (typeof USAGE_WINDOWS)[number];
