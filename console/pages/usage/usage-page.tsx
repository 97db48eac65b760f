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
import { Empty, Failure, Loading } from '../../components/states.tsx';
import { findLocale, formatPeriod } from '../../figures/format.ts';
import { ExactTime } from '../../figures/when.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { CostThread } from './cost-thread.tsx';
import { METERS, type UsageSearch } from './routes.ts';
import { SplitTable } from './split-table.tsx';
import { UsageChart } from './usage-chart.tsx';
import { UsageControls } from './usage-controls.tsx';
import { chooseWindow, isAdditive, isTooFine } from './usage-figures.ts';
import { buildAnalyticsQuery, buildWindowsQuery, type UsageQuery, useSplit } from './usage-queries.ts';
import { UsageStats } from './usage-stats.tsx';
import { USAGE_TEXTS } from './usage-texts.ts';

const FROM = '/env/$environment_id/usage';
/** The export splits at most so many days. */
const SPLIT_DAYS_MAX = 400;

export function UsagePage(): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const search = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const now_ms = useNow();
  const meters = usePages('/meters', METERS);
  const meter = meters.rows.find(({ id }) => id === search.meter) ?? meters.rows[0];
  const range =
    search.from !== undefined && search.to !== undefined
      ? { from: search.from, to: search.to }
      : buildPreset('month', now_ms);
  const before = buildRangeBefore(range);
  const wanted = search.window ?? chooseWindow(range);
  const window = isTooFine(wanted, range) ? 'DAY' : wanted;
  const query: UsageQuery = {
    meter_id: meter?.id ?? '',
    range,
    window,
    ...(search.customer === undefined ? {} : { external_customer_id: search.customer }),
  };
  const enabled = meter !== undefined;
  const { window: _, ...whole } = query;
  const usage = useQuery({ ...buildWindowsQuery(query), enabled });
  const usageBefore = useQuery({
    ...buildWindowsQuery({ ...query, range: before }),
    enabled: enabled && search.compare !== undefined,
  });
  const isOfOne = search.customer !== undefined;
  const cost = useQuery({ ...buildAnalyticsQuery(isOfOne ? query : whole), enabled });
  const compared = search.compare === undefined ? null : before;
  const split = useSplit({ query, split: search.split, before: compared, values_max: search.values });
  const change = (next: Partial<UsageSearch>) =>
    void navigate({ search: (old: UsageSearch) => dropEmpty({ ...old, ...next }) as never, resetScroll: false });
  if (meters.error) return <Failure error={meters.error} onRetry={meters.refetch} />;
  if (meters.isPending) return <Loading rows={8} />;
  if (!meter)
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
  const beforeName = formatRange(language, before);
  const title =
    search.split === undefined
      ? meter.name
      : texts.by(meter.name, search.split === 'customer' ? texts.customerWord : search.split.slice(2));
  return (
    <WithSheet
      sheet={
        search.why === 'cost' && cost.data ? (
          <CostThread analytics={cost.data} range={range} onClose={() => change({ why: undefined })} />
        ) : null
      }
    >
      <PageHead
        title={title}
        subtitle={
          usage.data ? (
            <>
              UTC · {texts.asOf} <ExactTime at={usage.data.as_of} />
            </>
          ) : (
            'UTC'
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
              ...(countDays(range) > SPLIT_DAYS_MAX ? {} : { split: window === 'MONTH' ? 'MONTH' : 'DAY' }),
            })}
          >
            {texts.csv}
          </a>
        }
      />
      <UsageControls
        search={search}
        meters={meters.rows}
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
        <>
          <UsageStats
            usage={usage.data}
            before={compared ? usageBefore.data : undefined}
            beforeName={beforeName}
            cost={cost.data}
            meter={meter}
            external_customer_id={search.customer}
            range={range}
            onWhy={() => change({ why: 'cost' })}
          />
          {usage.data.event_count === 0 ? (
            <Empty title={texts.nothing}>{texts.nothingHint}</Empty>
          ) : (
            <>
              <UsageChart
                external_customer_id={search.customer}
                onShow={(show) => change({ show })}
                title={search.show === 'cost' && isOfOne ? texts.costPer(window) : texts.usagePer(meter.name, window)}
                usage={usage.data}
                before={compared ? usageBefore.data : undefined}
                beforeRange={before}
                beforeName={beforeName}
                split={search.split === undefined ? null : split}
                cost={search.show === 'cost' && isOfOne ? cost.data : undefined}
                range={range}
                window={window}
                meter={meter}
                now_ms={now_ms}
              />
              {search.split !== undefined && (
                <SplitTable
                  split={split}
                  name={search.split === 'customer' ? texts.customer : search.split.slice(2)}
                  total={usage.data}
                  isAdditive={isAdditive(meter.aggregation.type)}
                  onMore={(values) => change({ values })}
                  beforeName={compared ? beforeName : null}
                  isOfCustomers={search.split === 'customer'}
                />
              )}
            </>
          )}
        </>
      )}
    </WithSheet>
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

function dropEmpty(search: UsageSearch): UsageSearch {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as UsageSearch;
}
