/** A page outside the frame of an environment: one card with the name of the product. */
import type { FormEvent, ReactNode } from 'react';
import styles from './lone-page.module.css';
import { Mark } from './mark.tsx';

type LonePageProps = {
  children: ReactNode;
  /** Makes the card a form. */
  onSubmit?: (event: FormEvent) => void;
};

export function LonePage({ children, onSubmit }: LonePageProps): ReactNode {
  const content = (
    <>
      <div className={styles.brand}>
        <Mark /> Farthing
      </div>
      {children}
    </>
  );
  return (
    <main className={styles.page}>
      {onSubmit ? (
        <form className={`${styles.card} ${styles.form}`} onSubmit={onSubmit}>
          {content}
        </form>
      ) : (
        <div className={styles.card}>{content}</div>
      )}
    </main>
  );
}
