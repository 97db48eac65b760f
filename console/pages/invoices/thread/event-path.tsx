/** The way of one event in the proof: from its leaf, past the sibling hashes, to the root of its line. */
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { components } from '../../../client/openapi.d.ts';
import { useGet } from '../../../client/queries.ts';
import { showApiText } from '../../../components/api-text.ts';
import { Chip } from '../../../components/chip.tsx';
import { formatCount } from '../../../figures/format.ts';
import { useLanguage, useTexts } from '../../../texts/texts.ts';
import { Differences } from './differences.tsx';
import { TEXTS } from './texts.ts';
import { shortenHash } from './thread-figures.ts';
import styles from './thread-knots.module.css';

type PathProof = components['schemas']['InvoiceProof'];
type EventProofLine = components['schemas']['InvoiceEventProof']['lines'][number];

type EventPathProps = { proof: PathProof; line_id: string; event_id: string };

export function EventPath({ proof, line_id, event_id }: EventPathProps): ReactNode {
  const texts = useTexts(TEXTS);
  const invoice_id = proof.invoice.id;
  const shown = useGet('/invoices/{id}/proof/events/{event_id}', { path: { id: invoice_id, event_id } });
  const report = useQuery({
    queryKey: ['event-check', invoice_id, event_id] as const,
    queryFn: async () => (await import('../proof/check-proof.ts')).checkEvent(proof, shown.data!),
    enabled: shown.data !== undefined,
    retry: false,
  });
  const error = shown.error ?? report.error;
  const line = shown.data?.lines.find((each) => each.line_id === line_id);
  if (error)
    return (
      <p role="alert" className={styles.note}>
        {showApiText(error.message)}
      </p>
    );
  if (!shown.data || !report.data)
    return (
      <p role="status" className={styles.note}>
        {texts.following}
      </p>
    );
  const differences = report.data.differences.filter((each) => each.line === line_id || each.line === 'event');
  const isGood = line !== undefined && differences.length === 0;
  return (
    <div className={styles.path}>
      <div className={styles.pathHead}>
        <code>{event_id}</code>
        <Chip tone={isGood ? 'ok' : 'bad'}>{isGood ? texts.inProof : texts.notInProof}</Chip>
      </div>
      {line && <Steps line={line} />}
      {differences.length > 0 && <Differences differences={differences} />}
    </div>
  );
}

const STEPS_MAX = 8;
const STEPS_AT_ENDS = 3;

function Steps({ line }: { line: EventProofLine }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const [isOpen, setOpen] = useState(false);
  const { path, index, event_count, leaf, leaf_hash, root } = line;
  const isLong = path.length > STEPS_MAX && !isOpen;
  const first = isLong ? path.slice(0, STEPS_AT_ENDS) : path;
  const last = isLong ? path.slice(-STEPS_AT_ENDS) : [];
  const show = (step: (typeof path)[number]) => (
    <li key={step.hash}>
      <span className={styles.side}>+ {step.side === 'left' ? texts.left : texts.right}</span>
      <span title={step.hash}>{shortenHash(step.hash)}</span>
    </li>
  );
  return (
    <>
      <p>
        {texts.step(formatCount(language, index + 1), formatCount(language, event_count), path.length)}
        {leaf.value !== '' && (
          <>
            , {texts.counts} <code>{leaf.value}</code>
          </>
        )}
      </p>
      <ol className={styles.steps}>
        <li className={styles.end}>
          <span>{texts.leaf}</span>
          <span title={leaf_hash}>{shortenHash(leaf_hash)}</span>
        </li>
        {first.map(show)}
        {isLong && (
          <li>
            <button type="button" className={styles.choice} onClick={() => setOpen(true)}>
              {texts.moreSteps(path.length - 2 * STEPS_AT_ENDS)}
            </button>
          </li>
        )}
        {last.map(show)}
        <li className={styles.end}>
          <span>{texts.root}</span>
          <span title={root}>{shortenHash(root)}</span>
        </li>
      </ol>
    </>
  );
}
