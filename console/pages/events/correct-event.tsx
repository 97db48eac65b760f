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

/** `properties` is JSON text. */
type EventDraft = Record<'event_name' | 'external_customer_id' | 'timestamp' | 'properties' | 'reason', string>;

export function CorrectEvent(props: CorrectEventProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { event, mended_name, onClose } = props;
  const names = useGet('/events/names', { query: { days: 31 } as never });
  const [draft, setDraft] = useState<EventDraft>(() => ({
    event_name: mended_name ?? event.event_name,
    external_customer_id: event.external_customer_id,
    timestamp: event.timestamp,
    properties: formatExact(props.properties, 2),
    reason: mended_name === null ? '' : texts.misspelt(event.event_name),
  }));
  const set = (fields: Partial<EventDraft>) => setDraft((old) => ({ ...old, ...fields }));
  const { content, isChanged, preview, deed } = useReplacement(draft, props);
  const errorAt = (field: string) => findFieldError(deed, field) ?? findFieldError(preview, field);
  const propertiesError = content === null ? texts.notJson : errorAt('event.properties');
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
          value={draft.event_name}
          onChange={(event_name) => set({ event_name })}
          data={(names.data?.items ?? []).filter(({ meter_ids }) => meter_ids?.length).map((each) => each.event_name)}
          error={errorAt('event.event_name')}
          required
          comboboxProps={{ withinPortal: false }}
        />
        <TextInput
          label={texts.externalId}
          value={draft.external_customer_id}
          onChange={({ currentTarget }) => set({ external_customer_id: currentTarget.value })}
          error={errorAt('event.external_customer_id')}
          required
        />
        <TextInput
          label={texts.timestamp}
          value={draft.timestamp}
          onChange={({ currentTarget }) => set({ timestamp: currentTarget.value })}
          error={errorAt('event.timestamp')}
          required
        />
        <Textarea
          className={styles.code ?? ''}
          label={texts.properties}
          value={draft.properties}
          onChange={({ currentTarget }) => set({ properties: currentTarget.value })}
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
          value={draft.reason}
          onChange={({ currentTarget }) => set({ reason: currentTarget.value })}
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
            content === null
              ? texts.notJson
              : !isChanged
                ? texts.nothingChanged
                : draft.reason === ''
                  ? texts.whyNeeded
                  : null
          }
        />
      </form>
    </Modal>
  );
}

/** Builds the replacement of an event from its draft, previews it and sends it. `content` is null while the properties are not a JSON object. */
function useReplacement(draft: EventDraft, { event, properties, onDone, onClose }: CorrectEventProps) {
  const content = buildContent(draft, event);
  const body = content === null ? null : formatExact({ event: content });
  const isChanged =
    draft.event_name !== event.event_name ||
    draft.external_customer_id !== event.external_customer_id ||
    draft.timestamp !== event.timestamp ||
    (content !== null && formatExact(content.properties) !== formatExact(properties));
  const [tried] = useDebouncedValue(body, TYPING_MS);
  const params = { path: { id: event.id } as never };
  const preview = useQuery({
    queryKey: buildPreviewKey('replace', event.id, tried),
    queryFn: () => readData(api.POST('/events/{id}/replace/preview', { params, body: tried as never, ...exactBody })),
    enabled: tried !== null && isChanged,
    placeholderData: keepPreviousData,
    ...whileProcessing,
  });
  const deed = useDeed(
    () => {
      const request = formatExact({ event: content, reason: draft.reason });
      return readData(api.POST('/events/{id}/replace', { params, body: request as never, ...exactBody }));
    },
    async () => {
      await onDone();
      onClose();
    },
  );
  return { content, isChanged, preview, deed };
}

function buildContent(
  { event_name, external_customer_id, timestamp, properties: text }: EventDraft,
  { source, customer_id }: CorrectEventProps['event'],
) {
  const properties = readProperties(text);
  if (properties === null) return null;
  return {
    ...{ event_name, external_customer_id, timestamp },
    ...(source === '' ? {} : { source }),
    ...(customer_id === '' ? {} : { customer_id }),
    properties,
  };
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
