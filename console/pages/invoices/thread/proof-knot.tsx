/**
 * The last knot of a thread: the browser computes the invoice again with the verifier's own arithmetic, and follows one event to the
 * root. It says "arithmetic checked"; "verified" is the word of the command, which counts every event.
 */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useGet } from '../../../client/queries.ts';
import { can, useSession } from '../../../client/session.ts';
import { showApiText } from '../../../components/api-text.ts';
import { Chip } from '../../../components/chip.tsx';
import { Knot } from '../../../components/thread.tsx';
import { formatCount } from '../../../figures/format.ts';
import { Moment } from '../../../figures/when.tsx';
import { useLanguage, useTexts } from '../../../texts/texts.ts';
import type { InvoiceLine, InvoiceRecord } from '../invoice.ts';
import { Differences } from './differences.tsx';
import { EventPath } from './event-path.tsx';
import { TEXTS } from './texts.ts';
import { shortenHash } from './thread-figures.ts';
import styles from './thread-knots.module.css';

type ProofKnotProps = {
  invoice: InvoiceRecord;
  /** The line of the thread; null for that of the total. */
  line: InvoiceLine | null;
  /** The first and the last event of the line, which can be followed with a click. */
  ends?: { first: string | undefined; last: string | undefined };
  event?: string | undefined;
  onFollow?: (event_id: string) => void;
};

export function ProofKnot({ invoice, line, ends, event, onFollow }: ProofKnotProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const session = useSession();
  const isDraft = invoice.invoice_status === 'DRAFT';
  const proof = useGet('/invoices/{id}/proof', { path: { id: invoice.id } }, { enabled: !isDraft });
  const report = useQuery({
    queryKey: ['proof-check', invoice.id, proof.dataUpdatedAt] as const,
    queryFn: async () => (await import('../proof/check-proof.ts')).checkInvoice(proof.data!),
    enabled: proof.data !== undefined,
    retry: false,
  });
  if (isDraft)
    return (
      <Knot title={texts.proof} isFilled>
        {texts.draftProof}
      </Knot>
    );
  const error = proof.error ?? report.error;
  const isOwn = (name: string) => line === null || name === line.id;
  const differences = (report.data?.differences ?? []).filter((each) => isOwn(each.line));
  const stated = (report.data?.stated ?? []).filter((each) => isOwn(each.line));
  const seal = line === null ? null : proof.data?.lines.find((each) => each.line.id === line.id)?.seal;
  const chip = error ? (
    <Chip tone="warn">{texts.notChecked}</Chip>
  ) : !report.data ? (
    <Chip>{texts.checking}</Chip>
  ) : differences[0] ? (
    <Chip tone="bad">{texts.differs(nameField(differences[0].field))}</Chip>
  ) : (
    <Chip tone="ok">{texts.checked}</Chip>
  );
  const mayFollow = can(session, 'event', 'read');
  return (
    <Knot title={texts.proof} value={<span role="status">{chip}</span>} isFilled>
      {error && <p role="alert">{showApiText(error.message)}</p>}
      {seal && (
        <p>
          <span className={styles.hash} title={seal.root}>
            sha256 {shortenHash(seal.root)}
          </span>
          {' · '}
          {texts.sealed(formatCount(language, seal.event_count))} <Moment at={seal.sealed_at} />
        </p>
      )}
      {differences.length > 0 && <Differences differences={differences} />}
      {report.data && differences.length === 0 && (
        <p>
          {line === null ? texts.checkedTotal : texts.checkedLine} {texts.countAll}{' '}
          <code className={styles.command}>npm run verify-invoice</code>
        </p>
      )}
      {stated.length > 0 && (
        <details className={styles.stated}>
          <summary>{texts.statedFacts(stated.length)}</summary>
          <ul lang="en">
            {stated.map((each) => (
              <li key={`${each.line} ${each.what}`}>{each.what}</li>
            ))}
          </ul>
        </details>
      )}
      {proof.data && line && seal && seal.event_count > 0 && onFollow && mayFollow && (
        <>
          <p className={styles.choices}>
            <span>{texts.follow}:</span>
            {(
              [
                [ends?.first, texts.followFirst],
                [ends?.last, texts.followLast],
              ] as const
            ).map(([id, name]) =>
              id === undefined ? null : (
                <button
                  key={name}
                  type="button"
                  className={styles.choice}
                  aria-pressed={id === event}
                  onClick={() => onFollow(id)}
                >
                  {name}
                </button>
              ),
            )}
          </p>
          {event !== undefined && <EventPath key={event} proof={proof.data} line_id={line.id} event_id={event} />}
        </>
      )}
    </Knot>
  );
}

/** The last name of a path, such as `amount` of `computed_from.breakdown[1].amount`. */
function nameField(path: string): string {
  return path.split(/[.:]/).at(-1)?.trim().replaceAll('_', ' ') || path;
}
