/** Makes a key, or a successor of one that is rotated: the old key works until it is revoked, so that programs can change over. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { DAY_MS } from '../../../core/foundation/time/durations.ts';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SecretSheet } from '../../components/secret-sheet.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { ApiKey } from './api-key.ts';
import styles from './api-keys.module.css';
import { TEXTS } from './texts.ts';

const LIFETIMES_DAYS = ['', '30', '90', '365'] as const;

type NewKeySheetProps = { rotated?: ApiKey; onRevoke?: () => void; onClose: () => void };

export function NewKeySheet({ rotated, onRevoke, onClose }: NewKeySheetProps): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const [name, setName] = useState(rotated?.name ?? '');
  const [type, setType] = useState(rotated?.type ?? 'private_key');
  const [days, setDays] = useState('');
  const make = useDeed(
    () =>
      readData(
        api.POST('/secrets/api/keys', {
          body: {
            name,
            type: type as 'private_key',
            ...(days === '' ? {} : { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() }),
          },
        }),
      ),
    () => invalidate(queries, '/secrets'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate(undefined);
  };
  const title = rotated ? texts.rotateTitle(rotated.name) : texts.makeTitle;
  if (make.data)
    return (
      <SecretSheet
        title={title}
        hint={rotated ? texts.shownOnceRotated(rotated.display_id) : texts.shownOnce}
        label={texts.key}
        secret={make.data.api_key}
        onClose={onClose}
        next={
          rotated &&
          onRevoke && (
            <Button isDangerous onClick={onRevoke}>
              {texts.revokeOld}
            </Button>
          )
        }
      />
    );
  return (
    <SideSheet title={title} subtitle={rotated ? texts.rotateHint : texts.makeHint} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <TextInput
          label={texts.name}
          description={texts.nameHint}
          required
          value={name}
          error={findFieldError(make, 'name')}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <Select
          label={texts.rights}
          allowDeselect={false}
          value={type}
          error={findFieldError(make, 'type')}
          onChange={(value) => setType(value ?? 'private_key')}
          data={[
            { value: 'private_key', label: texts.rightsOwn },
            { value: 'publishable_key', label: texts.eventsOnly },
          ]}
        />
        <Select
          label={texts.expires}
          allowDeselect={false}
          value={days}
          error={findFieldError(make, 'expires_at')}
          onChange={(value) => setDays(value ?? '')}
          data={LIFETIMES_DAYS.map((each) => ({ value: each, label: each === '' ? texts.never : texts.days(each) }))}
        />
        <FormFoot needs="secret:write" deed={make} fields={['name', 'type', 'expires_at']} action={texts.makeNow} />
      </form>
    </SideSheet>
  );
}
