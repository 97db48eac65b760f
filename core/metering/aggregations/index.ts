/** All aggregation types. A new type is a file in this folder and an entry here. */
import type { MeterAggregator } from './aggregation.ts';
import { avg } from './avg.ts';
import { count } from './count.ts';
import { countUnique } from './count-unique.ts';
import { latest } from './latest.ts';
import { max } from './max.ts';
import { sum } from './sum.ts';
import { sumWithMultiplier } from './sum-with-multiplier.ts';
import { weightedSum } from './weighted-sum.ts';

export const AGGREGATIONS = {
  COUNT: count,
  SUM: sum,
  AVG: avg,
  COUNT_UNIQUE: countUnique,
  LATEST: latest,
  SUM_WITH_MULTIPLIER: sumWithMultiplier,
  MAX: max,
  WEIGHTED_SUM: weightedSum,
} as const satisfies Readonly<Record<string, MeterAggregator>>;

export type AggregationType = keyof typeof AGGREGATIONS;
