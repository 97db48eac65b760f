import type { ReactNode } from 'react';
import { useTexts } from '../../../texts/texts.ts';
import type { ProofDifference } from '../proof/check-proof.ts';
import { TEXTS } from './texts.ts';
import styles from './thread-knots.module.css';

/** The numbers that the verifier computes otherwise, with the first digit that differs. Its words are English. */
export function Differences({ differences }: { differences: readonly ProofDifference[] }): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <ul className={styles.differences}>
      {differences.map(({ line, field, stated, computed, digit }) => (
        <li key={`${line} ${field} ${stated}`}>
          <code>{field}</code>: {texts.stated} <code>{stated}</code>, {texts.computed} <code>{computed}</code>
          {digit !== '' && <span lang="en"> ({digit})</span>}
        </li>
      ))}
    </ul>
  );
}
