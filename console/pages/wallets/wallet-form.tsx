/** A new wallet of a customer. */
import { Select, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NoOptions } from '../../components/no-options.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { TEXTS } from './texts.ts';
import styles from './wallets.module.css';

const PRICE_TYPES = ['ALL', 'USAGE', 'FIXED'] as const;

type WalletFormProps = { customer_id: string | undefined; onClose: () => void };

export function WalletForm({ customer_id, onClose }: WalletFormProps): ReactNode {
  const texts = useTexts(TEXTS);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [customer, setCustomer] = useState(customer_id ?? null);
  const [name, setName] = useState('');
  const [currency, setCurrency] = useState('USD');
  const [pays, setPays] = useState<(typeof PRICE_TYPES)[number]>('ALL');
  const [rate, setRate] = useState('1');
  const save = useDeed(
    () =>
      readData(
        api.POST('/wallets', {
          body: {
            customer_id: customer,
            currency: currency.trim().toLowerCase(),
            ...(name.trim() === '' ? {} : { name: name.trim() }),
            config: { allowed_price_types: [pays] },
            conversion_rate: rate,
          },
        }),
      ),
    async (saved) => {
      await invalidate(queries, '/wallets', '/customers');
      await navigate({
        to: '/env/$environment_id/wallets/$wallet_id',
        params: (old: object) => ({ ...old, wallet_id: saved.id }),
        search: ({ zone }: { zone?: string }) => ({ zone }),
      } as never);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <SideSheet title={texts.newTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <CustomerSelect value={customer} onValue={setCustomer} error={findFieldError(save, 'customer_id')} />
        <TextInput
          label={texts.name}
          placeholder={texts.namePlaceholder}
          value={name}
          error={findFieldError(save, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TextInput
          label={texts.currency}
          description={texts.currencyHint}
          required
          maxLength={3}
          classNames={{ input: 'mono' }}
          value={currency}
          error={findFieldError(save, 'currency')}
          onChange={({ currentTarget }) => setCurrency(currentTarget.value.toUpperCase())}
        />
        <div className={styles.choice}>
          <span className={styles.choiceLabel}>{texts.pays}</span>
          <Choice
            label={texts.pays}
            value={pays}
            options={PRICE_TYPES.map((value) => ({ value, label: texts[value] }))}
            onValue={setPays}
          />
        </div>
        <NumberInput
          label={texts.rate(currency)}
          description={texts.rateHint}
          required
          value={rate}
          error={findFieldError(save, 'conversion_rate')}
          onValue={setRate}
        />
        <FormFoot
          needs="wallet:write"
          deed={save}
          fields={['customer_id', 'name', 'currency', 'conversion_rate']}
          action={texts.create}
          blocked={customer === null ? texts.customerFirst : rate === '' ? texts.rateFirst : null}
        />
      </form>
    </SideSheet>
  );
}

type CustomerSelectProps = {
  value: string | null;
  onValue: (value: string | null) => void;
  error: ReactNode;
};

function CustomerSelect({ value, onValue, error }: CustomerSelectProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [text, setText] = useState('');
  const [q] = useDebouncedValue(text.trim(), 200);
  const chosen = useGet('/customers/{id}', { path: { id: value ?? '' } }, { enabled: value !== null });
  const name = chosen.data?.name || chosen.data?.external_id;
  const isText = q !== '' && q !== name;
  const first = useGet('/customers', { query: { limit: 20 } }, { enabled: !isText });
  const found = useGet('/search', { query: { q, kinds: ['customer'], limit: 20 } }, { enabled: isText });
  const options = new Map(
    isText
      ? (found.data?.items ?? []).map((each) => [each.id, each.title] as const)
      : (first.data?.items ?? []).map((each) => [each.id, each.name || each.external_id] as const),
  );
  if (value !== null && name) options.set(value, name);
  return (
    <Select
      label={texts.customer}
      placeholder={texts.findCustomer}
      required
      searchable
      value={value}
      data={[...options].map(([id, label]) => ({ value: id, label }))}
      filter={({ options: all }) => all}
      nothingFoundMessage={<NoOptions query={isText ? found : first} none={texts.noCustomer} />}
      error={error}
      onSearchChange={setText}
      onChange={onValue}
    />
  );
}
