/** Replaces the content of an event. The effects on meters and invoices stand below the form before it is done. */
import { Autocomplete, Modal, Textarea, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { exactBody, formatExact, parseExact } from '../../client/exact-json.ts';
import { useGet } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { useTexts } from '../../texts/texts.ts';
import { Effects } from './effects.tsx';
import { buildPreviewKey, type EventThreadData, whileProcessing } from './event-queries.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

const TYPING_MS = 400;

type CorrectEventProps = {
  event: NonNullable<EventThreadData['event']>;
  properties: Record<string, unknown>;
  /** The name that the event probably should have. */
  mended_name: string | null;
  onDone: () => Promise<void>;
  onClose: () => void;
};

export function CorrectEvent({ event, properties, mended_name, onDone, onClose }: CorrectEventProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const id = event.id;
  const names = useGet('/events/names', { query: { days: 31 } as never });
  const [name, setName] = useState(mended_name ?? event.event_name);
  const [customer, setCustomer] = useState(event.external_customer_id);
  const [timestamp, setTimestamp] = useState(event.timestamp);
  const [text, setText] = useState(() => formatExact(properties, 2));
  const [reason, setReason] = useState(mended_name === null ? '' : texts.misspelt(event.event_name));
  const parsed = readProperties(text);
  const content =
    parsed === null
      ? null
      : {
          event_name: name,
          external_customer_id: customer,
          timestamp,
          ...(event.source === '' ? {} : { source: event.source }),
          ...(event.customer_id === '' ? {} : { customer_id: event.customer_id }),
          properties: parsed,
        };
  const body = content === null ? null : formatExact({ event: content });
  const isChanged =
    name !== event.event_name ||
    customer !== event.external_customer_id ||
    timestamp !== event.timestamp ||
    (parsed !== null && formatExact(parsed) !== formatExact(properties));
  const [tried] = useDebouncedValue(body, TYPING_MS);
  const preview = useQuery({
    queryKey: buildPreviewKey('replace', id, tried),
    queryFn: () =>
      readData(
        api.POST('/events/{id}/replace/preview', {
          params: { path: { id } as never },
          body: tried as never,
          ...exactBody,
        }),
      ),
    enabled: tried !== null && isChanged,
    placeholderData: keepPreviousData,
    ...whileProcessing,
  });
  const deed = useDeed(
    () =>
      readData(
        api.POST('/events/{id}/replace', {
          params: { path: { id } as never },
          body: formatExact({ event: content, reason }) as never,
          ...exactBody,
        }),
      ),
    async () => {
      await onDone();
      onClose();
    },
  );
  const errorAt = (field: string) => findFieldError(deed, field) ?? findFieldError(preview, field);
  const propertiesError = parsed === null ? texts.notJson : errorAt('event.properties');
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={mended_name === null ? texts.correctTitle : texts.mendTitle}
      closeButtonProps={{ 'aria-label': texts.close }}
    >
      <form
        className={styles.form}
        onSubmit={(submit) => {
          submit.preventDefault();
          deed.mutate(undefined);
        }}
      >
        <Autocomplete
          label={texts.name}
          value={name}
          onChange={setName}
          data={(names.data?.items ?? []).filter(({ meter_ids }) => meter_ids?.length).map((each) => each.event_name)}
          error={errorAt('event.event_name')}
          required
          comboboxProps={{ withinPortal: false }}
        />
        <TextInput
          label={texts.externalId}
          value={customer}
          onChange={({ currentTarget }) => setCustomer(currentTarget.value)}
          error={errorAt('event.external_customer_id')}
          required
        />
        <TextInput
          label={texts.timestamp}
          value={timestamp}
          onChange={({ currentTarget }) => setTimestamp(currentTarget.value)}
          error={errorAt('event.timestamp')}
          required
        />
        <Textarea
          className={styles.code ?? ''}
          label={texts.properties}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
          error={propertiesError}
          autosize
          minRows={3}
          maxRows={12}
          spellCheck={false}
          data-autofocus
        />
        <TextInput
          label={texts.why}
          description={texts.whyHint}
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
          error={findFieldError(deed, 'reason')}
          required
          maxLength={1000}
        />
        {isChanged && <Effects effects={preview.data} error={preview.error} isPending={preview.isFetching} />}
        <FormFoot
          needs="event:correct"
          deed={deed}
          fields={['event', 'reason']}
          action={mended_name === null ? texts.correctDo : texts.mendDo}
          blocked={
            body === null ? texts.notJson : !isChanged ? texts.nothingChanged : reason === '' ? texts.whyNeeded : null
          }
        />
      </form>
    </Modal>
  );
}

function readProperties(text: string): Record<string, unknown> | null {
  try {
    const value = parseExact(text === '' ? '{}' : text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
