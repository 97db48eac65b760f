/** Numbers of invoices, their due days, and the wait before they become final, with the PDF of what is not saved beside it. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { findFieldError } from '../../components/field-errors.ts';
import { useDeed } from '../../components/form.tsx';
import { Columns, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import { PreviewPdf } from './preview-pdf.tsx';
import { SaveFoot } from './save-foot.tsx';
import { saveSetting, useSetting } from './setting-queries.ts';
import { type InvoiceConfig, toWholeNumber } from './setting-records.ts';
import styles from './settings.module.css';

const FORMATS = ['YYYYMM', 'YYYYMMDD', 'YYMMDD', 'YY', 'YYYY'] as const;
const FIELDS = [
  'prefix',
  'separator',
  'suffix_length',
  'start_sequence',
  'timezone',
  'due_date_days',
  'finalization_delay_seconds',
] as const;
type NumberField = (typeof FIELDS)[number];
type NumberDraft = Record<NumberField | 'format', string>;

export function NumberingTab(): ReactNode {
  const config = useSetting<InvoiceConfig>('invoice_config');
  return <Loaded query={config}>{(loaded) => <NumberingForm config={loaded} />}</Loaded>;
}

function NumberingForm({ config }: { config: InvoiceConfig }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const [draft, setDraft] = useState(() => toDraft(config));
  const [saved, setSaved] = useState(draft);
  const save = useDeed(
    () => saveSetting(queries, 'invoice_config', toConfig(draft)),
    () => setSaved(draft),
  );
  const isChanged = JSON.stringify(draft) !== JSON.stringify(saved);
  const change = (field: keyof NumberDraft, value: string) => setDraft((old) => ({ ...old, [field]: value }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  const input = (field: NumberField, isNumber = false) => (
    <TextInput
      label={texts[field]}
      description={texts.hints(field)}
      value={draft[field]}
      inputMode={isNumber ? 'numeric' : 'text'}
      error={findFieldError(save, `value.${field}`)}
      onChange={({ currentTarget }) => change(field, currentTarget.value)}
    />
  );
  return (
    <Columns
      side={
        <div className={styles.preview}>
          <Sheet>
            <PreviewPdf body={{ invoice_config: toConfig(draft) }} />
          </Sheet>
        </div>
      }
    >
      <Sheet>
        <form onSubmit={submit} aria-label={texts.numbers}>
          <div className={styles.part}>
            <h2>{texts.numbers}</h2>
            <p className={styles.hint}>{texts.numbersHint}</p>
            <div className={styles.pair}>
              {input('prefix')}
              {input('separator')}
            </div>
            <div className={styles.pair}>
              <Select
                label={texts.format}
                description={texts.formatHint}
                allowDeselect={false}
                value={draft.format}
                data={[...FORMATS]}
                error={findFieldError(save, 'value.format')}
                onChange={(value) => change('format', value ?? draft.format)}
              />
              {input('timezone')}
            </div>
            <div className={styles.pair}>
              {input('suffix_length', true)}
              {input('start_sequence', true)}
            </div>
          </div>
          <div className={styles.part}>
            <h2>{texts.due}</h2>
            <div className={styles.pair}>
              {input('due_date_days', true)}
              {input('finalization_delay_seconds', true)}
            </div>
          </div>
          <SaveFoot
            save={save}
            fields={[...FIELDS, 'format'].map((field) => `value.${field}`)}
            needs="setting:write"
            isChanged={isChanged}
          />
        </form>
      </Sheet>
    </Columns>
  );
}

function toDraft(config: InvoiceConfig): NumberDraft {
  return {
    prefix: config.prefix,
    separator: config.separator,
    format: config.format,
    timezone: config.timezone,
    suffix_length: String(config.suffix_length),
    start_sequence: String(config.start_sequence),
    due_date_days: String(config.due_date_days),
    finalization_delay_seconds: String(config.finalization_delay_seconds),
  };
}

function toConfig(draft: NumberDraft): Record<string, unknown> {
  const { prefix, separator, format, timezone } = draft;
  return {
    prefix,
    separator,
    format,
    timezone,
    suffix_length: toWholeNumber(draft.suffix_length),
    start_sequence: toWholeNumber(draft.start_sequence),
    due_date_days: toWholeNumber(draft.due_date_days),
    finalization_delay_seconds: toWholeNumber(draft.finalization_delay_seconds),
  };
}

const HINTS = {
  en: {
    prefix: 'The beginning of each number.',
    separator: 'Between prefix, date and count.',
    suffix_length: 'The count is filled up with zeros.',
    start_sequence: 'Of each new date part.',
    timezone: 'Decides which day it is, such as Europe/Berlin.',
    due_date_days: 'After the day of issue.',
    finalization_delay_seconds: 'Late events still count on the draft. 7200 are two hours.',
  },
  de: {
    prefix: 'Der Anfang jeder Nummer.',
    separator: 'Zwischen Präfix, Datum und Zähler.',
    suffix_length: 'Der Zähler wird mit Nullen aufgefüllt.',
    start_sequence: 'Bei jedem neuen Datumsteil.',
    timezone: 'Bestimmt den Tag, etwa Europe/Berlin.',
    due_date_days: 'Nach dem Ausstellungstag.',
    finalization_delay_seconds: 'Späte Ereignisse zählen noch zum Entwurf. 7200 sind zwei Stunden.',
  },
} satisfies Record<string, Record<NumberField, string>>;

const TEXTS = defineTexts(
  {
    numbers: 'Numbers',
    numbersHint: 'A number is given when an invoice becomes final. Numbers that were given do not change.',
    prefix: 'Prefix',
    separator: 'Separator',
    format: 'Date part',
    formatHint: 'The count begins again with each new date part.',
    timezone: 'Time zone',
    suffix_length: 'Digits of the count',
    start_sequence: 'First count',
    due: 'Due date and finalization',
    due_date_days: 'Days until due',
    finalization_delay_seconds: 'Seconds until a draft becomes final',
    hints: (field: NumberField) => HINTS.en[field],
  },
  {
    de: {
      numbers: 'Nummern',
      numbersHint: 'Eine Nummer erhält, was endgültig wird. Vergebene Nummern ändern sich nicht.',
      prefix: 'Präfix',
      separator: 'Trennzeichen',
      format: 'Datumsteil',
      formatHint: 'Mit jedem neuen Datumsteil beginnt der Zähler von vorn.',
      timezone: 'Zeitzone',
      suffix_length: 'Stellen des Zählers',
      start_sequence: 'Erster Zähler',
      due: 'Fälligkeit und Abschluss',
      due_date_days: 'Tage bis zur Fälligkeit',
      finalization_delay_seconds: 'Sekunden, bis ein Entwurf endgültig wird',
      hints: (field) => HINTS.de[field],
    },
  },
);
