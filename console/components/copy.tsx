import { useClipboard } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './copy.module.css';

/** An id: a click copies it. */
export function CopyId({ id }: { id: string }): ReactNode {
  const texts = useTexts(TEXTS);
  const { copy, copied } = useClipboard({ timeout: 1500 });
  return (
    <button type="button" className={`mono ${styles.id}`} onClick={() => copy(id)} title={texts.copyId(id)}>
      {id}
      <span className={styles.done} role="status">
        {copied ? texts.copied : ''}
      </span>
    </button>
  );
}

/** A block of code with a button that copies all of it. */
export function CodeBlock({ code, label }: { code: string; label: string }): ReactNode {
  const texts = useTexts(TEXTS);
  const { copy, copied } = useClipboard({ timeout: 1500 });
  return (
    <div className={styles.block}>
      <button type="button" className={styles.copy} onClick={() => copy(code)} aria-label={texts.copyWhat(label)}>
        {copied ? texts.copied : texts.copy}
      </button>
      {/* A long line scrolls by keys, too. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{code}</code>
      </pre>
    </div>
  );
}

const TEXTS = defineTexts(
  {
    copy: 'copy',
    copied: 'copied',
    copyId: (id: string) => `Copy ${id}`,
    copyWhat: (what: string) => `Copy: ${what}`,
  },
  {
    de: {
      copy: 'kopieren',
      copied: 'kopiert',
      copyId: (id) => `${id} kopieren`,
      copyWhat: (what) => `Kopieren: ${what}`,
    },
  },
);
