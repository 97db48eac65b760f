/** Grants credits with a plan. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';

const GRANT_PERIODS = ['MONTHLY', 'QUARTERLY', 'ANNUAL', 'WEEKLY', 'DAILY'] as const;

export function GrantForm({ plan_id, onClose }: { plan_id: string; onClose: () => void }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [credits, setCredits] = useState('');
  const [cadence, setCadence] = useState<string>('ONETIME');
  const [expiry, setExpiry] = useState<string>('NEVER');
  const add = useDeed(
    () =>
      readData(
        api.POST('/creditgrants', {
          body: {
            scope: 'PLAN',
            plan_id,
            name,
            credits,
            cadence: cadence === 'ONETIME' ? 'ONETIME' : 'RECURRING',
            ...(cadence === 'ONETIME' ? {} : { period: cadence, period_count: 1 }),
            expiration_type: expiry,
          } as never,
        }),
      ),
    async () => {
      await invalidate(queries, '/plans', '/creditgrants');
      onClose();
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate(undefined);
  };
  return (
    <SideSheet title={texts.grantTitle} subtitle={texts.grantHint} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          required
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          error={findFieldError(add, 'name')}
        />
        <NumberInput
          label={texts.credits}
          required
          value={credits}
          onValue={setCredits}
          error={findFieldError(add, 'credits')}
        />
        <Select
          label={texts.cadence}
          allowDeselect={false}
          data={[
            { value: 'ONETIME', label: texts.once },
            ...GRANT_PERIODS.map((period) => ({ value: period, label: texts.recurring(texts.period(period)) })),
          ]}
          value={cadence}
          onChange={(next) => next && setCadence(next)}
          error={findFieldError(add, 'cadence') ?? findFieldError(add, 'period')}
        />
        <Select
          label={texts.expires}
          allowDeselect={false}
          data={[
            { value: 'NEVER', label: texts.never },
            { value: 'BILLING_CYCLE', label: texts.withPeriod },
          ]}
          value={expiry}
          onChange={(next) => next && setExpiry(next)}
          error={findFieldError(add, 'expiration_type')}
        />
        <FormFoot
          needs="creditgrant:write"
          deed={add}
          fields={['name', 'credits', 'cadence', 'period', 'expiration_type']}
          action={texts.add}
        />
      </form>
    </SideSheet>
  );
}
