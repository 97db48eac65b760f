/** The history of a record, or of all: who changed what and when, with the fields before and after. */
import type { ReactNode } from 'react';
import { usePages } from '../client/pages.ts';
import type { GetParams } from '../client/queries.ts';
import { Moment } from '../figures/when.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { Button } from './button.tsx';
import { type FieldChange, formatValue, listChanges } from './changes.ts';
import styles from './history.module.css';
import { nameRecordKind, RECORD_TEXTS } from './record-texts.ts';
import { Empty, Failure, Loading } from './states.tsx';

/** Without `entity_id` it is the history of the environment, or that which `filter` selects. */
export function History({
  entity_id,
  filter = {},
}: {
  entity_id?: string;
  filter?: GetParams<'/audit-logs'>['query'];
}): ReactNode {
  const texts = useTexts(TEXTS);
  const entries = usePages('/audit-logs', { query: { ...filter, ...(entity_id === undefined ? {} : { entity_id }) } });
  if (entries.error) return <Failure error={entries.error} onRetry={entries.refetch} />;
  if (entries.isPending) return <Loading />;
  if (entries.rows.length === 0) return <Empty title={texts.empty} />;
  return (
    <>
      <ol className={styles.list}>
        {entries.rows.map((entry) => (
          <Entry key={entry.id} entry={entry} isNamed={entity_id === undefined} />
        ))}
      </ol>
      {entries.rows.length < entries.total && <Button onClick={entries.loadMore}>{texts.more}</Button>}
    </>
  );
}

const FIELDS_MAX = 3;

/** The first fields of a change, in words. */
function nameFields(changes: readonly FieldChange[]): string {
  const names = changes.slice(0, FIELDS_MAX).map(({ field }) => field.replaceAll('_', ' '));
  return changes.length > FIELDS_MAX ? `${names.join(', ')}…` : names.join(', ');
}

type HistoryEntry = {
  entity_type: string;
  entity_id: string;
  entity_name?: string | null;
  action: string;
  user_id?: string | null;
  actor?: { name: string | null; email: string | null; id: string } | null;
  before?: Record<string, unknown> | null;
  after?: Record<string, unknown> | null;
  created_at: string;
};

function Entry({ entry, isNamed }: { entry: HistoryEntry; isNamed: boolean }): ReactNode {
  const texts = useTexts(TEXTS);
  const { actor, user_id, action, entity_type, entity_name, entity_id, created_at } = entry;
  const kinds = useTexts(RECORD_TEXTS);
  const changes = listChanges(entry.before, entry.after);
  const who = actor?.name || actor?.email || (user_id ? user_id : texts.service);
  return (
    <li className={styles.entry}>
      <details>
        <summary>
          <span>
            <bdi>{who}</bdi> {texts.did(action)}{' '}
            {!isNamed && action === 'updated' && <span className="muted">{nameFields(changes)}</span>}
            {isNamed && (
              <>
                {' '}
                {nameRecordKind(kinds, entity_type)} <bdi>{entity_name ?? entity_id}</bdi>
              </>
            )}
          </span>
          <span className="label">
            <Moment at={created_at} />
          </span>
        </summary>
        <table className={styles.changes}>
          <thead>
            <tr>
              <th scope="col">{texts.field}</th>
              <th scope="col">{texts.before}</th>
              <th scope="col">{texts.after}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ field, before, after }) => (
              <tr key={field}>
                <th scope="row">{field}</th>
                <td>{formatValue(before)}</td>
                <td>{formatValue(after)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </li>
  );
}

const VERBS = {
  en: { created: 'created', updated: 'changed', deleted: 'deleted', archived: 'archived' },
  de: { created: 'hat angelegt:', updated: 'hat geändert:', deleted: 'hat gelöscht:', archived: 'hat archiviert:' },
} as const;

const TEXTS = defineTexts(
  {
    empty: 'Nothing has changed yet',
    more: 'Show more',
    service: 'The service',
    field: 'Field',
    before: 'Before',
    after: 'After',
    did: (action: string) => (VERBS.en as Record<string, string>)[action] ?? action,
  },
  {
    de: {
      empty: 'Noch keine Änderungen',
      more: 'Mehr zeigen',
      service: 'Der Dienst',
      field: 'Feld',
      before: 'Vorher',
      after: 'Nachher',
      did: (action) => (VERBS.de as Record<string, string>)[action] ?? action,
    },
  },
);
