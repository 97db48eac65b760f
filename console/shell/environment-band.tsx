import type { ReactNode } from 'react';
import type { SessionEnvironment } from '../client/session.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './shell.module.css';

/** Says on every page which environment is open and what that means. */
export function EnvironmentBand({ environment }: { environment: SessionEnvironment }): ReactNode {
  const texts = useTexts(TEXTS);
  const meaning = environment.test_clock_id
    ? texts.clock
    : environment.type === 'production'
      ? texts.production
      : texts.development;
  return (
    <div className={styles.band} role="region" aria-label={texts.environment}>
      <bdi>{environment.name}</bdi>
      <span>{meaning}</span>
    </div>
  );
}

const TEXTS = defineTexts(
  {
    environment: 'Environment',
    production: 'customers are charged',
    development: 'no customer is charged',
    clock: 'time is moved by a test clock; no customer is charged',
  },
  {
    de: {
      environment: 'Umgebung',
      production: 'Kunden werden belastet',
      development: 'kein Kunde wird belastet',
      clock: 'eine Testuhr bewegt die Zeit; kein Kunde wird belastet',
    },
  },
);
