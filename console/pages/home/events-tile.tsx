/** Events that arrive: their rate, the last hour by minute, and the lag. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { can, useSession } from '../../client/session.ts';
import { formatCount } from '../../figures/format.ts';
import { Unknown } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { EventBars, useEventWindows } from './event-bars.tsx';
import styles from './home.module.css';
import { TEXTS } from './texts.ts';

export function EventsTile(): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const session = useSession();
  const windows = useEventWindows();
  return (
    <section className={styles.tile} aria-label={texts.events}>
      <div className={styles.tileHead}>
        <h2>{texts.events}</h2>
        <Link from="/env/$environment_id" to="/env/$environment_id/events">
          {texts.liveEvents}
        </Link>
      </div>
      {can(session, 'event', 'read') ? (
        <>
          <p>
            <span className={styles.big}>{windows ? formatCount(language, windows.total) : <Unknown />}</span>{' '}
            <span className="muted">
              {texts.lastHour}
              {windows && ` · ${texts.lastMinute(formatCount(language, windows.counts.at(-2) ?? 0))}`}
            </span>
          </p>
          <EventBars label={texts.events} />
        </>
      ) : (
        <p className="muted">{texts.mayNot}</p>
      )}
    </section>
  );
}
