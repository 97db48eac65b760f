/** One step of the first bill, as a knot: its name, its state at the right, a summary when it is done, and its work when it is open. */
import { type ReactNode, useId } from 'react';
import { Knot } from '../../components/thread.tsx';
import { useTexts } from '../../texts/texts.ts';
import styles from './first-bill.module.css';
import { TEXTS } from './texts.ts';
import type { FirstBill } from './use-first-bill.ts';

/** Properties of every step. */
export type StepProps = {
  bill: FirstBill;
  isDone: boolean;
  isOpen: boolean;
  onToggle: () => void;
  /** Leaves the step open after it is done. */
  onPin: () => void;
};

type StepFrameProps = {
  onPin?: () => void;
  title: string;
  isDone: boolean;
  isOpen: boolean;
  onToggle: () => void;
  value?: ReactNode;
  /** A line under the title, also of a closed step. */
  summary?: ReactNode;
  /** Stays below the step when it is closed. */
  after?: ReactNode;
  children: ReactNode;
};

export function Step({ title, isDone, isOpen, onToggle, value, summary, after, children }: StepFrameProps): ReactNode {
  const texts = useTexts(TEXTS);
  const id = useId();
  return (
    <Knot
      isFilled={isDone}
      title={
        <h2>
          <button type="button" className={styles.title} aria-expanded={isOpen} aria-controls={id} onClick={onToggle}>
            {title}
          </button>
        </h2>
      }
      value={<span className={styles.state}>{value ?? (isDone ? texts.done : null)}</span>}
    >
      {summary && <div>{summary}</div>}
      <div id={id} className={isOpen ? styles.work : undefined}>
        {isOpen && children}
      </div>
      {after}
    </Knot>
  );
}
