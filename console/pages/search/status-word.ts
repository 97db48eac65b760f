/** Names of the statuses of found records. */
import { defineTexts } from '../../texts/texts.ts';

/** Statuses that say nothing to a reader: a record that is in use has them. */
const USUAL = new Set(['published', 'active', 'completed']);

export const STATUS_TEXTS = defineTexts(
  {
    archived: 'Archived',
    cancelled: 'Cancelled',
    closed: 'Closed',
    deleted: 'Deleted',
    draft: 'Draft',
    failed: 'Failed',
    finalized: 'Final',
    frozen: 'Frozen',
    incomplete: 'Incomplete',
    initiated: 'Begun',
    overpaid: 'Overpaid',
    partially_refunded: 'Partially refunded',
    paused: 'Paused',
    pending: 'Pending',
    processing: 'Processing',
    refunded: 'Refunded',
    skipped: 'Skipped',
    succeeded: 'Succeeded',
    trialing: 'Trial',
    voided: 'Voided',
  },
  {
    de: {
      archived: 'Archiviert',
      cancelled: 'Gekündigt',
      closed: 'Geschlossen',
      deleted: 'Gelöscht',
      draft: 'Entwurf',
      failed: 'Fehlgeschlagen',
      finalized: 'Endgültig',
      frozen: 'Eingefroren',
      incomplete: 'Unvollständig',
      initiated: 'Begonnen',
      overpaid: 'Überzahlt',
      partially_refunded: 'Teilweise erstattet',
      paused: 'Pausiert',
      pending: 'Ausstehend',
      processing: 'In Bearbeitung',
      refunded: 'Erstattet',
      skipped: 'Übersprungen',
      succeeded: 'Erfolgt',
      trialing: 'Testphase',
      voided: 'Storniert',
    },
  },
);

/** The name of the status of a hit; null for a usual status. A status that the console does not know is shown unchanged. */
export function toStatusWord(
  status: string | null | undefined,
  words: Readonly<Record<string, string>> = STATUS_TEXTS.en,
): string | null {
  if (!status || USUAL.has(status.toLowerCase())) return null;
  return words[status.toLowerCase()] ?? status;
}
