import { Radio } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './subscriptions.module.css';

/** A choice of few long values: radio buttons, one a row. */
export function Radios<Value extends string>({
  label,
  value,
  options,
  onValue,
}: {
  label: string;
  value: Value;
  options: readonly (readonly [Value, string])[];
  onValue: (value: Value) => void;
}): ReactNode {
  return (
    <Radio.Group label={label} value={value} onChange={(next) => onValue(next as Value)}>
      <div className={styles.radios}>
        {options.map(([each, text]) => (
          <Radio key={each} value={each} label={text} color="var(--copper)" size="xs" />
        ))}
      </div>
    </Radio.Group>
  );
}
