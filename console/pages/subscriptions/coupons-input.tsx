import { MultiSelect } from '@mantine/core';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { NoOptions } from '../../components/no-options.tsx';
import { useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';

const COUPONS_MAX = 200;

type CouponsInputProps = {
  label: string;
  value: readonly string[];
  error: ReactNode;
  onValue: (coupon_ids: string[]) => void;
};

export function CouponsInput({ label, value, error, onValue }: CouponsInputProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const coupons = useGet('/coupons', { query: { limit: COUPONS_MAX } });
  return (
    <MultiSelect
      label={label}
      placeholder={value.length === 0 ? texts.noneChosen : ''}
      searchable
      value={[...value]}
      data={(coupons.data?.items ?? []).map(({ id, name, coupon_code }) => ({
        value: id,
        label: coupon_code ? `${name} (${coupon_code})` : name,
      }))}
      nothingFoundMessage={<NoOptions query={coupons} none={texts.noCoupon} />}
      error={error}
      onChange={onValue}
    />
  );
}
