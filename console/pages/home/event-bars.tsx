/** Events of the last hour as bars, one a minute, with their number. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { can, useSession } from '../../client/session.ts';
import { formatCount, formatTime } from '../../figures/format.ts';
import { useZone } from '../../figures/when.tsx';
import { defineTexts, useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './home.module.css';
import { type EventWindows, eventWindowsQuery } from './queries.ts';

const POLL_MS = 5_000;
const HEIGHT = 52;

export function useEventWindows(): EventWindows | undefined {
  const session = useSession();
  const { data } = useQuery({ ...eventWindowsQuery, refetchInterval: POLL_MS, enabled: can(session, 'event', 'read') });
  return data;
}

export function EventBars({ label }: { label: string }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const zone = useZone();
  const windows = useEventWindows();
  if (windows === undefined) return null;
  const { counts, start, total } = windows;
  const max = Math.max(1, ...counts);
  return (
    <figure className={styles.bars}>
      <svg
        viewBox={`0 0 ${counts.length * 6} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${texts.count(formatCount(language, total))}`}
      >
        {counts.map((count, minute) => {
          const height = count === 0 ? 1 : Math.max(2, (count / max) * HEIGHT);
          return (
            <rect
              key={minute}
              className={count === 0 ? styles.none : undefined}
              x={minute * 6}
              y={HEIGHT - height}
              width={4.5}
              height={height}
              rx={1}
            />
          );
        })}
      </svg>
      <figcaption className={styles.ends} aria-hidden="true">
        <span>{formatTime(language, start, zone).slice(0, 5)}</span>
        <span>{texts.now}</span>
      </figcaption>
    </figure>
  );
}

const TEXTS = defineTexts(
  { now: 'now', count: (count: string) => `${count} in all, one bar a minute` },
  { de: { now: 'jetzt', count: (count) => `${count} insgesamt, ein Balken je Minute` } },
);
