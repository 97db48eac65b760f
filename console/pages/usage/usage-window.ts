/** Lengths of the steps in which usage is shown. */
export const USAGE_WINDOWS = ['HOUR', 'DAY', 'MONTH'] as const;
export type UsageWindow = (typeof USAGE_WINDOWS)[number];
