/** Foot of a form of settings: saves what has changed, and says why it cannot be saved. */
import type { ReactNode } from 'react';
import { FormFoot } from '../../components/form.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import styles from './settings.module.css';

type SaveFootProps = {
  save: { error: Error | null; isPending: boolean; isSuccess: boolean };
  /** Fields that show their errors themselves. */
  fields: readonly string[];
  mayWrite: boolean;
  isChanged: boolean;
};

export function SaveFoot({ save, fields, mayWrite, isChanged }: SaveFootProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <div className={styles.save}>
      <FormFoot
        deed={save}
        fields={fields}
        action={texts.save}
        blocked={mayWrite ? (isChanged ? null : texts.noChange) : texts.mayNot}
      >
        <span role="status" className={styles.done}>
          {save.isSuccess && !isChanged ? texts.saved : ''}
        </span>
      </FormFoot>
    </div>
  );
}

const TEXTS = defineTexts(
  {
    save: 'Save changes',
    saved: 'Saved',
    noChange: 'Nothing has changed.',
    mayNot: 'Your role may not change settings.',
  },
  {
    de: {
      save: 'Änderungen speichern',
      saved: 'Gespeichert',
      noChange: 'Nichts wurde geändert.',
      mayNot: 'Ihre Rolle darf Einstellungen nicht ändern.',
    },
  },
);
