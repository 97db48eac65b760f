/** Sends an invoice by e-mail. Without a mail server nothing is enqueued, and jobs already in the queue are discarded. */
import { z } from 'zod';
import { MAIL_TASK, type MailOutcome, mailInvoice } from '../../actions/delivery/mail/mail-invoice.ts';
import type { Mailer } from '../../actions/delivery/mail/mailer.ts';
import { INVOICE_EMAIL_KINDS } from '../../core/platform/mail/invoice-email.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { QueuedWork } from '../job.ts';

const Payload = z.object({
  tenant_id: z.string(),
  environment_id: z.string(),
  invoice_id: z.string(),
  event_id: z.string(),
  kind: z.enum(INVOICE_EMAIL_KINDS),
});

export type MailedInvoice = MailOutcome & { readonly invoice_id: string };

type MailOptions = {
  readonly clock: () => Date;
  readonly mailer: Mailer | null;
  readonly fonts: string | null;
  readonly onMailed?: (mailed: MailedInvoice) => void;
};

export function mailInvoiceWork(stores: Stores, { clock, mailer, fonts, onMailed }: MailOptions): QueuedWork {
  return {
    name: MAIL_TASK,
    async run(payload) {
      if (mailer === null) return 'failed';
      const { tenant_id, environment_id, ...letter } = Payload.parse(payload);
      const mailing = { ...letter, fonts, now: clock(), mailer };
      const mailed = await mailInvoice(stores, { tenant_id, environment_id }, mailing);
      onMailed?.({ ...mailed, invoice_id: letter.invoice_id });
      return mailed.outcome === 'refused' ? 'failed' : 'completed';
    },
  };
}
