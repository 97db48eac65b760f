/** The time of an event to the millisecond; of another day, the day and the time to the second. */
import { type ReactNode, useState } from 'react';
import { formatSecond, isSameDay } from '../../figures/format.ts';
import { ExactTime, useZone } from '../../figures/when.tsx';
import { useLanguage } from '../../texts/texts.ts';
import styles from './events.module.css';

export function EventTime({ at }: { at: string }): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  const [now] = useState(() => new Date());
  if (isSameDay(new Date(at), now, zone)) return <ExactTime at={at} />;
  return (
    <time className={`mono ${styles.time}`} dateTime={at} title={at}>
      {formatSecond(language, at, zone)}
    </time>
  );
}
