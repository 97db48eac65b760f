import type { ReactNode } from 'react';
import styles from './chip.module.css';
import type { Tone } from './tone.ts';

/** A status: always a word, in a soft colour. */
export function Chip({ tone = 'plain', children }: { tone?: Tone; children: ReactNode }): ReactNode {
  return <span className={`${styles.chip} ${styles[tone]}`}>{children}</span>;
}
