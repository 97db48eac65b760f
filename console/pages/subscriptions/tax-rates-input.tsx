/** Tax rates of a subscription, which replace those of the paying customer. */
import { MultiSelect } from '@mantine/core';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';
import type { DraftPartProps } from './subscription-form.tsx';

const RATES_MAX = 200;

export function TaxRatesInput({ draft, findError, set }: Omit<DraftPartProps, 'prices'>): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const rates = useGet('/taxes/rates', { query: { limit: RATES_MAX } });
  const active = (rates.data ?? []).filter(({ tax_rate_status }) => tax_rate_status === 'ACTIVE');
  return (
    <MultiSelect
      label={texts.taxRates}
      description={texts.taxRatesHint}
      placeholder={draft.tax_rate_codes.length === 0 ? texts.inheritedRates : ''}
      searchable
      value={[...draft.tax_rate_codes]}
      data={active.map(({ code, name }) => ({ value: code, label: `${name} (${code})` }))}
      nothingFoundMessage={<NoOptions query={rates} none={texts.noTaxRate} />}
      error={findError('tax_rate_overrides')}
      onChange={(tax_rate_codes) => set({ tax_rate_codes })}
    />
  );
}
