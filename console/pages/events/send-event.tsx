/** Sends an event for a try, or the mended body of a dead letter, and then follows its thread. */
import { Autocomplete, Modal, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api, formatCurl, readData } from '../../client/client.ts';
import { exactBody, parseExact, restoreNumbers } from '../../client/exact-json.ts';
import type { GetData } from '../../client/queries.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { CodeBlock } from '../../components/copy.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';

const SEEN_DAYS = 31;
const LETTERS_MAX = 1000;

type SendEventProps = {
  letter_id: string | undefined;
  event_name: string | undefined;
  external_customer_id: string | undefined;
  onSent: (event_id: string) => void;
  onClose: () => void;
};

export function SendEvent({ letter_id, onClose, ...rest }: SendEventProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={letter_id === undefined ? texts.sendTitle : texts.letterTitle}
      closeButtonProps={{ 'aria-label': texts.close }}
    >
      {letter_id === undefined ? <EventForm {...rest} /> : <LetterForm letter_id={letter_id} onSent={rest.onSent} />}
    </Modal>
  );
}

type EventFormProps = Omit<SendEventProps, 'letter_id' | 'onClose'>;

function EventForm({ event_name, external_customer_id, onSent }: EventFormProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const names = useGet('/events/names', { query: { days: SEEN_DAYS } as never });
  const counted = (names.data?.items ?? []).filter(({ meter_ids }) => meter_ids?.length).map((each) => each.event_name);
  const [typedName, setName] = useState(event_name);
  const [customer, setCustomer] = useState(external_customer_id ?? '');
  const [typedText, setText] = useState<string | null>(null);
  const name = typedName ?? counted[0] ?? '';
  const seen = useGet(
    '/events/properties',
    { query: { event_name: name, days: SEEN_DAYS } as never },
    { enabled: name !== '' },
  );
  const text = typedText ?? buildSample(seen.data);
  const body = buildBody({ name, customer, text });
  const deed = useSendText(body ?? '', onSent);
  return (
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
        data={counted}
        error={findFieldError(deed, 'event_name')}
        required
        comboboxProps={{ withinPortal: false }}
      />
      <TextInput
        label={texts.externalId}
        value={customer}
        onChange={({ currentTarget }) => setCustomer(currentTarget.value)}
        error={findFieldError(deed, 'external_customer_id')}
        required
        data-autofocus
      />
      <Textarea
        className={styles.code ?? ''}
        label={texts.properties}
        description={typedText === null && seen.data ? texts.sampleHint : undefined}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
        error={body === null ? texts.notJson : findFieldError(deed, 'properties')}
        autosize
        minRows={3}
        maxRows={12}
        spellCheck={false}
      />
      {body !== null && (
        <CodeBlock label={texts.asCurl} code={restoreNumbers(formatCurl('POST', '/events', parseExact(body)))} />
      )}
      <p className="muted">{texts.countsHint}</p>
      <FormFoot
        needs="event:write"
        deed={deed}
        fields={['event_name', 'external_customer_id', 'properties']}
        action={texts.sendDo}
        blocked={body === null ? texts.notJson : null}
      />
    </form>
  );
}

/** Sends an event as the text of its body, so that numbers keep the digits that were typed. */
function useSendText(text: string, onSent: (event_id: string) => void) {
  const queries = useQueryClient();
  return useDeed(
    () =>
      readData(
        api.POST('/events', {
          body: text as never,
          ...exactBody,
        }),
      ),
    async ({ event_id }) => {
      await invalidate(queries, '/events');
      onSent(event_id);
    },
  );
}

/** A dead letter is text that could not become an event. Its mended text is sent as a new event. */
function LetterForm({ letter_id, onSent }: { letter_id: string; onSent: (event_id: string) => void }): ReactNode {
  const letters = useGet('/events/dead-letters', { query: { limit: LETTERS_MAX } as never });
  const texts = useTexts(EVENT_TEXTS);
  return (
    <Loaded query={letters}>
      {({ items }) => {
        const letter = items.find(({ id }) => id === letter_id);
        return letter ? <LetterText letter={letter} onSent={onSent} /> : <p role="alert">{texts.noLetter}</p>;
      }}
    </Loaded>
  );
}

type LetterTextProps = {
  letter: GetData<'/events/dead-letters'>['items'][number];
  onSent: (event_id: string) => void;
};

function LetterText({ letter, onSent }: LetterTextProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const [text, setText] = useState(letter.body);
  const isJson = readJson(text) !== null;
  const deed = useSendText(text, onSent);
  return (
    <form
      className={styles.form}
      onSubmit={(submit) => {
        submit.preventDefault();
        deed.mutate(undefined);
      }}
    >
      <p className={styles.fault}>{letter.reason}</p>
      <Textarea
        className={styles.code ?? ''}
        label={texts.letterBody}
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
        error={isJson ? undefined : texts.notJson}
        autosize
        minRows={6}
        maxRows={16}
        spellCheck={false}
        data-autofocus
      />
      <FormFoot needs="event:write" deed={deed} action={texts.sendDo} blocked={isJson ? null : texts.notJson} />
    </form>
  );
}

/** The body as text, so that numbers keep the digits that were typed; null if the properties are no object. */
function buildBody({ name, customer, text }: { name: string; customer: string; text: string }): string | null {
  const value = readJson(text === '' ? '{}' : text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const head = JSON.stringify({ event_name: name, external_customer_id: customer });
  return `${head.slice(0, -1)},"properties":${text === '' ? '{}' : text}}`;
}

function readJson(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    return null;
  }
}

/** Properties with their most frequent values. */
function buildSample(seen: GetData<'/events/properties'> | undefined): string {
  if (!seen || seen.items.length === 0) return '{}';
  const lines = seen.items
    .filter(({ sample_values }) => sample_values.length > 0)
    .map(({ property, value_type, sample_values: [first = ''] }) => {
      const value = value_type === 'number' || value_type === 'boolean' ? first : JSON.stringify(first);
      return `  ${JSON.stringify(property)}: ${value}`;
    });
  return `{\n${lines.join(',\n')}\n}`;
}
