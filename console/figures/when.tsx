/** Instants and periods in the zone of the page (UTC, or that of the browser), which stands in the URL as `zone`. */
import { createContext, type ReactNode, useContext } from 'react';
import { useLanguage } from '../texts/texts.ts';
import { formatDay, formatInstant, formatPeriod, formatTime, type Zone } from './format.ts';
import { Unknown } from './money.tsx';

export const ZoneContext = createContext<Zone>('UTC');

export function useZone(): Zone {
  return useContext(ZoneContext);
}

type InstantProps = { at: string | null | undefined };

/** A day; its exact instant stands in the title. */
export function Day({ at }: InstantProps): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  return at ? <Time at={at}>{formatDay(language, at, zone)}</Time> : <Unknown />;
}

/** Day and minute. */
export function Moment({ at }: InstantProps): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  return at ? <Time at={at}>{formatInstant(language, at, zone)}</Time> : <Unknown />;
}

/** Time of the day to the millisecond, in the monospaced font. */
export function ExactTime({ at }: InstantProps): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  return at ? (
    <span className="mono">
      <Time at={at}>{formatTime(language, at, zone)}</Time>
    </span>
  ) : (
    <Unknown />
  );
}

/** A half-open period, shown by its first and its last day. */
export function Period({
  start,
  end,
}: {
  start: string | null | undefined;
  end: string | null | undefined;
}): ReactNode {
  const language = useLanguage();
  const zone = useZone();
  return start && end ? <span>{formatPeriod(language, start, end, zone)}</span> : <Unknown />;
}

function Time({ at, children }: { at: string; children: ReactNode }): ReactNode {
  return (
    <time dateTime={at} title={at}>
      {children}
    </time>
  );
}
