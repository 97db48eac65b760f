/** The audit log of this environment or of the company, filtered by kind of record and kind of change. */
import { Select } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { AUDIT_ACTIONS, AUDITED_TYPES } from '../../../core/platform/audit/kinds.ts';
import { Choice } from '../../components/choice.tsx';
import { History } from '../../components/history.tsx';
import { Sheet } from '../../components/page.tsx';
import { RECORD_TEXTS } from '../../components/record-texts.ts';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import type { SettingsSearch } from './routes.ts';
import styles from './settings.module.css';

const FROM = '/env/$environment_id/settings';

export function AuditTab(): ReactNode {
  const texts = useTexts(TEXTS);
  const kinds = useTexts(RECORD_TEXTS);
  const { reach = 'environment', kind, action } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const filter = (fields: Pick<SettingsSearch, 'reach' | 'kind' | 'action'>) =>
    void navigate({ search: (old) => ({ ...old, ...fields }) });
  const known = AUDITED_TYPES.find((each) => each === kind);
  return (
    <>
      <div className={styles.toolbar}>
        <Choice
          label={texts.reach}
          value={reach}
          onValue={(next) => filter({ reach: next === 'tenant' ? 'tenant' : undefined })}
          options={[
            { value: 'environment', label: texts.environment },
            { value: 'tenant', label: texts.tenant },
          ]}
        />
        <div className={styles.pairOfButtons}>
          <Select
            aria-label={texts.kind}
            placeholder={texts.allKinds}
            searchable
            clearable
            clearButtonProps={{ 'aria-label': texts.clear }}
            value={known ?? null}
            onChange={(next) => filter({ kind: next ?? undefined })}
            data={AUDITED_TYPES.map((each) => ({ value: each, label: kinds[each] }))}
          />
          <Select
            aria-label={texts.action}
            placeholder={texts.allActions}
            clearable
            clearButtonProps={{ 'aria-label': texts.clear }}
            value={action ?? null}
            onChange={(next) => filter({ action: AUDIT_ACTIONS.find((each) => each === next) })}
            data={AUDIT_ACTIONS.map((each) => ({ value: each, label: texts[each] }))}
          />
        </div>
      </div>
      <Sheet>
        <div className={styles.logPad}>
          <History
            filter={{
              ...(known === undefined ? {} : { entity_type: known }),
              ...(action === undefined ? {} : { action }),
              ...(reach === 'tenant' ? { tenant_wide: true } : {}),
            }}
          />
        </div>
      </Sheet>
    </>
  );
}

const TEXTS = defineTexts(
  {
    reach: 'Changes of',
    environment: 'This environment',
    tenant: 'Company',
    kind: 'Kind of record',
    allKinds: 'All records',
    action: 'Kind of change',
    allActions: 'All changes',
    clear: 'Clear',
    created: 'Created',
    updated: 'Changed',
    archived: 'Archived',
    deleted: 'Deleted',
  },
  {
    de: {
      reach: 'Änderungen',
      environment: 'Diese Umgebung',
      tenant: 'Unternehmen',
      kind: 'Art des Datensatzes',
      allKinds: 'Alle Datensätze',
      action: 'Art der Änderung',
      allActions: 'Alle Änderungen',
      clear: 'Leeren',
      created: 'Angelegt',
      updated: 'Geändert',
      archived: 'Archiviert',
      deleted: 'Gelöscht',
    },
  },
);
