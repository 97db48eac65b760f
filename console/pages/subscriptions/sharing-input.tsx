/** Choice of the customers whose usage counts as that of one customer, by external id. */
import { MultiSelect } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../../client/client.ts';
import { postQuery } from '../../client/queries.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { useTexts } from '../../texts/texts.ts';
import { buildNameFilter } from './record-selects.tsx';
import { TEXTS } from './texts.ts';

const TYPING_MS = 200;

type SharingInputProps = {
  label: string;
  description: string;
  value: readonly string[];
  error: ReactNode;
  onValue: (external_ids: string[]) => void;
};

export function SharingInput({ label, description, value, error, onValue }: SharingInputProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [text, setText] = useState('');
  const [name] = useDebouncedValue(text, TYPING_MS);
  const body = buildNameFilter(name, undefined);
  const found = useQuery(postQuery('/customers/search', body, () => api.POST('/customers/search', { body })));
  const options = new Map((found.data?.items ?? []).map((each) => [each.external_id, each.name || each.external_id]));
  // Chosen customers remain options while another name is searched.
  for (const external_id of value) if (!options.has(external_id)) options.set(external_id, external_id);
  return (
    <MultiSelect
      label={label}
      description={description}
      required
      searchable
      value={[...value]}
      data={[...options].map(([external_id, customer]) => ({ value: external_id, label: customer }))}
      filter={({ options: all }) => all}
      nothingFoundMessage={<NoOptions query={found} none={texts.noCustomer} />}
      error={error}
      onSearchChange={setText}
      onChange={onValue}
    />
  );
}
