/** Tabs of the events page, with the numbers of their events. */
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { can, useSession } from '../../client/session.ts';
import { formatCount } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import {
  buildCorrectionCountQuery,
  buildLateCountQuery,
  buildUncountedCountsQuery,
  UNCOUNTED_DAYS,
} from './event-queries.ts';
import type { EventFilters } from './event-rows.ts';
import type { EventsSearch, EventTab } from './event-search.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

const FROM = '/env/$environment_id/events';

type EventTabsProps = {
  search: EventsSearch;
  filters: EventFilters;
  /** Whether the numbers are read. */
  shouldCount: boolean;
};

export function EventTabs({ search, filters, shouldCount }: EventTabsProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const session = useSession();
  const { property_filters: _, ...rest } = filters;
  const period = rest.start_time === undefined ? { days: UNCOUNTED_DAYS } : {};
  const counts = useQuery({ ...buildUncountedCountsQuery({ ...rest, ...period }), enabled: shouldCount });
  const corrections = useQuery({ ...buildCorrectionCountQuery(rest), enabled: shouldCount });
  const mayReadLate = can(session, 'invoice', 'read');
  const late = useQuery({ ...buildLateCountQuery(rest), enabled: shouldCount && mayReadLate, retry: false });
  const all = counts.data?.counts ?? [];
  return (
    <nav aria-label={texts.title}>
      <ul className={styles.tabs}>
        <Tab search={search} name={texts.all} />
        <Tab
          search={search}
          tab="uncounted"
          name={texts.uncounted}
          count={all.reduce((sum, { event_count }) => sum + event_count, 0)}
          hasMore={all.some(({ has_more }) => has_more)}
          isBad
        />
        <Tab search={search} tab="corrected" name={texts.correctedTab} count={corrections.data?.pagination.total} />
        <Tab
          search={search}
          tab="late"
          name={texts.late}
          count={late.data?.count?.event_count}
          hasMore={late.data?.count?.has_more}
        />
      </ul>
    </nav>
  );
}

type EventTabProps = {
  search: EventsSearch;
  tab?: EventTab;
  name: string;
  /** Number of events; zero and an unknown number are not shown. */
  count?: number | undefined;
  hasMore?: boolean | undefined;
  isBad?: boolean;
};

function Tab({ search, tab, name, count = 0, hasMore = false, isBad = false }: EventTabProps): ReactNode {
  const language = useLanguage();
  return (
    <li>
      <Link
        from={FROM}
        to="."
        search={({ tab: _tab, reason: _reason, action: _action, ...old }) => ({ ...old, ...(tab ? { tab } : {}) })}
        className={styles.tab}
        activeOptions={{ exact: true }}
        aria-current={search.tab === tab ? 'page' : 'false'}
      >
        {name}{' '}
        {count > 0 && (
          <span className={isBad ? styles.bad : undefined}>
            {formatCount(language, count)}
            {hasMore ? '+' : ''}
          </span>
        )}
      </Link>
    </li>
  );
}
