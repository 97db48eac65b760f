import type { ReactNode } from 'react';
import styles from './chip.module.css';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';

/** A status: always a word, in a soft colour. */
export function Chip({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }): ReactNode {
  return <span className={`${styles.chip} ${styles[tone]}`}>{children}</span>;
}
