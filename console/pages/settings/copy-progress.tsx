/** The copy of a catalogue runs in the background; its summary counts what was copied, and lists what was not with the reasons. */
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { CopyId } from '../../components/copy.tsx';
import { Facts } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ENVIRONMENT_TEXTS } from './environment-texts.ts';
import styles from './settings.module.css';

export type StartedCopy = { workflow_id: string; run_id: string; target_environment_id: string };
type CopySummary = {
  status?: string;
  result?: { copied?: Record<string, number>; failed?: unknown[]; skipped?: unknown[] } | null;
};
const POLL_MS = 2_000;

export function CopyProgress({ workflow, onClose }: { workflow: StartedCopy; onClose: () => void }): ReactNode {
  const texts = useTexts(ENVIRONMENT_TEXTS);
  const { workflow_id, run_id, target_environment_id } = workflow;
  const path = { workflow_id, run_id };
  const first = useGet('/workflows/{workflow_id}/{run_id}/summary', { path });
  const { status = 'running', result } = (first.data ?? {}) as CopySummary;
  const isRunning = status.toLowerCase() === 'running';
  // The second reader of the query asks again while the copy runs.
  useGet('/workflows/{workflow_id}/{run_id}/summary', { path }, { refetchInterval: isRunning ? POLL_MS : false });
  const copied = Object.entries(result?.copied ?? {});
  const count = (list: unknown[] | undefined) => list?.length ?? 0;
  return (
    <SideSheet
      title={isRunning ? texts.copying : texts.copyEnded}
      subtitle={<CopyId id={target_environment_id} />}
      onClose={onClose}
      footer={<Button onClick={onClose}>{texts.close}</Button>}
    >
      <p role="status" className={styles.hint}>
        {isRunning ? texts.copyRuns : copied.length === 0 ? texts.nothingCopied : texts.copyDone}
      </p>
      {result && (
        <Facts
          facts={[
            ...copied.map(([kind, copies]) => ({ label: kind.replaceAll('_', ' '), value: copies })),
            { label: texts.failedCopies, value: count(result.failed) },
            { label: texts.skippedCopies, value: count(result.skipped) },
          ]}
        />
      )}
      {first.data && <RecordTools record={first.data} path={`/workflows/${workflow_id}/${run_id}/summary`} />}
    </SideSheet>
  );
}
