/** A part of a form that is closed until it is needed. Its heading summarizes the terms that are set in it. */
import { type ReactNode, useState } from 'react';
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
  // A closed part retains its inputs, because one may hold a text that is not understood and must not be left out.
  const [wasOpened, setOpened] = useState(isOpen);
  if (isOpen && !wasOpened) setOpened(true);
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
      {wasOpened && <div className={styles.body}>{children}</div>}
    </details>
  );
}
