/** Selects for a customer and for a plan, both found by name while one types. */
import { Select, type SelectProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../../client/client.ts';
import { postQuery, useGet } from '../../client/queries.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { useTexts } from '../../texts/texts.ts';
import { TEXTS } from './texts.ts';

type RecordSelectProps = Omit<SelectProps, 'value' | 'onChange' | 'data'> & {
  value: string | undefined;
  onValue: (id: string | undefined) => void;
};

const FOUND_MAX = 20;

export function buildNameFilter(name: string, chosen: string | undefined) {
  const filter = { field: 'name', operator: 'contains' as const, data_type: 'string' as const };
  // The name of the chosen record stands in the input; it must not narrow the choice to itself.
  return { limit: FOUND_MAX, filters: name === '' || name === chosen ? [] : [{ ...filter, value: { string: name } }] };
}

export function CustomerSelect({ value, onValue, ...rest }: RecordSelectProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [text, setText] = useState('');
  const [name] = useDebouncedValue(text, 200);
  const chosen = useGet('/customers/{id}', { path: { id: value ?? '' } }, { enabled: value !== undefined });
  const chosenName = chosen.data?.name || chosen.data?.external_id;
  const body = buildNameFilter(name, chosenName);
  const found = useQuery(postQuery('/customers/search', body, () => api.POST('/customers/search', { body })));
  const options = new Map(
    (found.data?.items ?? []).map(({ id, name: found_name, external_id }) => [id, found_name || external_id]),
  );
  if (value !== undefined) options.set(value, chosenName ?? (chosen.isError ? value : '…'));
  return (
    <NamedSelect
      {...rest}
      {...{ value, onValue, options }}
      onSearch={setText}
      nothingFoundMessage={<NoOptions query={found} none={texts.noCustomer} />}
    />
  );
}

export function PlanSelect({ value, onValue, ...rest }: RecordSelectProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [text, setText] = useState('');
  const [name] = useDebouncedValue(text, 200);
  const chosen = useGet('/plans/{id}', { path: { id: value ?? '' } }, { enabled: value !== undefined });
  const body = buildNameFilter(name, chosen.data?.name);
  const found = useQuery(postQuery('/plans/search', body, () => api.POST('/plans/search', { body })));
  const names = (found.data?.items ?? []).map((plan) => plan.name);
  // The key distinguishes plans of one name.
  const options = new Map(
    (found.data?.items ?? []).map((plan) => [
      plan.id,
      names.indexOf(plan.name) === names.lastIndexOf(plan.name)
        ? plan.name
        : `${plan.name} (${plan.lookup_key ?? plan.id})`,
    ]),
  );
  if (value !== undefined && !options.has(value))
    options.set(value, chosen.data?.name ?? (chosen.isError ? value : '…'));
  return (
    <NamedSelect
      {...rest}
      {...{ value, onValue, options }}
      onSearch={setText}
      nothingFoundMessage={<NoOptions query={found} none={texts.noPlan} />}
    />
  );
}

type NamedSelectProps = RecordSelectProps & {
  options: ReadonlyMap<string, string>;
  onSearch: (text: string) => void;
};

function NamedSelect({ value, onValue, options, onSearch, ...rest }: NamedSelectProps): ReactNode {
  // The name of the choice remains while its record is read.
  const [chosen, setChosen] = useState<{ id: string; label: string }>();
  const labels = new Map(options);
  if (chosen && chosen.id === value) labels.set(chosen.id, chosen.label);
  return (
    <Select
      {...rest}
      searchable
      value={value ?? null}
      data={[...labels].map(([id, label]) => ({ value: id, label }))}
      filter={({ options: all }) => all}
      onSearchChange={onSearch}
      onChange={(id) => {
        setChosen(id === null ? undefined : { id, label: labels.get(id) ?? id });
        onValue(id ?? undefined);
      }}
    />
  );
}
