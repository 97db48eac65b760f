/** Chooses a half-open range of days: presets, or two dates, of which the second is not in the range. */
import '@mantine/dates/styles.css';
import { Popover } from '@mantine/core';
import { DateInput } from '@mantine/dates';
import { type ReactNode, useState } from 'react';
import { formatPeriod } from '../figures/format.ts';
import { defineTexts, useLanguage, useTexts } from '../texts/texts.ts';
import { Button } from './button.tsx';
import { buildPreset, type DayRange, isDay, RANGE_PRESETS, toInstants } from './range.ts';
import styles from './range-picker.module.css';

type RangePickerProps = {
  range: DayRange | null;
  now_ms: number;
  onRange: (range: DayRange | null) => void;
  /** The words for no range; without them a range is required. */
  any?: string;
};

export function RangePicker({ range, now_ms, onRange, any }: RangePickerProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const [isOpen, setOpen] = useState(false);
  const choose = (next: DayRange | null) => {
    onRange(next);
    setOpen(false);
  };
  const instants = range && toInstants(range);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus>
      <Popover.Target>
        <Button onClick={() => setOpen(!isOpen)} aria-expanded={isOpen}>
          <span className="visually-hidden">{texts.period}: </span>
          {instants ? formatPeriod(language, instants.start_time, instants.end_time, 'UTC') : any}
          <span aria-hidden="true">⌄</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={styles.dropdown}>
        <div className={styles.presets}>
          {any !== undefined && <Button onClick={() => choose(null)}>{any}</Button>}
          {RANGE_PRESETS.map((preset) => (
            <Button key={preset} onClick={() => choose(buildPreset(preset, now_ms))}>
              {texts[preset]}
            </Button>
          ))}
        </div>
        <Ends key={`${range?.from} ${range?.to}`} range={range ?? buildPreset('month', now_ms)} onRange={choose} />
      </Popover.Dropdown>
    </Popover>
  );
}

function Ends({ range, onRange }: { range: DayRange; onRange: (range: DayRange) => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const [from, setFrom] = useState<string | null>(range.from);
  const [to, setTo] = useState<string | null>(range.to);
  const isRange = isDay(from ?? undefined) && isDay(to ?? undefined) && from! < to!;
  return (
    <form
      className={styles.ends}
      onSubmit={(event) => {
        event.preventDefault();
        onRange({ from: from!, to: to! });
      }}
    >
      <DateInput
        label={texts.from}
        value={from}
        onChange={setFrom}
        valueFormat="YYYY-MM-DD"
        popoverProps={{ withinPortal: false }}
      />
      <DateInput
        label={texts.to}
        value={to}
        onChange={setTo}
        valueFormat="YYYY-MM-DD"
        error={isRange ? null : texts.order}
        popoverProps={{ withinPortal: false }}
      />
      <Button type="submit" isPrimary blocked={isRange ? null : texts.order}>
        {texts.show}
      </Button>
    </form>
  );
}

const TEXTS = defineTexts(
  {
    period: 'Period',
    today: 'Today',
    week: 'Last 7 days',
    month: 'This month',
    last_month: 'Last month',
    quarter: 'Last 90 days',
    from: 'From',
    to: 'To, without',
    show: 'Show',
    order: 'The end must be after the start',
  },
  {
    de: {
      period: 'Zeitraum',
      today: 'Heute',
      week: 'Letzte 7 Tage',
      month: 'Dieser Monat',
      last_month: 'Letzter Monat',
      quarter: 'Letzte 90 Tage',
      from: 'Von',
      to: 'Bis, ohne',
      show: 'Zeigen',
      order: 'Das Ende muss nach dem Beginn liegen',
    },
  },
);
