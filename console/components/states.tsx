/** The states of a page that has nothing to show yet, nothing at all, or may not show it. */
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useDeferredValue, useEffect } from 'react';
import { ApiError } from '../client/client.ts';
import type { ListOfPages } from '../client/pages.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { showApiText } from './api-text.ts';
import { Button } from './button.tsx';
import { CopyId } from './copy.tsx';
import { useOpenOverlay } from './overlays.ts';
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
  return (
    <div className={styles.empty} role="alert">
      <h2>{getFailureTitle(error, texts)}</h2>
      <FailureDetails error={error} onRetry={onRetry} />
    </div>
  );
}

function getFailureTitle(error: unknown, texts: { forbidden: string; missing: string; failed: string }): string {
  const status = error instanceof ApiError ? error.status : null;
  return status === 403 ? texts.forbidden : status === 404 ? texts.missing : texts.failed;
}

function FailureDetails({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }): ReactNode {
  const texts = useTexts(TEXTS);
  const isForbidden = error instanceof ApiError && error.status === 403;
  const isMissing = error instanceof ApiError && error.status === 404;
  return (
    <>
      <p className="muted">{showApiText(error instanceof Error ? error.message : String(error))}</p>
      {isForbidden && <p className="muted">{texts.askAdmin}</p>}
      {error instanceof ApiError && error.request_id && <p className="label mono">{error.request_id}</p>}
      {onRetry && !isForbidden && !isMissing && (
        <div className={styles.action}>
          <Button onClick={onRetry}>{texts.retry}</Button>
        </div>
      )}
    </>
  );
}

/** Replaces the page of a record that could not be loaded. It sets the title of the page and shows the id from the address. */
function RecordFailure({ id, error, onRetry }: { id: string; error: unknown; onRetry: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const open = useOpenOverlay();
  const isMissing = error instanceof ApiError && error.status === 404;
  if (!isMissing)
    return (
      <StateOfPage title={getFailureTitle(error, texts)}>
        <FailureDetails error={error} onRetry={onRetry} />
      </StateOfPage>
    );
  return (
    <StateOfPage title={texts.missing}>
      <CopyId id={id} />
      <p className="muted">{texts.missingHint}</p>
      {open && (
        <StateActions>
          <Button onClick={() => open('search')}>{texts.search}</Button>
        </StateActions>
      )}
    </StateOfPage>
  );
}

/** A state that replaces a whole page. It sets the heading and the title of the page. */
export function StateOfPage({ title, children }: { title: string; children: ReactNode }): ReactNode {
  useEffect(() => {
    document.title = `${title} · Farthing`;
  }, [title]);
  return (
    <div className={styles.empty} role="alert">
      <h1>{title}</h1>
      {children}
    </div>
  );
}

export function StateActions({ children }: { children: ReactNode }): ReactNode {
  return <div className={styles.action}>{children}</div>;
}

/**
 * Returns whether to show loaded data. It becomes true in a deferred render, which React splits into slices, so that a large answer does not
 * block the browser. Data that was in the cache before the page opened appears at once.
 */
export function useIsShown(isLoaded: boolean): boolean {
  return useDeferredValue(isLoaded) && isLoaded;
}

/** Shows an answer, or the state of its query. `record_id` is given if the answer is the record of the whole page. */
export function Loaded<Data>({
  query,
  record_id,
  rows,
  children,
}: {
  query: UseQueryResult<Data>;
  record_id?: string;
  rows?: number;
  children: (data: Data) => ReactNode;
}): ReactNode {
  const isShown = useIsShown(query.data !== undefined);
  if (isShown) return children(query.data!);
  if (query.isError && query.data === undefined) {
    const failure = { error: query.error, onRetry: () => void query.refetch() };
    return record_id === undefined ? <Failure {...failure} /> : <RecordFailure id={record_id} {...failure} />;
  }
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
  const isShown = useIsShown(!isPending);
  if (error) return <Failure error={error} onRetry={refetch} />;
  return isShown ? children() : <Loading {...(rows === undefined ? {} : { rows })} />;
}

const TEXTS = defineTexts(
  {
    loading: 'Loading',
    failed: 'This could not be loaded',
    forbidden: 'Your role may not see this',
    missing: 'There is no such record here',
    missingHint: 'It may belong to another environment or company, or have been deleted.',
    search: 'Search…',
    askAdmin: 'An administrator of your company can change your role.',
    retry: 'Try again',
  },
  {
    de: {
      loading: 'Wird geladen',
      failed: 'Das konnte nicht geladen werden',
      forbidden: 'Ihre Rolle darf das nicht sehen',
      missing: 'Diesen Datensatz gibt es hier nicht',
      missingHint: 'Er kann zu einer anderen Umgebung oder einem anderen Unternehmen gehören oder gelöscht sein.',
      search: 'Suchen…',
      askAdmin: 'Jemand mit Verwaltungsrechten in Ihrem Unternehmen kann Ihre Rolle ändern.',
      retry: 'Erneut versuchen',
    },
  },
);
