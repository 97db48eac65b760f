/** A page outside the frame of an environment: one card with the name of the product. */
import type { ReactNode } from 'react';
import styles from './lone-page.module.css';
import { Mark } from './mark.tsx';

export function LonePage({ children }: { children: ReactNode }): ReactNode {
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <div className={styles.brand}>
          <Mark /> Farthing
        </div>
        {children}
      </div>
    </main>
  );
}
