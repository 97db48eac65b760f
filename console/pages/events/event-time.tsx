/** The time of an event to the millisecond; of another day, the day and the time to the second. */
import { type ReactNode, useState } from 'react';
import { findLocale } from '../../figures/format.ts';
import { ExactTime, useZone } from '../../figures/when.tsx';
import { useLanguage } from '../../texts/texts.ts';
import styles from './events.module.css';

export function EventTime({ at }: { at: string }): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  const [now_ms] = useState(() => Date.now());
  const day = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
  if (day.format(new Date(at)) === day.format(new Date(now_ms))) return <ExactTime at={at} />;
  const format = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : findLocale(language), {
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: zone,
  });
  return (
    <time className={`mono ${styles.time}`} dateTime={at} title={at}>
      {format.format(new Date(at)).replace(/,? at |, /, ' ')}
    </time>
  );
}
