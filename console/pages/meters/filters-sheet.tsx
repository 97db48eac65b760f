/** Replaces the filters of a meter: the one part of it that can change. */
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError, api, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { showApiText } from '../../components/api-text.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { FilterRows } from './filter-rows.tsx';
import { type FilterDraft, listFilters } from './meter-draft.ts';
import type { MeterRecord } from './meter-queries.ts';
import { METER_TEXTS } from './meter-texts.ts';
import styles from './meters.module.css';

export function FiltersSheet({ meter, onClose }: { meter: MeterRecord; onClose: () => void }): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const queries = useQueryClient();
  const [filters, setFilters] = useState<readonly FilterDraft[]>(meter.filters);
  const properties = useGet('/events/properties', { query: { event_name: meter.event_name, days: '7' } as never });
  const save = useDeed(
    () =>
      readData(
        api.PUT('/meters/{id}', { params: { path: { id: meter.id } }, body: { filters: listFilters(filters) } }),
      ),
    async () => {
      await invalidate(queries, '/meters', '/events');
      onClose();
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  const error =
    save.error instanceof ApiError && save.error.field?.startsWith('filters')
      ? showApiText(save.error.message)
      : undefined;
  return (
    <SideSheet title={texts.filtersTitle} subtitle={texts.filtersEffect} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <FilterRows filters={filters} onFilters={setFilters} properties={properties.data?.items ?? []} error={error} />
        <FormFoot
          needs="meter:write"
          deed={error === undefined ? save : { error: null, isPending: save.isPending }}
          action={texts.save}
        />
      </form>
    </SideSheet>
  );
}
