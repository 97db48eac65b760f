/** An expression, with its error where it stands: the line is repeated with a mark under the place. */
import { Textarea } from '@mantine/core';
import type { ReactNode } from 'react';
import { showApiText } from '../../components/api-text.ts';
import { useTexts } from '../../texts/texts.ts';
import { findErrorPlace, shortenError } from './meter-draft.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

type ExpressionInputProps = { value: string; onValue: (value: string) => void; error: string | undefined };

export function ExpressionInput({ value, onValue, error }: ExpressionInputProps): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const place = error === undefined ? null : findErrorPlace(error);
  const line = place && value.split('\n')[place.line - 1];
  return (
    <div className={styles.expression}>
      <Textarea
        label={texts.expression}
        description={texts.expressionHint}
        required
        autosize
        minRows={2}
        spellCheck={false}
        classNames={{ input: 'mono' }}
        value={value}
        onChange={({ currentTarget }) => onValue(currentTarget.value)}
        error={error && showApiText(shortenError(error))}
      />
      {place && line !== undefined && (
        <pre className={styles.place} aria-hidden="true">
          {line}
          {'\n'}
          {' '.repeat(place.column - 1)}^
        </pre>
      )}
    </div>
  );
}
