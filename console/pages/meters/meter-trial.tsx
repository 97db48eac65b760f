/** The number that a meter would give for the last week, before it is saved, and the events that it could not use. */
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Bars } from '../../charts/bars.tsx';
import { ApiError } from '../../client/client.ts';
import { showApiText } from '../../components/api-text.ts';
import { Sheet } from '../../components/page.tsx';
import { Loading } from '../../components/states.tsx';
import { formatCount, formatDay } from '../../figures/format.ts';
import { Quantity } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { buildCountTrial, buildTrial, fillDays, isCountable, type MeterDraft, type TrialRange } from './meter-draft.ts';
import { buildTrialQuery } from './meter-queries.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

const TYPING_MS = 300;

type Trial = {
  value: string | null;
  event_count: number;
  unusable: number;
  results: readonly { window_size: string; value: string }[];
  error: Error | null;
  isReady: boolean;
};

export function useTrial(draft: MeterDraft, range: TrialRange): Trial {
  const [tried] = useDebouncedValue(draft, TYPING_MS);
  const isReady = isCountable(tried);
  const trial = useQuery({ ...buildTrialQuery(buildTrial(tried, range)), enabled: isReady });
  const all = useQuery({ ...buildTrialQuery(buildCountTrial(tried, range)), enabled: isReady });
  const data = isReady && !trial.isError ? trial.data : undefined;
  return {
    value: data?.value ?? null,
    event_count: data?.event_count ?? 0,
    unusable: data && all.data ? Math.max(0, all.data.event_count - data.event_count) : 0,
    results: data?.results ?? [],
    error: isReady ? trial.error : null,
    isReady,
  };
}

type MeterTrialProps = { draft: MeterDraft; range: TrialRange; trial: Trial };

export function MeterTrial({ draft, range, trial }: MeterTrialProps): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const language = useLanguage();
  const isElsewhere = trial.error instanceof ApiError && trial.error.field !== null;
  return (
    <section aria-label={texts.trial}>
      <Sheet padded>
        <h2>{texts.trial}</h2>
        {trial.value !== null ? (
          <>
            <div className={styles.number} aria-live="polite">
              <Quantity value={trial.value} />
            </div>
            <p className="label">{texts.ofEvents(formatCount(language, trial.event_count))}</p>
            {trial.unusable > 0 && (
              <p className={styles.fault}>{texts.unusable(formatCount(language, trial.unusable))}</p>
            )}
            <div className={styles.bars}>
              <Bars
                label={`${draft.name || texts.trial}, ${texts.perDay}`}
                points={fillDays(trial.results, range)}
                showAt={(at) => formatDay(language, at, 'UTC')}
              />
            </div>
            <p className="label">{texts.trialQuiet}</p>
          </>
        ) : trial.error ? (
          <p role="alert" className={styles.fault}>
            {isElsewhere ? texts.trialBroken : showApiText(trial.error.message)}
          </p>
        ) : trial.isReady ? (
          <Loading rows={3} />
        ) : (
          <p className={styles.quiet}>{texts.trialHint}</p>
        )}
      </Sheet>
    </section>
  );
}
