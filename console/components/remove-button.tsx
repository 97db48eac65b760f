import type { ReactNode } from 'react';
import styles from './remove-button.module.css';

/** Removes a row of a form. `label` names the row. */
export function RemoveButton({ label, onClick }: { label: string; onClick: () => void }): ReactNode {
  return (
    <button type="button" className={styles.remove} aria-label={label} onClick={onClick}>
      ×
    </button>
  );
}
