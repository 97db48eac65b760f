/** Filters of the events: customer, name, one property, period. */
import { Autocomplete, Popover, Select } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { CustomerPicker } from '../../components/customer-picker.tsx';
import { NoOptions } from '../../components/no-options.tsx';
import { RangePicker } from '../../components/range-picker.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { formatValue, parsePropertyFilter } from './event-rows.ts';
import type { EventsSearch } from './event-search.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

/** Days back in which names and properties were seen. */
const SEEN_DAYS = 31;

type FilterBarProps = { search: EventsSearch; onChange: (next: Partial<EventsSearch>) => void; end: ReactNode };

export function EventFilterBar({ search, onChange, end }: FilterBarProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const now_ms = useNow();
  const names = useGet('/events/names', { query: { days: SEEN_DAYS } as never });
  const seen = (names.data?.items ?? []).map(({ event_name }) => event_name);
  const { name, from, to } = search;
  return (
    <div className={styles.filters}>
      <CustomerPicker
        className={styles.picker}
        external_id={search.customer}
        onCustomer={(customer) => onChange({ customer })}
      />
      <Select
        className={styles.picker}
        aria-label={texts.name}
        placeholder={texts.anyName}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': texts.anyName }}
        value={name ?? null}
        data={name === undefined || seen.includes(name) ? seen : [name, ...seen]}
        nothingFoundMessage={<NoOptions query={names} none={texts.noName} />}
        onChange={(value) => onChange({ name: value ?? undefined })}
      />
      {search.tab === undefined && <PropertyFilterButton search={search} onChange={onChange} seen={seen} />}
      <RangePicker
        any={texts.anyTime}
        now_ms={now_ms}
        range={from !== undefined && to !== undefined ? { from, to } : null}
        onRange={(range) => onChange({ from: range?.from, to: range?.to })}
      />
      <span className={styles.end}>{end}</span>
    </div>
  );
}

type PropertyFilterProps = Omit<FilterBarProps, 'end'> & { seen: readonly string[] };

function PropertyFilterButton({ search, onChange, seen }: PropertyFilterProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const [isOpen, setOpen] = useState(false);
  const filter = parsePropertyFilter(search.property);
  if (filter !== null)
    return (
      <Button
        onClick={() => onChange({ property: undefined })}
        aria-label={texts.removeFilter(search.property ?? '')}
        className={styles.filter ?? ''}
      >
        <span className="mono">
          {filter.key}={formatValue(filter.value)}
        </span>
        <span aria-hidden="true">×</span>
      </Button>
    );
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus>
      <Popover.Target>
        <Button onClick={() => setOpen(!isOpen)} aria-expanded={isOpen}>
          {texts.addProperty}
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={styles.dropdown}>
        <PropertyForm
          event_name={search.name ?? seen[0]}
          onFilter={(property) => {
            setOpen(false);
            onChange({ property });
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

type PropertyFormProps = { event_name: string | undefined; onFilter: (property: string) => void };

function PropertyForm({ event_name, onFilter }: PropertyFormProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const seen = useGet(
    '/events/properties',
    { query: { event_name: event_name ?? '', days: SEEN_DAYS } as never },
    { enabled: event_name !== undefined },
  );
  const items = seen.data?.items ?? [];
  const samples = items.find(({ property }) => property === key)?.sample_values ?? [];
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (key.trim() !== '' && value.trim() !== '') onFilter(`${key.trim()}=${value.trim()}`);
      }}
    >
      <Autocomplete
        label={texts.property}
        value={key}
        data={items.map(({ property }) => property)}
        comboboxProps={{ withinPortal: false }}
        onChange={setKey}
        data-autofocus
      />
      <Autocomplete
        label={texts.value}
        value={value}
        data={samples}
        comboboxProps={{ withinPortal: false }}
        onChange={setValue}
      />
      <Button type="submit" isPrimary blocked={key.trim() === '' || value.trim() === '' ? texts.bothNeeded : null}>
        {texts.filter}
      </Button>
    </form>
  );
}
