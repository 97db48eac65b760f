/** Phases of a new subscription: consecutive intervals with prices and coupons of their own. */
import { TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { Button } from '../../components/button.tsx';
import { findExactError, findUnshownError } from '../../components/field-errors.ts';
import { toDay, toMidnight } from '../../components/range.ts';
import { TextButton } from '../../components/text-button.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { CouponsInput } from './coupons-input.tsx';
import { NEW_TEXTS } from './new-texts.ts';
import { PriceOverrides } from './price-overrides.tsx';
import { addPhase, listPhaseStarts, type PhaseDraft } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import styles from './subscriptions.module.css';

/** Fields whose inputs show their errors. */
const SHOWN = /^\[\d+\]\.(end_date|start_date|coupons.*|override_line_items\[.*)$/;

export function PhasesPart({ draft, prices, findError, error, set }: DraftPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const today = toDay(useNow());
  const { phases, currency } = draft;
  const starts = listPhaseStarts(draft);
  const shown = prices.filter((price) => price.currency === currency);
  const rest = findUnshownError(error, 'phases', SHOWN);
  const change = (at: number, changes: Partial<PhaseDraft>) =>
    set({ phases: phases.map((phase, index) => (index === at ? { ...phase, ...changes } : phase)) });
  const last = phases.at(-1);
  return (
    <div className={styles.form}>
      <p className="muted">{texts.phasesHint}</p>
      {phases.map(({ end_day, overrides, coupons }, at) => {
        const isLast = at === phases.length - 1;
        const name = texts.phase(at + 1);
        const path = `phases[${at}]`;
        const start = starts[at]!;
        return (
          <fieldset key={at} className={styles.part}>
            <legend>{name}</legend>
            <div className={styles.pair}>
              <div>
                <p className={styles.label}>{texts.phaseStart}</p>
                <p>{start === '' ? '–' : <Day at={toMidnight(start)} />}</p>
                {findError(`${path}.start_date`) && <p className={styles.error}>{findError(`${path}.start_date`)}</p>}
              </div>
              <TextInput
                type="date"
                label={texts.phaseEnd(at + 1)}
                description={isLast ? texts.phaseOpen : texts.phaseEndHint}
                required={!isLast}
                value={end_day}
                error={findExactError(error, `${path}.end_date`)}
                onChange={({ currentTarget }) => change(at, { end_day: currentTarget.value })}
              />
            </div>
            <PriceOverrides
              prices={shown}
              overrides={overrides}
              error={error}
              path={`${path}.`}
              where={name}
              onOverrides={(next) => change(at, { overrides: next })}
            />
            <CouponsInput
              label={texts.phaseCoupons(at + 1)}
              value={coupons}
              error={findError(`${path}.coupons`)}
              onValue={(next) => change(at, { coupons: next })}
            />
            <TextButton
              aria-label={texts.removePhase(at + 1)}
              onClick={() => set({ phases: phases.filter((_, index) => index !== at) })}
            >
              {texts.remove}
            </TextButton>
          </fieldset>
        );
      })}
      {last && last.end_day !== '' && <p className="muted">{texts.afterPhases}</p>}
      {rest !== undefined && (
        <p role="alert" className={styles.error}>
          {rest}
        </p>
      )}
      <p>
        <Button onClick={() => set(addPhase(draft, today))}>{texts.addPhase}</Button>
      </p>
    </div>
  );
}
