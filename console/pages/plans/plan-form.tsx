/** The fields of a plan: of a new one, of one that is changed, or of a copy. */
import { Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanRecord } from './plan-queries.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';

type PlanFormProps = {
  /** The plan that is changed or copied. */
  plan?: PlanRecord;
  isCopy?: boolean;
  onClose: () => void;
};

export function PlanForm({ plan, isCopy = false, onClose }: PlanFormProps): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [name, setName] = useState(plan ? (isCopy ? texts.copyOf(plan.name) : plan.name) : '');
  const [key, setKey] = useState(isCopy ? '' : (plan?.lookup_key ?? ''));
  const [description, setDescription] = useState(plan?.description ?? '');
  const save = useDeed(
    () => {
      const body = { name, description: description === '' ? null : description };
      const named = key === '' ? body : { ...body, lookup_key: key };
      if (!plan) return readData(api.POST('/plans', { body: named }));
      const params = { path: { id: plan.id } };
      return isCopy
        ? readData(api.POST('/plans/{id}/clone', { params, body: { ...body, lookup_key: key } }))
        : readData(api.PUT('/plans/{id}', { params, body: named }));
    },
    async (saved) => {
      await invalidate(queries, '/plans');
      onClose();
      if (!plan || isCopy)
        await navigate({
          to: '/env/$environment_id/plans/$plan_id',
          params: (old: object) => ({ ...old, plan_id: saved.id }),
          search: {},
        } as never);
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  const title = !plan ? texts.newPlan.replace('…', '') : isCopy ? texts.copyTitle(plan.name) : texts.editTitle;
  return (
    <SideSheet title={title} subtitle={isCopy ? texts.copyHint : undefined} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          required
          value={name}
          error={findFieldError(save, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <TextInput
          label={texts.key}
          {...(isCopy ? {} : { description: texts.keyHint })}
          required={isCopy}
          classNames={{ input: 'mono' }}
          value={key}
          error={findFieldError(save, 'lookup_key')}
          onChange={({ currentTarget }) => setKey(currentTarget.value)}
        />
        <Textarea
          label={texts.description}
          autosize
          minRows={2}
          value={description}
          error={findFieldError(save, 'description')}
          onChange={({ currentTarget }) => setDescription(currentTarget.value)}
        />
        <FormFoot
          needs="plan:write"
          deed={save}
          fields={['name', 'lookup_key', 'description']}
          action={!plan ? texts.createPlan : isCopy ? texts.copyNow : texts.save}
        />
      </form>
    </SideSheet>
  );
}
