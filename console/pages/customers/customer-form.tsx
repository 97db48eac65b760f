/** The fields of a customer, of a new one or of one that is changed. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useCountryName } from './country.ts';
import type { CustomerRecord } from './customer.ts';
import { type CustomerDraft, TAX_STATES, TEXT_FIELDS, type TextField, toBody, toDraft } from './customer-draft.ts';
import styles from './customer-form.module.css';
import { TEXTS } from './texts.ts';

export function CustomerForm({ customer, onClose }: { customer?: CustomerRecord; onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [draft, setDraft] = useState(() => toDraft(customer));
  const change = (next: Partial<CustomerDraft>) => setDraft((old) => ({ ...old, ...next }));
  const save = useDeed(
    () => {
      const body = toBody(draft, customer);
      return customer
        ? readData(api.PUT('/customers/{id}', { params: { path: { id: customer.id } }, body }))
        : readData(api.POST('/customers', { body: { ...body, external_id: draft.external_id.trim() } }));
    },
    async (saved) => {
      await invalidate(queries, '/customers', '/search', '/audit-logs');
      onClose();
      if (!customer)
        await navigate({
          to: '/env/$environment_id/customers/$customer_id',
          params: (old: object) => ({ ...old, customer_id: saved.id }),
          search: ({ zone }: { zone?: string }) => ({ zone }),
        } as never);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  const bind = (field: TextField) => ({
    label: texts[field],
    value: draft[field],
    error: findFieldError(save, field),
    onChange: ({ currentTarget }: { currentTarget: HTMLInputElement }) => change({ [field]: currentTarget.value }),
  });
  return (
    <SideSheet title={customer ? texts.editTitle : texts.newTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput {...bind('name')} data-autofocus autoComplete="off" />
        <TextInput
          {...bind('external_id')}
          description={texts.externalIdHint}
          required
          classNames={{ input: 'mono' }}
          autoComplete="off"
        />
        <TextInput {...bind('email')} type="email" description={texts.emailHint} autoComplete="off" />
        <TextInput {...bind('contact')} autoComplete="off" />
        <AddressFields bind={bind} country={draft.address_country} />
        <TaxFields
          draft={draft}
          onChange={change}
          error={findFieldError(save, 'tax_ids') ?? findFieldError(save, 'tax_exempt')}
        />
        <Select
          label={texts.timezone}
          description={texts.timezoneHint}
          data={listZones(draft.timezone)}
          searchable
          allowDeselect={false}
          limit={60}
          value={draft.timezone}
          error={findFieldError(save, 'timezone')}
          onChange={(timezone) => timezone !== null && change({ timezone })}
        />
        <FormFoot
          needs="customer:write"
          deed={save}
          fields={[...TEXT_FIELDS, 'tax_ids', 'tax_exempt']}
          action={customer ? texts.save : texts.create}
          blocked={draft.external_id.trim() === '' ? texts.externalIdFirst : null}
        />
      </form>
    </SideSheet>
  );
}

type BoundField = {
  label: string;
  value: string;
  error: ReactNode;
  onChange: (event: { currentTarget: HTMLInputElement }) => void;
};

function AddressFields({ bind, country }: { bind: (field: TextField) => BoundField; country: string }): ReactNode {
  const texts = useTexts(TEXTS);
  const nameCountry = useCountryName();
  const name = nameCountry(country);
  return (
    <fieldset className={styles.group}>
      <legend>{texts.address}</legend>
      <TextInput {...bind('address_line1')} />
      <TextInput {...bind('address_line2')} />
      <div className={styles.pair}>
        <TextInput {...bind('address_postal_code')} />
        <TextInput {...bind('address_city')} />
      </div>
      <div className={styles.pair}>
        <TextInput
          {...bind('address_country')}
          placeholder="DE"
          maxLength={2}
          classNames={{ input: styles.upper ?? '' }}
        />
        <TextInput {...bind('address_state')} />
      </div>
      <p className="label">{name === country ? texts.countryHint : `= ${name}`}</p>
    </fieldset>
  );
}

type TaxFieldsProps = {
  draft: CustomerDraft;
  onChange: (next: Partial<CustomerDraft>) => void;
  error: ReactNode;
};

function TaxFields({ draft, onChange, error }: TaxFieldsProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { tax_ids, tax_exempt } = draft;
  const changeAt = (at: number, next: { type?: string; value?: string }) =>
    onChange({ tax_ids: tax_ids.map((each, index) => (index === at ? { ...each, ...next } : each)) });
  return (
    <fieldset className={styles.group}>
      <legend>{texts.tax}</legend>
      <Choice
        label={texts.tax}
        value={tax_exempt}
        options={TAX_STATES.map((value) => ({ value, label: texts[value] }))}
        onValue={(value) => onChange({ tax_exempt: value })}
      />
      <p className="label">{texts[`${tax_exempt}Hint`]}</p>
      {tax_ids.map(({ type, value }, at) => (
        <div key={at} className={styles.number}>
          <TextInput
            label={texts.taxType}
            placeholder="eu_vat"
            classNames={{ input: 'mono' }}
            required
            value={type}
            onChange={({ currentTarget }) => changeAt(at, { type: currentTarget.value })}
          />
          <TextInput
            label={texts.taxNumber}
            placeholder="DE123456789"
            classNames={{ input: 'mono' }}
            required
            value={value}
            onChange={({ currentTarget }) => changeAt(at, { value: currentTarget.value })}
          />
          <Button
            aria-label={texts.removeNumber(value)}
            onClick={() => onChange({ tax_ids: tax_ids.filter((_, index) => index !== at) })}
          >
            {texts.remove}
          </Button>
        </div>
      ))}
      {error !== undefined && (
        <p role="alert" className={styles.error}>
          {error}
        </p>
      )}
      <div>
        <Button onClick={() => onChange({ tax_ids: [...tax_ids, { type: '', value: '' }] })}>{texts.addNumber}</Button>
      </div>
    </fieldset>
  );
}

/** Zones of the browser, with UTC first and the zone of the record even if the browser does not know it. */
function listZones(own: string): string[] {
  return [...new Set(['UTC', own, ...Intl.supportedValuesOf('timeZone')])];
}
