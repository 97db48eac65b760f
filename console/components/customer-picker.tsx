/** Chooses a customer by name. The value is the external id, which may be one that no customer has yet. */
import { Select } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../client/client.ts';
import { postQuery } from '../client/queries.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { NoOptions } from './no-options.tsx';

const TYPING_MS = 200;
const OPTIONS_MAX = 20;

type CustomerPickerProps = {
  external_id: string | undefined;
  onCustomer: (external_id: string | undefined) => void;
  className?: string | undefined;
  /** Label of a field of a form; a filter has none, and chooses any customer by default. */
  label?: string;
  error?: ReactNode;
};

export function CustomerPicker(props: CustomerPickerProps): ReactNode {
  const { external_id, onCustomer, className, label, error } = props;
  const texts = useTexts(TEXTS);
  const [text, setText] = useState('');
  const [hasBeenFocused, setFocused] = useState(false);
  const [name] = useDebouncedValue(text.trim(), TYPING_MS);
  const chosen = useCustomer(external_id);
  const chosenName = chosen?.name || external_id;
  const isTyped = name !== '' && name !== chosenName;
  const body = {
    limit: OPTIONS_MAX,
    filters: isTyped
      ? [{ field: 'name', operator: 'contains' as const, data_type: 'string' as const, value: { string: name } }]
      : [],
  };
  const found = useQuery({
    ...postQuery('/customers/search', body, () => api.POST('/customers/search', { body })),
    enabled: hasBeenFocused,
  });
  const options = new Map((found.data?.items ?? []).map((each) => [each.external_id, each.name || each.external_id]));
  if (external_id !== undefined) options.set(external_id, chosenName ?? external_id);
  if (isTyped && found.data?.items.length === 0) options.set(name, texts.externalId(name));
  return (
    <Select
      {...(className ? { className } : {})}
      {...(label === undefined ? { 'aria-label': texts.customer, placeholder: texts.any } : { label, required: true })}
      error={error}
      searchable
      clearable={label === undefined}
      value={external_id ?? null}
      data={[...options].map(([value, label]) => ({ value, label }))}
      filter={({ options: all }) => all}
      nothingFoundMessage={found.data === undefined && <NoOptions query={found} />}
      onFocus={() => setFocused(true)}
      onSearchChange={setText}
      onChange={(value) => onCustomer(value ?? undefined)}
      clearButtonProps={{ 'aria-label': texts.clear }}
    />
  );
}

/** The customer with an external id; undefined while it is not known. */
export function useCustomer(external_id: string | undefined): { id: string; name: string } | undefined {
  const body = {
    limit: 1,
    filters: [
      {
        field: 'external_id',
        operator: 'eq' as const,
        data_type: 'string' as const,
        value: { string: external_id ?? '' },
      },
    ],
  };
  const found = useQuery({
    ...postQuery('/customers/search', body, () => api.POST('/customers/search', { body })),
    enabled: external_id !== undefined,
    staleTime: 60_000,
  });
  return found.data?.items[0];
}

const TEXTS = defineTexts(
  {
    customer: 'Customer',
    any: 'Any customer',
    clear: 'Any customer',
    externalId: (id: string) => `External id ${id}`,
  },
  {
    de: {
      customer: 'Kunde',
      any: 'Alle Kunden',
      clear: 'Alle Kunden',
      externalId: (id) => `Externe ID ${id}`,
    },
  },
);
