/** Foot of a form of settings: saves what has changed, and says why it cannot be saved. */
import type { ReactNode } from 'react';
import type { Needs } from '../../client/permission.ts';
import { FormFoot } from '../../components/form.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import styles from './settings.module.css';

type SaveFootProps = {
  save: { error: Error | null; isPending: boolean; isSuccess: boolean };
  /** Fields that show their errors themselves. */
  fields: readonly string[];
  needs: Needs;
  isChanged: boolean;
};

export function SaveFoot({ save, fields, needs, isChanged }: SaveFootProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <div className={styles.save}>
      <FormFoot
        deed={save}
        fields={fields}
        action={texts.save}
        needs={needs}
        blocked={isChanged ? null : texts.noChange}
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
  },
  {
    de: {
      save: 'Änderungen speichern',
      saved: 'Gespeichert',
      noChange: 'Nichts wurde geändert.',
    },
  },
);
