/** The states of a page that has nothing to show yet, nothing at all, or may not show it. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError } from '../client/client.ts';
import type { ListOfPages } from '../client/pages.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { Button } from './button.tsx';
import styles from './states.module.css';

/** Rows in the shape of what is coming. The words are for readers of the screen. */
export function Loading({ rows = 5 }: { rows?: number }): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <div className={styles.loading} role="status" aria-label={texts.loading}>
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className={styles.bar} />
      ))}
    </div>
  );
}

/** An empty list names the next step, with its action or its command. */
export function Empty({
  title,
  children,
  action,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
}): ReactNode {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children && <div className="muted">{children}</div>}
      {action && <div className={styles.action}>{action}</div>}
    </div>
  );
}

/** Shows an error and the next step of the reader. */
export function Failure({ error, onRetry }: { error: unknown; onRetry?: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const isForbidden = error instanceof ApiError && error.status === 403;
  const isMissing = error instanceof ApiError && error.status === 404;
  const title = isForbidden ? texts.forbidden : isMissing ? texts.missing : texts.failed;
  return (
    <div className={styles.empty} role="alert">
      <h2>{title}</h2>
      <p className="muted">{error instanceof Error ? error.message : String(error)}</p>
      {isForbidden && <p className="muted">{texts.askAdmin}</p>}
      {error instanceof ApiError && error.request_id && <p className="label mono">{error.request_id}</p>}
      {onRetry && !isForbidden && !isMissing && (
        <div className={styles.action}>
          <Button onClick={onRetry}>{texts.retry}</Button>
        </div>
      )}
    </div>
  );
}

/** Shows an answer, or the state in which it is not there. */
export function Loaded<Data>({
  query,
  rows,
  children,
}: {
  query: UseQueryResult<Data>;
  rows?: number;
  children: (data: Data) => ReactNode;
}): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  return <Loading {...(rows === undefined ? {} : { rows })} />;
}

/** Shows the rows of a list that comes in pages, or the state in which they are not there. */
export function LoadedRows({
  list: { error, isPending, refetch },
  rows,
  children,
}: {
  list: Pick<ListOfPages<unknown>, 'error' | 'isPending' | 'refetch'>;
  rows?: number;
  children: () => ReactNode;
}): ReactNode {
  if (error) return <Failure error={error} onRetry={refetch} />;
  return isPending ? <Loading {...(rows === undefined ? {} : { rows })} /> : children();
}

const TEXTS = defineTexts(
  {
    loading: 'Loading',
    failed: 'This could not be loaded',
    forbidden: 'Your role may not see this',
    missing: 'There is no such record here',
    askAdmin: 'An administrator of your company can change your role.',
    retry: 'Try again',
  },
  {
    de: {
      loading: 'Wird geladen',
      failed: 'Das konnte nicht geladen werden',
      forbidden: 'Ihre Rolle darf das nicht sehen',
      missing: 'Diesen Datensatz gibt es hier nicht',
      askAdmin: 'Eine Administratorin Ihres Unternehmens kann Ihre Rolle ändern.',
      retry: 'Noch einmal versuchen',
    },
  },
);
