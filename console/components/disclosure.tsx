/** A part of a form that is closed until it is needed. Its heading shows the terms that are set in it. */
import type { ReactNode } from 'react';
import styles from './disclosure.module.css';

type DisclosureProps = {
  title: string;
  /** The terms that are set, in short. */
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
          // The state is that of the page, which may open the part by itself.
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
