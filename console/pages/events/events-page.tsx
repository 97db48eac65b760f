/** Events as they arrive, and the lists of uncounted, corrected and late events. The sheet beside a list has the thread of one event. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useMayNot } from '../../client/permission.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { formatCount, formatQuantity } from '../../figures/format.ts';
import { compact } from '../../routing/search.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { CorrectedList } from './corrected-list.tsx';
import { EventFilterBar } from './event-filters.tsx';
import { EventList } from './event-list.tsx';
import { buildEventsQuery, isAnswered } from './event-queries.ts';
import { buildEventFilters, findSampleRate } from './event-rows.ts';
import type { EventsSearch, EventTab } from './event-search.ts';
import { EventSheet } from './event-sheet.tsx';
import { EventTabs } from './event-tabs.tsx';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';
import { LateList } from './late-list.tsx';
import { type LiveEvents, useLiveEvents } from './live-events.ts';
import { SendEvent } from './send-event.tsx';
import { UncountedList } from './uncounted-list.tsx';

const FROM = '/env/$environment_id/events';

export function EventsPage(): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const mayNotSend = useMayNot('event:write');
  const search = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const [isPaused, setPaused] = useState(false);
  const [hasFocus, setFocus] = useState(false);
  const filters = buildEventFilters(search);
  const isAll = search.tab === undefined;
  // The counts wait for the list, because they cost the service several times as much as its first page.
  const list = useInfiniteQuery({ ...buildEventsQuery(filters), enabled: isAll });
  const shouldCount = !isAll || isAnswered(list);
  // A period that is over gets no new events.
  const isOn = isAll && filters.end_time === undefined;
  const live = useLiveEvents({ filters, isOn, isPaused: isPaused || hasFocus });
  const change = (next: Partial<EventsSearch>) =>
    void navigate({ search: (old: EventsSearch) => compact({ ...old, ...next }) as never, resetScroll: false });
  return (
    <WithSheet
      sheet={
        search.event === undefined ? null : (
          <EventSheet
            key={search.event}
            id={search.event}
            dialogue={search.do}
            onDialogue={(dialogue) => change({ do: dialogue })}
            onClose={() => change({ event: undefined, do: undefined })}
          />
        )
      }
    >
      <PageHead
        title={texts.title}
        status={<LiveChip live={live} isPaused={isPaused || hasFocus} />}
        actions={
          <>
            {isOn && (
              <Button aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
                {isPaused ? texts.resume : texts.pause}
              </Button>
            )}
            <Button isPrimary blocked={mayNotSend} onClick={() => change({ do: 'send' })}>
              {texts.send}
            </Button>
          </>
        }
      />
      <EventFilterBar search={search} onChange={change} end={isOn ? <Sample live={live} /> : null} />
      <EventTabs search={search} filters={filters} shouldCount={shouldCount} />
      {isAll ? (
        <EventList
          filters={filters}
          live={live}
          openKey={search.event ?? null}
          isFiltered={Object.keys(filters).length > 0}
          onOpen={(event) => change({ event, do: undefined })}
          onFocusChange={setFocus}
          onSend={() => change({ do: 'send' })}
        />
      ) : (
        <OtherList tab={search.tab!} search={search} onChange={change} />
      )}
      {search.do === 'send' && (
        <SendEvent
          letter_id={search.letter}
          event_name={search.name}
          external_customer_id={search.customer}
          onSent={(event) => change({ event, do: undefined, letter: undefined })}
          onClose={() => change({ do: undefined, letter: undefined })}
        />
      )}
    </WithSheet>
  );
}

type OtherListProps = { search: EventsSearch; onChange: (next: Partial<EventsSearch>) => void };

function OtherList({ tab, ...props }: OtherListProps & { tab: EventTab }): ReactNode {
  if (tab === 'corrected') return <CorrectedList {...props} />;
  return tab === 'late' ? <LateList {...props} /> : <UncountedList {...props} />;
}

function LiveChip({ live, isPaused }: { live: LiveEvents; isPaused: boolean }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  if (live.mode === 'off') return null;
  if (isPaused) return <Chip tone="warn">{texts.paused(formatCount(language, live.waiting))}</Chip>;
  if (live.mode === 'poll') return <Chip>{texts.polled}</Chip>;
  return (
    <Chip tone="ok">
      <i className={styles.live} aria-hidden="true" />
      {live.rate === null ? texts.live : texts.liveRate(formatQuantity(language, live.rate))}
    </Chip>
  );
}

/** The stream shows a sample if more events come than anybody can read. */
function Sample({ live }: { live: LiveEvents }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  const rate = findSampleRate(live.shown, live.passed_over);
  if (live.mode !== 'stream' || rate === null) return null;
  return texts.sample(formatCount(language, rate), formatCount(language, live.shown));
}
