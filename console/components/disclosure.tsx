/** A part of a form that is closed until it is needed. Its heading summarizes the terms that are set in it. */
import type { ReactNode } from 'react';
import styles from './disclosure.module.css';

type DisclosureProps = {
  title: string;
  /** Summary of the terms that are set. */
  value: ReactNode;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  children: ReactNode;
};

export function Disclosure({ title, value, isOpen, onToggle, children }: DisclosureProps): ReactNode {
  return (
    <details className={styles.disclosure} open={isOpen}>
      <summary
        className={styles.summary}
        onClick={(event) => {
          // The page decides whether the part is open, and may open it by itself.
          event.preventDefault();
          onToggle(!isOpen);
        }}
      >
        <h3>{title}</h3>
        <span className={styles.value}>{value}</span>
      </summary>
      {isOpen && <div className={styles.body}>{children}</div>}
    </details>
  );
}
