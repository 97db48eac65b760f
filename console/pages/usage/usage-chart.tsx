/** The chart of the explorer: up to five series, the period before, marks of price changes and corrections. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import type { ChartSeries } from '../../charts/series.ts';
import { TimeSeries } from '../../charts/time-series.tsx';
import { usePages } from '../../client/pages.ts';
import { Choice } from '../../components/choice.tsx';
import { Section } from '../../components/page.tsx';
import type { DayRange } from '../../components/range.ts';
import { Loading } from '../../components/states.tsx';
import { findLocale } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { compareDecimals } from '../invoices/decimals.ts';
import type { PlanPrice } from '../plans/plan-queries.ts';
import type { UsageMeter } from './usage-controls.tsx';
import { fillWindows, listCorrectionMarks, listPriceChanges, moveWindows } from './usage-figures.ts';
import { type Analytics, correctedQuery, type MeterUsage, type Split } from './usage-queries.ts';
import { USAGE_TEXTS } from './usage-texts.ts';
import type { UsageWindow } from './usage-window.ts';

/** The largest values of a split; the others stand in the table. */
const SERIES_MAX = 5;

type UsageChartProps = {
  /** Cost over time is known of one customer. */
  external_customer_id: string | undefined;
  onShow: (show: 'cost' | undefined) => void;
  title: string;
  usage: MeterUsage;
  before: MeterUsage | undefined;
  beforeRange: DayRange;
  beforeName: string;
  split: Split | null;
  /** Draws the cost of each line item instead of usage. */
  cost: Analytics | undefined;
  range: DayRange;
  window: UsageWindow;
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
    ...correctedQuery({
      event_name: meter.event_name,
      range,
      ...(external_customer_id === undefined ? {} : { external_customer_id }),
    }),
    // Without the permission for events there are no marks, and the chart stands.
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
    if (cost)
      return cost.items
        .filter(({ sub_line_item_id }) => sub_line_item_id !== null)
        .slice(0, SERIES_MAX)
        .map((item) => ({
          key: item.sub_line_item_id ?? item.meter_id,
          label: [item.plan?.name ?? item.name, item.currency?.toUpperCase()].filter(Boolean).join(', '),
          points: fillWindows(
            (item.points ?? []).map(({ timestamp, cost: amount }) => ({ at: timestamp, value: amount ?? '0' })),
            { range, window, aggregation: 'SUM', now_ms },
          ),
        }));
    const parts =
      split === null
        ? [{ key: meter.id, label: meter.name, points: fill(usage, range) }]
        : split.rows
            .filter((row) => row.usage !== undefined)
            .toSorted((left, right) => compareDecimals(right.usage!.value, left.usage!.value))
            .slice(0, SERIES_MAX)
            .map((row) => ({ key: row.value, label: row.value, points: fill(row.usage, range) }));
    if (!before) return parts;
    const points = moveWindows(fill(before, beforeRange), beforeRange, range, window);
    return [...parts, { key: 'before', label: beforeName, points, isBefore: true }];
  }, [usage, before, beforeRange, beforeName, split, cost, range, window, meter, now_ms]);
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
        <TimeSeries
          label={title}
          series={series}
          marks={marks}
          showAt={showAt}
          {...(cost ? { showValue: (value: string) => <Money amount={value} currency={currency} /> } : {})}
        />
      )}
    </Section>
  );
}

function toPoint({ window_size, value }: { window_size: string; value: string }) {
  return { at: window_size, value };
}

function formatWindow(language: 'en' | 'de', at: string, window: UsageWindow): string {
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
