/** The usage explorer: one meter over time, of all customers or of one, split by a property, with its cost and the period before. */
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { linkTo } from '../../client/client.ts';
import { usePages } from '../../client/pages.ts';
import { buttonClass, primaryButtonClass } from '../../components/button.tsx';
import { PageHead } from '../../components/page.tsx';
import {
  buildPreset,
  buildRangeBefore,
  countDays,
  type DayRange,
  isMonth,
  toInstants,
} from '../../components/range.ts';
import { WithSheet } from '../../components/side-sheet.tsx';
import { Empty, Failure, Loading, useIsShown } from '../../components/states.tsx';
import { findLocale, formatPeriod } from '../../figures/format.ts';
import { ExactTime } from '../../figures/when.tsx';
import { compact } from '../../routing/search.ts';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { CostThread } from './cost-thread.tsx';
import { METERS, type UsageSearch } from './routes.ts';
import { SplitTable } from './split-table.tsx';
import { UsageChart } from './usage-chart.tsx';
import { UsageControls, type UsageMeter } from './usage-controls.tsx';
import { chooseWindow, isAdditive, isTooFine } from './usage-figures.ts';
import {
  type Analytics,
  buildAnalyticsQuery,
  buildWindowsQuery,
  type MeterUsage,
  type UsageQuery,
  type UsageSplit,
  useSplit,
} from './usage-queries.ts';
import { UsageStats } from './usage-stats.tsx';
import { USAGE_TEXTS } from './usage-texts.ts';
import type { UsageWindowSize } from './usage-window.ts';

const FROM = '/env/$environment_id/usage';
/** The export splits at most so many days. */
const SPLIT_DAYS_MAX = 400;

export function UsagePage(): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const { meter: meter_id } = useSearch({ from: FROM });
  const meters = usePages('/meters', METERS);
  const isShown = useIsShown(!meters.isPending);
  const meter = meters.rows.find(({ id }) => id === meter_id) ?? meters.rows[0];
  if (meters.error) return <Failure error={meters.error} onRetry={meters.refetch} />;
  if (!isShown) return <Loading rows={8} />;
  if (meter) return <UsageOfMeter meter={meter} meters={meters.rows} />;
  return (
    <>
      <PageHead title={texts.title} />
      <Empty
        title={texts.noMeter}
        action={
          <Link from={FROM} to="/env/$environment_id/meters/new" search={{}} className={primaryButtonClass}>
            {texts.newMeter}
          </Link>
        }
      >
        {texts.noMeterHint}
      </Empty>
    </>
  );
}

/** Choices that the address names, with defaults for the others. */
type UsageView = {
  readonly range: DayRange;
  readonly before: DayRange;
  readonly window: UsageWindowSize;
  readonly isCompared: boolean;
};

function chooseView({ from, to, window, compare }: UsageSearch, now_ms: number): UsageView {
  const range = from !== undefined && to !== undefined ? { from, to } : buildPreset('month', now_ms);
  const wanted = window ?? chooseWindow(range);
  return {
    range,
    before: buildRangeBefore(range),
    window: isTooFine(wanted, range) ? 'DAY' : wanted,
    isCompared: compare !== undefined,
  };
}

function UsageOfMeter({ meter, meters }: { meter: UsageMeter; meters: readonly UsageMeter[] }): ReactNode {
  const language = useLanguage();
  const search = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const now_ms = useNow();
  const view = chooseView(search, now_ms);
  const { range, before, window, isCompared } = view;
  const query: UsageQuery = {
    meter_id: meter.id,
    range,
    window,
    ...(search.customer === undefined ? {} : { external_customer_id: search.customer }),
  };
  const { window: _, ...whole } = query;
  const usage = useQuery(buildWindowsQuery(query));
  const usageBefore = useQuery({ ...buildWindowsQuery({ ...query, range: before }), enabled: isCompared });
  const cost = useQuery(buildAnalyticsQuery(search.customer === undefined ? whole : query));
  const compared = isCompared ? before : null;
  const split = useSplit({ query, split: search.split, before: compared, values_max: search.values });
  const change = (next: Partial<UsageSearch>) =>
    void navigate({ search: (old: UsageSearch) => compact({ ...old, ...next }) as never, resetScroll: false });
  const beforeName = formatRange(language, before);
  return (
    <WithSheet
      sheet={
        search.why === 'cost' && cost.data ? (
          <CostThread analytics={cost.data} range={range} onClose={() => change({ why: undefined })} />
        ) : null
      }
    >
      <UsageHead meter={meter} view={view} split={search.split} as_of={usage.data?.as_of} />
      <UsageControls
        search={search}
        meters={meters}
        meter={meter}
        range={range}
        window={window}
        now_ms={now_ms}
        beforeName={beforeName}
        onChange={change}
      />
      {usage.isError ? (
        <Failure error={usage.error} onRetry={() => void usage.refetch()} />
      ) : usage.data === undefined ? (
        <Loading rows={8} />
      ) : (
        <UsageFigures
          meter={meter}
          search={search}
          view={view}
          usage={usage.data}
          usageBefore={isCompared ? usageBefore.data : undefined}
          beforeName={beforeName}
          cost={cost.data}
          split={split}
          now_ms={now_ms}
          onChange={change}
        />
      )}
    </WithSheet>
  );
}

type UsageHeadProps = { meter: UsageMeter; view: UsageView; split: string | undefined; as_of: string | undefined };

function UsageHead({ meter, view: { range, window }, split, as_of }: UsageHeadProps): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const isSplitByDay = countDays(range) <= SPLIT_DAYS_MAX;
  return (
    <PageHead
      title={
        split === undefined
          ? meter.name
          : texts.by(meter.name, split === 'customer' ? texts.customerWord : split.slice(2))
      }
      subtitle={
        as_of === undefined ? (
          'UTC'
        ) : (
          <>
            UTC · {texts.asOf} <ExactTime at={as_of} />
          </>
        )
      }
      actions={
        <a
          className={buttonClass}
          download
          title={texts.csvTitle}
          href={linkTo('/events/usage/export', {
            ...toInstants(range),
            meter_ids: meter.id,
            ...(isSplitByDay ? { split: window === 'MONTH' ? 'MONTH' : 'DAY' } : {}),
          })}
        >
          {texts.csv}
        </a>
      }
    />
  );
}

type UsageFiguresProps = {
  meter: UsageMeter;
  search: UsageSearch;
  view: UsageView;
  usage: MeterUsage;
  usageBefore: MeterUsage | undefined;
  beforeName: string;
  cost: Analytics | undefined;
  split: UsageSplit;
  now_ms: number;
  onChange: (next: Partial<UsageSearch>) => void;
};

function UsageFigures(props: UsageFiguresProps): ReactNode {
  const { meter, search, view, usage, usageBefore, beforeName, cost, split, now_ms, onChange } = props;
  const { range, before, window, isCompared } = view;
  const texts = useTexts(USAGE_TEXTS);
  const isCostShown = search.show === 'cost' && search.customer !== undefined;
  return (
    <>
      <UsageStats
        usage={usage}
        before={usageBefore}
        beforeName={beforeName}
        cost={cost}
        meter={meter}
        external_customer_id={search.customer}
        range={range}
        onWhy={() => onChange({ why: 'cost' })}
      />
      {usage.event_count === 0 ? (
        <Empty title={texts.nothing}>{texts.nothingHint}</Empty>
      ) : (
        <>
          <UsageChart
            external_customer_id={search.customer}
            onShow={(show) => onChange({ show })}
            title={isCostShown ? texts.costPer(window) : texts.usagePer(meter.name, window)}
            usage={usage}
            before={usageBefore}
            beforeRange={before}
            beforeName={beforeName}
            split={search.split === undefined ? null : split}
            cost={isCostShown ? cost : undefined}
            range={range}
            window={window}
            meter={meter}
            now_ms={now_ms}
          />
          {search.split !== undefined && (
            <SplitTable
              split={split}
              name={search.split === 'customer' ? texts.customer : search.split.slice(2)}
              total={usage}
              isAdditive={isAdditive(meter.aggregation.type)}
              onMore={(values) => onChange({ values })}
              beforeName={isCompared ? beforeName : null}
              isOfCustomers={search.split === 'customer'}
            />
          )}
        </>
      )}
    </>
  );
}

/** A whole month by its name, another range by its first and last day. */
function formatRange(language: Language, range: DayRange): string {
  const { start_time, end_time } = toInstants(range);
  if (!isMonth(range)) return formatPeriod(language, start_time, end_time, 'UTC');
  return new Intl.DateTimeFormat(findLocale(language), { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(start_time),
  );
}
