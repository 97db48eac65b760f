/** Replaces the secret of an endpoint. */
import { Select } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { invalidate } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { SecretSheet } from '../../components/secret-sheet.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { WEBHOOK_TEXTS } from './texts.ts';
import type { EndpointRecord } from './webhook-records.ts';
import styles from './webhooks.module.css';

const OVERLAPS_HOURS = ['0', '24', '72', '168'] as const;

/** Makes a new secret; the old one signs, too, for some hours, so that the receiver can change over. */
export function RotateSecretSheet({
  endpoint: { id },
  onClose,
}: {
  endpoint: EndpointRecord;
  onClose: () => void;
}): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const queries = useQueryClient();
  const [hours, setHours] = useState<string>('24');
  const rotate = useDeed(
    () =>
      readData(
        api.POST('/webhooks/endpoints/{id}/secret/rotate', {
          params: { path: { id } },
          body: { overlap_hours: Number(hours) },
        }),
      ),
    () => invalidate(queries, '/webhooks/endpoints'),
  );
  if (rotate.data)
    return (
      <SecretSheet
        title={texts.rotateTitle}
        label={texts.secret}
        secret={rotate.data.secret}
        hint={hours === '0' ? texts.secretOnce : texts.secretOverlap(hours)}
        onClose={onClose}
      />
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rotate.mutate(undefined);
  };
  return (
    <SideSheet title={texts.rotateTitle} subtitle={texts.rotateHint} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Select
          label={texts.overlap}
          allowDeselect={false}
          value={hours}
          error={findFieldError(rotate, 'overlap_hours')}
          onChange={(value) => setHours(value ?? '24')}
          data={OVERLAPS_HOURS.map((each) => ({
            value: each,
            label: each === '0' ? texts.endAtOnce : texts.hours(each),
          }))}
        />
        <FormFoot needs="webhook:write" deed={rotate} fields={['overlap_hours']} action={texts.rotateNow} />
      </form>
    </SideSheet>
  );
}
