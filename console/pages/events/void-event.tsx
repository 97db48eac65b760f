/** Removes an event from all usage, after it has shown what changes. */
import { Modal, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { useTexts } from '../../texts/texts.ts';
import { Effects } from './effects.tsx';
import { buildPreviewKey, type EventThreadData, whileProcessing } from './event-queries.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

type VoidEventProps = {
  event: NonNullable<EventThreadData['event']>;
  onDone: () => Promise<void>;
  onClose: () => void;
};

export function VoidEvent({ event: { id }, onDone, onClose }: VoidEventProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const [reason, setReason] = useState('');
  const preview = useQuery({
    queryKey: buildPreviewKey('void', id),
    queryFn: () => readData(api.POST('/events/{id}/void/preview', { params: { path: { id } as never } })),
    staleTime: 0,
    ...whileProcessing,
  });
  const deed = useDeed(
    () => readData(api.POST('/events/{id}/void', { params: { path: { id } as never }, body: { reason } })),
    async () => {
      await onDone();
      onClose();
    },
  );
  return (
    <Modal opened onClose={onClose} size="lg" title={texts.voidTitle} closeButtonProps={{ 'aria-label': texts.close }}>
      <form
        className={styles.form}
        onSubmit={(submit) => {
          submit.preventDefault();
          deed.mutate(undefined);
        }}
      >
        <p className="muted">{texts.voidHint}</p>
        <TextInput
          label={texts.why}
          description={texts.whyHint}
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
          error={findFieldError(deed, 'reason')}
          required
          maxLength={1000}
          data-autofocus
        />
        <Effects effects={preview.data} error={preview.error} isPending={preview.isFetching} />
        <FormFoot
          needs="event:correct"
          deed={deed}
          fields={['reason']}
          action={texts.voidDo}
          blocked={reason.trim() === '' ? texts.whyNeeded : null}
        />
      </form>
    </Modal>
  );
}
