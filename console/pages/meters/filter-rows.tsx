/** The filters of a meter: a property and the values that it may have, one filter a row. */
import { Autocomplete, TagsInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { RemoveButton } from '../../components/remove-button.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { FilterDraft } from './meter-draft.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

type FilterRowsProps = {
  filters: readonly FilterDraft[];
  onFilters: (filters: readonly FilterDraft[]) => void;
  properties: readonly { property: string; sample_values: readonly string[] }[];
  error: ReactNode;
};

export function FilterRows({ filters, onFilters, properties, error }: FilterRowsProps): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const change = (at: number, changes: Partial<FilterDraft>) =>
    onFilters(filters.map((filter, index) => (index === at ? { ...filter, ...changes } : filter)));
  return (
    <div className={styles.filters}>
      {filters.length > 0 && <p className="label">{texts.filtersHint}</p>}
      {filters.map(({ key, values }, at) => (
        <div key={at} className={styles.filter}>
          <Autocomplete
            aria-label={texts.filterKey(at + 1)}
            placeholder={texts.field}
            classNames={{ input: 'mono' }}
            data={properties.map(({ property }) => property)}
            value={key}
            onChange={(next) => change(at, { key: next })}
          />
          <span className="label">{texts.isOneOf}</span>
          <TagsInput
            aria-label={texts.filterValues(at + 1)}
            classNames={{ input: 'mono' }}
            data={[...(properties.find(({ property }) => property === key)?.sample_values ?? [])]}
            value={[...values]}
            onChange={(next) => change(at, { values: next })}
          />
          <RemoveButton
            label={texts.removeFilter(at + 1)}
            onClick={() => onFilters(filters.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      {error && (
        <p role="alert" className={styles.fault}>
          {error}
        </p>
      )}
      <button type="button" className={styles.link} onClick={() => onFilters([...filters, { key: '', values: [] }])}>
        {texts.addFilter}
      </button>
    </div>
  );
}
