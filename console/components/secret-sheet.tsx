/** A new secret. The service shows it only once. */
import type { ReactNode } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { Button } from './button.tsx';
import { CodeBlock } from './copy.tsx';
import styles from './secret-sheet.module.css';
import { SideSheet } from './side-sheet.tsx';

type SecretSheetProps = {
  title: ReactNode;
  hint: string;
  /** The name of the secret. */
  label: string;
  secret: string;
  onClose: () => void;
  /** A further step, such as the end of the secret that this one replaces. */
  next?: ReactNode;
};

export function SecretSheet({ title, hint, label, secret, onClose, next }: SecretSheetProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <SideSheet
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button isPrimary onClick={onClose}>
            {texts.haveIt}
          </Button>
          {next}
        </>
      }
    >
      <p className={styles.hint}>{hint}</p>
      <CodeBlock label={label} code={secret} />
    </SideSheet>
  );
}

const TEXTS = defineTexts({ haveIt: 'I have copied it' }, { de: { haveIt: 'Ich habe ihn kopiert' } });
