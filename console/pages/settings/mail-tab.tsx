/** Settings of mail to customers and of the address for their answers. */
import { Switch, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { findFieldError } from '../../components/field-errors.ts';
import { useDeed } from '../../components/form.tsx';
import { Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import { SaveFoot } from './save-foot.tsx';
import { saveSetting, useSetting } from './setting-queries.ts';
import styles from './settings.module.css';

type MailConfig = { invoices: boolean; reminders: boolean; reply_to: string | null; bcc: string[] };

export function MailTab(): ReactNode {
  const config = useSetting<MailConfig>('invoice_mail_config');
  return <Loaded query={config}>{(loaded) => <MailForm config={loaded} />}</Loaded>;
}

function MailForm({ config }: { config: MailConfig }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const [draft, setDraft] = useState({ ...config, reply_to: config.reply_to ?? '', bcc: config.bcc.join('\n') });
  const [saved, setSaved] = useState(draft);
  const save = useDeed(
    () =>
      saveSetting(queries, 'invoice_mail_config', {
        ...draft,
        reply_to: draft.reply_to.trim() === '' ? null : draft.reply_to.trim(),
        bcc: draft.bcc.split(/[\s,;]+/).filter((address) => address !== ''),
      }),
    () => setSaved(draft),
  );
  const isChanged = JSON.stringify(draft) !== JSON.stringify(saved);
  const change = (fields: Partial<typeof draft>) => setDraft((old) => ({ ...old, ...fields }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <div className={styles.narrowForm}>
      <Sheet>
        <form onSubmit={submit} aria-label={texts.title}>
          <div className={styles.part}>
            <h2>{texts.title}</h2>
            <p className={styles.hint}>{texts.hint}</p>
            <Switch
              label={texts.invoices}
              checked={draft.invoices}
              onChange={({ currentTarget }) => change({ invoices: currentTarget.checked })}
            />
            <Switch
              label={texts.reminders}
              checked={draft.reminders}
              onChange={({ currentTarget }) => change({ reminders: currentTarget.checked })}
            />
            <TextInput
              type="email"
              label={texts.replyTo}
              description={texts.replyHint}
              value={draft.reply_to}
              error={findFieldError(save, 'value.reply_to')}
              onChange={({ currentTarget }) => change({ reply_to: currentTarget.value })}
            />
            <Textarea
              label={texts.bcc}
              description={texts.bccHint}
              autosize
              minRows={2}
              value={draft.bcc}
              error={findFieldError(save, 'value.bcc')}
              onChange={({ currentTarget }) => change({ bcc: currentTarget.value })}
            />
          </div>
          <SaveFoot save={save} fields={['value.reply_to', 'value.bcc']} needs="setting:write" isChanged={isChanged} />
        </form>
      </Sheet>
    </div>
  );
}

const TEXTS = defineTexts(
  {
    title: 'Mail to customers',
    hint: 'Mail goes out once the operator has set a mail server.',
    invoices: 'Send final invoices with their PDF',
    reminders: 'Send reminders for overdue invoices',
    replyTo: 'Answers go to',
    replyHint: 'Empty: the address that sends.',
    bcc: 'Blind copies',
    bccHint: 'At most ten addresses, one a line.',
  },
  {
    de: {
      title: 'E-Mail an Kunden',
      hint: 'E-Mails gehen hinaus, sobald der Betreiber einen Mailserver eingerichtet hat.',
      invoices: 'Endgültige Rechnungen mit PDF senden',
      reminders: 'An überfällige Rechnungen erinnern',
      replyTo: 'Antworten gehen an',
      replyHint: 'Leer: die sendende Adresse.',
      bcc: 'Blindkopien',
      bccHint: 'Höchstens zehn Adressen, je Zeile eine.',
    },
  },
);
