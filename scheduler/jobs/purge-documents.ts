/** Deletes old PDFs of invoices; a later request renders the PDF again. */

import type { Stores } from '../../storage/foundation/stores.ts';
import { purgeDocuments } from '../../storage/models/invoicing/invoice-document.ts';
import type { ScheduledJob } from '../job.ts';

export function purgeDocumentsJob({ postgres }: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'purge-documents',
    every_seconds,
    run: async (now) => ({ done: { purged: await purgeDocuments(postgres, now) }, waiting: [], failed: [] }),
  };
}
