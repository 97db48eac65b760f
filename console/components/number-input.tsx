/** An input for money or a quantity. It accepts numbers as people of the language write them, and shows what was understood. */
import { TextInput, type TextInputProps } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { formatQuantity } from '../figures/format.ts';
import { type ParsedNumber, parseNumber } from '../figures/parse.ts';
import { defineTexts, useLanguage, useTexts } from '../texts/texts.ts';
import styles from './number-input.module.css';

type NumberInputProps = Omit<TextInputProps, 'value' | 'onChange'> & {
  /** The exact decimal string; empty for none. */
  value: string;
  onValue: (value: string) => void;
  unit?: string;
};

export function NumberInput({ value, onValue, unit, error, ...rest }: NumberInputProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const [text, setText] = useState(() => (value === '' ? '' : formatQuantity(language, value)));
  const [shown, setShown] = useState(value);
  // A value that changes from outside, for example by pasting a table, replaces the text.
  if (shown !== value) {
    setShown(value);
    setText(value === '' ? '' : formatQuantity(language, value));
  }
  // The text of a known value has one meaning, also where a reader could type it with two, as "12.000" in German.
  const isOwn = value !== '' && text === formatQuantity(language, value);
  const parsed: ParsedNumber = isOwn ? { kind: 'number', value } : parseNumber(text, language);
  const accept = (next: string) => {
    setShown(next);
    onValue(next);
  };
  const change = (next: string) => {
    setText(next);
    const read = parseNumber(next, language);
    // A text that is no number, or two, has no value: the one before it must not be sent.
    accept(read.kind === 'number' ? read.value : '');
  };
  const understood = parsed.kind === 'number' ? formatQuantity(language, parsed.value) : null;
  return (
    <div>
      <TextInput
        {...rest}
        value={text}
        inputMode="text"
        autoComplete="off"
        // A form with an unread text is not sent, because its request would lack the value.
        data-unread={parsed.kind === 'invalid' || parsed.kind === 'ambiguous' || undefined}
        classNames={{ input: styles.input }}
        error={error ?? (parsed.kind === 'invalid' ? texts.invalid : parsed.kind === 'ambiguous')}
        onChange={({ currentTarget }) => change(currentTarget.value)}
      />
      {understood !== null && understood !== text && (
        <p className="label">
          = {understood} {unit}
        </p>
      )}
      {parsed.kind === 'ambiguous' && (
        <p className="label" role="status">
          {texts.which}{' '}
          {parsed.readings.map((reading) => (
            <button
              key={reading}
              type="button"
              className={styles.reading}
              onClick={() => {
                setText(formatQuantity(language, reading));
                accept(reading);
              }}
            >
              {formatQuantity(language, reading)}
            </button>
          ))}
        </p>
      )}
    </div>
  );
}

const TEXTS = defineTexts(
  { invalid: 'This is not a number', which: 'Which one is meant?' },
  { de: { invalid: 'Das ist keine Zahl', which: 'Welche Zahl ist gemeint?' } },
);
