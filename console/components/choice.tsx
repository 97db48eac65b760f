/** One of a few values, all in view: radio buttons in the shape of a segmented control. */
import { type ReactNode, useId } from 'react';
import styles from './choice.module.css';

export type ChoiceOption<Value extends string> = {
  readonly value: Value;
  readonly label: ReactNode;
  /** Why this value cannot be chosen. */
  readonly blocked?: string | null;
};

export function Choice<Value extends string>({
  label,
  value,
  options,
  onValue,
}: {
  label: string;
  value: Value;
  options: readonly ChoiceOption<Value>[];
  onValue: (value: Value) => void;
}): ReactNode {
  const name = useId();
  return (
    <fieldset className={styles.choice}>
      <legend className="visually-hidden">{label}</legend>
      {options.map((option) => (
        <label key={option.value} className={styles.option} title={option.blocked ?? undefined}>
          <input
            type="radio"
            name={name}
            value={option.value}
            checked={option.value === value}
            disabled={Boolean(option.blocked)}
            onChange={() => onValue(option.value)}
          />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
