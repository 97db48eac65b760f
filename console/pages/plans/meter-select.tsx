/** The meter of a usage price. */
import { Select } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PriceDraft } from './price-draft.ts';
import styles from './price-editor.module.css';
import { PRICE_TEXTS } from './price-texts.ts';

const METERS_MAX = 100;

type MeterSelectProps = {
  draft: PriceDraft;
  onMeter: (changes: Pick<PriceDraft, 'meter_id'> & Partial<PriceDraft>) => void;
  error: ReactNode;
};

export function MeterSelect({ draft, onMeter, error }: MeterSelectProps): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const meters = useGet('/meters', { query: { limit: METERS_MAX, status: 'published' } });
  const items = meters.data?.items ?? [];
  return (
    <div className={styles.meter}>
      <Select
        aria-label={texts.meter}
        searchable
        placeholder={meters.data && items.length === 0 ? texts.noMeters : texts.chooseMeter}
        nothingFoundMessage={meters.data === undefined && <NoOptions query={meters} />}
        data={items.map(({ id, name, event_name }) => ({ value: id, label: `${name} (${event_name})` }))}
        value={draft.meter_id}
        onChange={(meter_id) => {
          const meter = items.find(({ id }) => id === meter_id);
          onMeter({ meter_id, ...(draft.display_name === '' && meter ? { display_name: meter.name } : {}) });
        }}
        error={error}
      />
      <Link from="/env/$environment_id/plans/$plan_id/prices/new" to="/env/$environment_id/meters/new">
        {texts.newMeter}
      </Link>
    </div>
  );
}
