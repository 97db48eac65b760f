/** Creates a customer on the way to a subscription. */
import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';
import styles from './subscriptions.module.css';

type CustomerFormProps = { onCreated: (customer_id: string) => void; onClose: () => void };

export function CustomerForm({ onCreated, onClose }: CustomerFormProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const queries = useQueryClient();
  const [fields, setFields] = useState({ name: '', external_id: '', email: '' });
  const create = useDeed(
    () => {
      const { email, ...rest } = fields;
      return readData(api.POST('/customers', { body: email === '' ? rest : { ...rest, email } }));
    },
    async ({ id }) => {
      await invalidate(queries, '/customers');
      onCreated(id);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(undefined);
  };
  const bind = (field: keyof typeof fields) => ({
    value: fields[field],
    error: findFieldError(create, field),
    onChange: ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
      const { value } = currentTarget;
      setFields((old) => ({ ...old, [field]: value }));
    },
  });
  return (
    <SideSheet title={texts.newCustomerTitle} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput label={texts.name} required {...bind('name')} />
        <TextInput
          label={texts.externalId}
          description={texts.externalHint}
          required
          classNames={{ input: 'mono' }}
          {...bind('external_id')}
        />
        <TextInput label={texts.email} type="email" {...bind('email')} />
        <FormFoot
          needs="customer:write"
          deed={create}
          fields={['name', 'external_id', 'email']}
          action={texts.createCustomer}
        />
      </form>
    </SideSheet>
  );
}
