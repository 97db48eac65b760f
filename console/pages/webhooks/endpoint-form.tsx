/** Adds an endpoint and shows its secret once, or changes an endpoint. */
import { TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SecretSheet } from '../../components/secret-sheet.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EventNamesInput } from './event-names-input.tsx';
import { WEBHOOK_TEXTS } from './texts.ts';
import type { EndpointRecord } from './webhook-records.ts';
import styles from './webhooks.module.css';

export function EndpointForm({
  endpoint,
  onClose,
}: {
  endpoint?: EndpointRecord | undefined;
  onClose: () => void;
}): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const queries = useQueryClient();
  const [url, setUrl] = useState(endpoint?.url ?? '');
  const [description, setDescription] = useState(endpoint?.description ?? '');
  const [reach, setReach] = useState<'all' | 'some'>(endpoint && endpoint.event_names.length > 0 ? 'some' : 'all');
  const [names, setNames] = useState<readonly string[]>(endpoint?.event_names ?? []);
  const save = useDeed(
    async (): Promise<string | null> => {
      const body = {
        url,
        description: description === '' ? null : description,
        event_names: (reach === 'all' ? [] : names) as EndpointRecord['event_names'],
      };
      if (!endpoint) return (await readData(api.POST('/webhooks/endpoints', { body }))).secret;
      await api.PUT('/webhooks/endpoints/{id}', { params: { path: { id: endpoint.id } }, body });
      return null;
    },
    async (secret) => {
      await invalidate(queries, '/webhooks');
      if (secret === null) onClose();
    },
  );
  const title = endpoint ? texts.editTitle : texts.addTitle;
  if (save.data)
    return (
      <SecretSheet title={title} label={texts.secret} secret={save.data} hint={texts.secretOnce} onClose={onClose} />
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <SideSheet title={title} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.url}
          description={texts.urlHint}
          placeholder="https://hooks.example.com/farthing"
          type="url"
          required
          value={url}
          error={findFieldError(save, 'url')}
          onChange={({ currentTarget }) => setUrl(currentTarget.value)}
        />
        <TextInput
          label={texts.description}
          value={description}
          error={findFieldError(save, 'description')}
          onChange={({ currentTarget }) => setDescription(currentTarget.value)}
        />
        <div>
          <h3 className={styles.label}>{texts.events}</h3>
          <Choice
            label={texts.events}
            value={reach}
            onValue={setReach}
            options={[
              { value: 'all', label: texts.allEvents },
              { value: 'some', label: texts.chosenEvents },
            ]}
          />
        </div>
        {reach === 'some' && <EventNamesInput value={names} onValue={setNames} />}
        <FormFoot
          needs="webhook:write"
          deed={save}
          fields={['url', 'description']}
          action={endpoint ? texts.saveNow : texts.addNow}
          blocked={reach === 'some' && names.length === 0 ? texts.chooseOne : null}
        />
      </form>
    </SideSheet>
  );
}
