/** Lines of the chart of the usage explorer: the largest groups, and all others as one line if they add up. */
import { type ChartPoint, type ChartSeries, SERIES_MAX } from '../../charts/series.ts';
import type { DayRange } from '../../components/range.ts';
import { compareDecimals } from '../invoices/decimals.ts';
import { addParts, fillWindows, isAdditive, isAllZero, subtractParts } from './usage-figures.ts';
import type { Analytics, MeterUsage, UsageSplit } from './usage-queries.ts';
import type { UsageWindowSize } from './usage-window.ts';

/** Key of the line of all others. It differs from the key of every group, because those are not empty. */
const OTHER = '';

type FillTerms = { range: DayRange; window: UsageWindowSize; aggregation: string; now_ms: number };
type SeriesTerms = Omit<FillTerms, 'aggregation'> & {
  /** Label of the line of all others. */
  other: string;
};

/** The points of an answer, one for each window of the range. */
export function fillUsage(usage: MeterUsage | undefined, terms: FillTerms): ChartPoint[] {
  return fillWindows(
    (usage?.results ?? []).map(({ window_size, value }) => ({ at: window_size, value })),
    terms,
  );
}

type UsageTerms = FillTerms & SeriesTerms & { split: UsageSplit | null; meter: { id: string; name: string } };

/** Builds the lines of the largest groups and one of all others. A split without values shows the whole as one line. */
export function buildUsageSeries(usage: MeterUsage, { split, meter, other, ...terms }: UsageTerms): ChartSeries[] {
  const whole = fillUsage(usage, terms);
  const drawn = listLargest(split).slice(0, SERIES_MAX);
  if (drawn.length === 0) return [{ key: meter.id, label: meter.name, points: whole }];
  const parts = drawn.map((row) => ({ key: row.value, label: row.value, points: fillUsage(row.usage, terms) }));
  if (!isAdditive(terms.aggregation)) return parts;
  const points = subtractParts(
    whole,
    parts.map((part) => part.points),
  );
  return isAllZero(points) ? parts : [...parts, { key: OTHER, label: other, points, isOther: true }];
}

function listLargest(split: UsageSplit | null) {
  return (split?.rows ?? [])
    .filter((row) => row.usage !== undefined)
    .toSorted((left, right) => compareDecimals(right.usage!.value, left.usage!.value));
}

/** Counts the values of a split without a line of their own that the line of all others does not include, either. */
export function countUndrawn(split: UsageSplit | null, aggregation: string): number {
  if (split === null || isAdditive(aggregation)) return 0;
  return Math.max(0, split.rows.length + split.left_out - SERIES_MAX);
}

function listCharged({ items }: Analytics) {
  return items.filter(({ sub_line_item_id }) => sub_line_item_id !== null);
}

/** Only amounts of one currency add up. */
function hasOneCurrency(cost: Analytics): boolean {
  return new Set(listCharged(cost).map(({ currency }) => currency)).size === 1;
}

export function countUndrawnCosts(cost: Analytics): number {
  return hasOneCurrency(cost) ? 0 : Math.max(0, listCharged(cost).length - SERIES_MAX);
}

/** Builds one line for the cost of each line item. If there are more than colours, the last line is the sum of the rest. */
export function buildCostSeries(cost: Analytics, { other, ...terms }: SeriesTerms): ChartSeries[] {
  const all = listCharged(cost).map((item) => ({
    key: item.sub_line_item_id ?? item.meter_id,
    label: [item.plan?.name ?? item.name, item.currency?.toUpperCase()].filter(Boolean).join(', '),
    points: fillWindows(
      (item.points ?? []).map(({ timestamp, cost: amount }) => ({ at: timestamp, value: amount ?? '0' })),
      { ...terms, aggregation: 'SUM' },
    ),
  }));
  const drawn = all.slice(0, SERIES_MAX);
  if (all.length <= SERIES_MAX || !hasOneCurrency(cost)) return drawn;
  const points = addParts(all.slice(SERIES_MAX).map((each) => each.points));
  return [...drawn, { key: OTHER, label: other, points, isOther: true }];
}
