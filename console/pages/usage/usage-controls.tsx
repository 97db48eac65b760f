/** Controls of the explorer: customer, meter, split, range, window, and whether it compares. */
import { Select } from '@mantine/core';
import type { ReactNode } from 'react';
import type { GetData } from '../../client/queries.ts';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { CustomerPicker } from '../../components/customer-picker.tsx';
import type { DayRange } from '../../components/range.ts';
import { RangePicker } from '../../components/range-picker.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { UsageSearch } from './routes.ts';
import styles from './usage.module.css';
import { isTooFine } from './usage-figures.ts';
import { USAGE_TEXTS } from './usage-texts.ts';
import { USAGE_WINDOWS, type UsageWindowSize } from './usage-window.ts';

/** Days back in which the properties of the events were seen. */
const SEEN_DAYS = 31;

export type UsageMeter = GetData<'/meters'>['items'][number];

type UsageControlsProps = {
  search: UsageSearch;
  meters: readonly UsageMeter[];
  meter: UsageMeter;
  range: DayRange;
  window: UsageWindowSize;
  now_ms: number;
  beforeName: string;
  onChange: (next: Partial<UsageSearch>) => void;
};

export function UsageControls(props: UsageControlsProps): ReactNode {
  const { search, meters, meter, range, window, now_ms, beforeName, onChange } = props;
  const texts = useTexts(USAGE_TEXTS);
  const seen = useGet('/events/properties', { query: { event_name: meter.event_name, days: SEEN_DAYS } as never });
  const properties = (seen.data?.items ?? []).filter(({ property }) => property !== meter.aggregation.field);
  const splits = [
    ...(search.customer === undefined ? [{ value: 'customer', label: texts.byCustomer }] : []),
    ...properties.map(({ property }) => ({ value: `p:${property}`, label: texts.byProperty(property) })),
  ];
  const { split } = search;
  if (split !== undefined && !splits.some(({ value }) => value === split))
    splits.push({ value: split, label: split === 'customer' ? texts.byCustomer : texts.byProperty(split.slice(2)) });
  return (
    <div className={styles.controls}>
      <CustomerPicker
        className={styles.picker}
        external_id={search.customer}
        onCustomer={(customer) =>
          onChange({ customer, ...(customer !== undefined && split === 'customer' ? { split: undefined } : {}) })
        }
      />
      <Select
        className={styles.picker}
        aria-label={texts.meter}
        searchable
        allowDeselect={false}
        value={meter.id}
        data={nameMeters(meters)}
        onChange={(value) => value !== null && onChange({ meter: value, split: undefined })}
      />
      <Select
        className={styles.picker}
        aria-label={texts.split}
        placeholder={texts.noSplit}
        clearable
        clearButtonProps={{ 'aria-label': texts.noSplit }}
        value={split ?? null}
        data={splits}
        onChange={(value) => onChange({ split: value ?? undefined })}
      />
      <RangePicker
        range={range}
        now_ms={now_ms}
        onRange={(next) => onChange({ from: next?.from, to: next?.to, window: undefined })}
      />
      <Choice<UsageWindowSize>
        label={texts.window}
        value={window}
        options={USAGE_WINDOWS.map((value) => ({
          value,
          label: texts[value],
          blocked: isTooFine(value, range) ? texts.tooFine : null,
        }))}
        onValue={(value) => onChange({ window: value })}
      />
      <Button
        aria-pressed={search.compare !== undefined}
        className={search.compare === undefined ? '' : (styles.pressed ?? '')}
        onClick={() => onChange({ compare: search.compare === undefined ? 'before' : undefined })}
      >
        {texts.compare(beforeName)}
      </Button>
    </div>
  );
}

/** Meters of one name differ by the time of their creation. */
function nameMeters(meters: readonly UsageMeter[]): { value: string; label: string }[] {
  return meters.map(({ id, name, event_name, created_at }) => {
    const isDouble = meters.some((other) => other.id !== id && other.name === name);
    const label = isDouble ? `${name} · ${event_name}, ${created_at.slice(0, 16).replace('T', ' ')}` : name;
    return { value: id, label };
  });
}
