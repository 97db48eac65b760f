import { Textarea, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { ApiError } from '../../client/client.ts';
import { showApiText } from '../../components/api-text.ts';
import { useTexts } from '../../texts/texts.ts';
import { COMPANY_TEXTS } from './company-texts.ts';
import { type CompanyDraft, findDraftField } from './setting-records.ts';

type DraftTextField = {
  [Field in keyof CompanyDraft]: CompanyDraft[Field] extends string
    ? string extends CompanyDraft[Field]
      ? Field
      : never
    : never;
}[keyof CompanyDraft];
export type DraftProps = {
  draft: CompanyDraft;
  deed: { error: Error | null };
  onChange: (fields: Partial<CompanyDraft>) => void;
};

const AUTO_COMPLETE: Partial<Record<DraftTextField, string>> = {
  name: 'organization',
  address_line1: 'address-line1',
  address_line2: 'address-line2',
  address_postal_code: 'postal-code',
  address_city: 'address-level2',
  address_state: 'address-level1',
  address_country: 'country',
  email: 'email',
  phone: 'tel',
};

/** A text of the company with the error that names it. */
export function DraftField({
  draft,
  deed: { error },
  onChange,
  field,
  isRequired = false,
  isLong = false,
}: DraftProps & {
  field: Exclude<DraftTextField, 'color' | 'language' | 'payment_instructions' | 'notes'>;
  isRequired?: boolean;
  isLong?: boolean;
}): ReactNode {
  const texts = useTexts(COMPANY_TEXTS);
  const isNamed = error instanceof ApiError && error.field !== null && findDraftField(error.field) === field;
  const common = {
    label: texts[field],
    value: draft[field],
    required: isRequired,
    error: isNamed ? showApiText(error.message) : undefined,
    autoComplete: AUTO_COMPLETE[field] ?? 'off',
  };
  return isLong ? (
    <Textarea
      {...common}
      autosize
      minRows={3}
      onChange={({ currentTarget }) => onChange({ [field]: currentTarget.value })}
    />
  ) : (
    <TextInput {...common} onChange={({ currentTarget }) => onChange({ [field]: currentTarget.value })} />
  );
}
