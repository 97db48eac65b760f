/** The chart of the usage explorer: the largest groups, one line of all others, the period before, and marks of price changes and corrections. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { type ChartSeries, SERIES_MAX } from '../../charts/series.ts';
import { TimeSeries } from '../../charts/time-series.tsx';
import { usePages } from '../../client/pages.ts';
import { Choice } from '../../components/choice.tsx';
import { Section } from '../../components/page.tsx';
import type { DayRange } from '../../components/range.ts';
import { Loading } from '../../components/states.tsx';
import { findLocale, formatCount } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { compareDecimals } from '../invoices/decimals.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import styles from './usage.module.css';
import type { UsageMeter } from './usage-controls.tsx';
import {
  addParts,
  fillWindows,
  isAdditive,
  isAllZero,
  listCorrectionMarks,
  listPriceChanges,
  moveWindows,
  subtractParts,
} from './usage-figures.ts';
import { type Analytics, buildCorrectedQuery, type MeterUsage, type UsageSplit } from './usage-queries.ts';
import { USAGE_TEXTS } from './usage-texts.ts';
import type { UsageWindowSize } from './usage-window.ts';

type UsageChartProps = {
  /** Cost over time is known of one customer. */
  external_customer_id: string | undefined;
  onShow: (show: 'cost' | undefined) => void;
  title: string;
  usage: MeterUsage;
  before: MeterUsage | undefined;
  beforeRange: DayRange;
  beforeName: string;
  split: UsageSplit | null;
  /** Draws the cost of each line item instead of usage. */
  cost: Analytics | undefined;
  range: DayRange;
  window: UsageWindowSize;
  meter: UsageMeter;
  now_ms: number;
};

export function UsageChart(props: UsageChartProps): ReactNode {
  const {
    external_customer_id,
    onShow,
    title,
    usage,
    before,
    beforeRange,
    beforeName,
    split,
    cost,
    range,
    window,
    meter,
    now_ms,
  } = props;
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const prices = usePages('/prices', {
    query: { meter_ids: meter.id, entity_type: 'PLAN', expand: 'plan' } as never,
  });
  const corrected = useQuery({
    ...buildCorrectedQuery({
      event_name: meter.event_name,
      range,
      ...(external_customer_id === undefined ? {} : { external_customer_id }),
    }),
    // Without the permission to read events the chart has no marks.
    retry: false,
  });
  const marks = useMemo(
    () => [
      ...listPriceChanges(
        (prices.rows as unknown as PlanPrice[]).map(({ entity_id, start_date, end_date, plan }) => ({
          entity_id: entity_id ?? null,
          start_date: start_date ?? null,
          end_date: end_date ?? null,
          plan_name: plan?.name ?? null,
        })),
        range,
        texts.priceChange,
      ),
      ...listCorrectionMarks(corrected.data?.items ?? [], { range, window, label: texts.correctedEvents }),
    ],
    [prices.rows, corrected.data, range, window, texts],
  );
  const series = useMemo((): ChartSeries[] => {
    const aggregation = meter.aggregation.type;
    const fill = (data: MeterUsage | undefined, of: DayRange) =>
      fillWindows((data?.results ?? []).map(toPoint), { range: of, window, aggregation, now_ms });
    if (cost) return buildCostSeries(cost, { range, window, now_ms, other: texts.other });
    const whole = fill(usage, range);
    // A split without values shows the whole as one line.
    const drawn = listLargest(split).slice(0, SERIES_MAX);
    const parts: ChartSeries[] =
      drawn.length === 0
        ? [{ key: meter.id, label: meter.name, points: whole }]
        : drawn.map((row) => ({ key: row.value, label: row.value, points: fill(row.usage, range) }));
    if (drawn.length > 0 && isAdditive(aggregation)) {
      const points = subtractParts(
        whole,
        parts.map((part) => part.points),
      );
      if (!isAllZero(points)) parts.push({ key: OTHER, label: texts.other, points, isOther: true });
    }
    if (!before) return parts;
    const points = moveWindows(fill(before, beforeRange), beforeRange, range, window);
    return [...parts, { key: 'before', label: beforeName, points, isBefore: true }];
  }, [usage, before, beforeRange, beforeName, split, cost, range, window, meter, now_ms, texts]);
  const undrawn = cost ? countUndrawnCosts(cost) : countUndrawn(split, meter.aggregation.type);
  const showAt = (at: string) => formatWindow(language, at, window);
  const currency = cost?.totals[0]?.currency ?? null;
  return (
    <Section
      title={title}
      {...(before && !cost ? { hint: texts.dashed(beforeName) } : {})}
      end={
        <Choice<'usage' | 'cost'>
          label={texts.show}
          value={cost ? 'cost' : 'usage'}
          options={[
            { value: 'usage', label: texts.usage },
            { value: 'cost', label: texts.cost, blocked: external_customer_id !== undefined ? null : texts.costOfOne },
          ]}
          onValue={(value) => onShow(value === 'cost' ? 'cost' : undefined)}
        />
      }
    >
      {split?.isPending ? (
        <Loading rows={6} />
      ) : (
        <>
          <TimeSeries
            label={title}
            series={series}
            marks={marks}
            showAt={showAt}
            {...(cost ? { showValue: (value: string) => <Money amount={value} currency={currency} /> } : {})}
          />
          {undrawn > 0 && (
            <p className={styles.foot}>
              {(cost ? texts.costNotDrawn : texts.notDrawn)(formatCount(language, undrawn))}
            </p>
          )}
        </>
      )}
    </Section>
  );
}

/** Key of the line of all others. It differs from the key of every group, because those are not empty. */
const OTHER = '';

function listLargest(split: UsageSplit | null) {
  return (split?.rows ?? [])
    .filter((row) => row.usage !== undefined)
    .toSorted((left, right) => compareDecimals(right.usage!.value, left.usage!.value));
}

/** Number of values of a split without a line of their own that the line of all others does not include. */
function countUndrawn(split: UsageSplit | null, aggregation: string): number {
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

function countUndrawnCosts(cost: Analytics): number {
  return hasOneCurrency(cost) ? 0 : Math.max(0, listCharged(cost).length - SERIES_MAX);
}

type CostTerms = { range: DayRange; window: UsageWindowSize; now_ms: number; other: string };

/** Builds one line for the cost of each line item. If there are more than colours, the last line is the sum of the rest. */
function buildCostSeries(cost: Analytics, { other, ...terms }: CostTerms): ChartSeries[] {
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

function toPoint({ window_size, value }: { window_size: string; value: string }) {
  return { at: window_size, value };
}

function formatWindow(language: 'en' | 'de', at: string, window: UsageWindowSize): string {
  const options: Intl.DateTimeFormatOptions =
    window === 'MONTH'
      ? { month: 'short', year: 'numeric' }
      : { day: 'numeric', month: 'short', ...(window === 'HOUR' ? { hour: '2-digit', minute: '2-digit' } : {}) };
  return new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : findLocale(language), {
    ...options,
    hourCycle: 'h23',
    timeZone: 'UTC',
  }).format(new Date(at));
}
