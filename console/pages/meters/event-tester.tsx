/** The newest events of the name, and what each counts alone: the range of its instant is aggregated as the draft says. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQueries, useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { formatExactValue } from '../../client/exact-json.ts';
import { Sheet } from '../../components/page.tsx';
import { Quantity } from '../../figures/money.tsx';
import { ExactTime } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { addMicrosecond, buildTrial, isCountable, type MeterDraft } from './meter-draft.ts';
import { buildNewestEventsQuery, buildTrialQuery } from './meter-queries.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

const TYPING_MS = 300;

export function EventTester({ draft, isBroken }: { draft: MeterDraft; isBroken: boolean }): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const [tried] = useDebouncedValue(draft, TYPING_MS);
  const event_name = tried.event_name.trim();
  const newest = useQuery({ ...buildNewestEventsQuery(event_name), enabled: event_name !== '' });
  const events = newest.data?.events ?? [];
  // Weights depend on the rest of a range, so that a single change of a level counts as itself.
  const alone: MeterDraft = tried.type === 'WEIGHTED_SUM' ? { ...tried, type: 'SUM' } : tried;
  const trials = useQueries({
    queries: events.map(({ timestamp, external_customer_id }) => ({
      ...buildTrialQuery({
        ...buildTrial(alone, { start_time: timestamp, end_time: addMicrosecond(timestamp) }),
        external_customer_id,
      }),
      enabled: isCountable(tried) && !isBroken,
    })),
  });
  if (event_name === '') return null;
  return (
    <section aria-label={texts.tester} className={styles.tester}>
      <Sheet padded>
        <h2>{texts.tester}</h2>
        <p className="label">{texts.testerHint}</p>
        {newest.data && events.length === 0 && <p className={styles.quiet}>{texts.noEvents}</p>}
        <ul className={styles.events}>
          {events.map(({ id, timestamp, properties }, at) => {
            const counted = trials[at]?.data;
            return (
              <li key={id}>
                <div className={styles.eventHead}>
                  <ExactTime at={timestamp} />
                  <strong>
                    {counted === undefined || isBroken ? (
                      <Quantity value={null} />
                    ) : counted.event_count === 0 ? (
                      <span className={styles.fault}>{texts.notCounted}</span>
                    ) : (
                      <Quantity value={counted.value} />
                    )}
                  </strong>
                </div>
                <div className={`mono ${styles.properties}`}>
                  {Object.entries(properties ?? {}).map(([key, value]) => (
                    <span key={key}>
                      {key}: {formatExactValue(value)}
                    </span>
                  ))}
                </div>
              </li>
            );
          })}
        </ul>
      </Sheet>
    </section>
  );
}
