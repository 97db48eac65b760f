/**
 * Mails an invoice with its PDF to the customer (docs/rules/documents.md, "By e-mail"). The dispatch of each event that requires a mail
 * enqueues one job. Environments with a clock of their own send nothing, because their events are simulated.
 */

import type { Scope } from '../../../core/foundation/scope.ts';
import {
  composeInvoiceEmail,
  findEmailKind,
  type InvoiceEmailKind,
  isEmailDue,
} from '../../../core/platform/mail/invoice-email.ts';
import type { SystemEventName } from '../../../core/platform/system-event/catalogue.ts';
import type { Mailer } from '../../../integrations/mailer.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { SystemEventModel } from '../../../storage/models/foundation/system-event.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { addJob } from '../../../storage/queue/jobs.ts';
import { loadInvoicePdf } from '../../invoicing/documents/invoice-pdf.ts';
import { loadInvoiceTimezone, loadSeller } from '../../invoicing/documents/printed-by.ts';

export const MAIL_TASK = 'mail-invoice';
/** Number of attempts, over more than a day, with growing delays. */
const ATTEMPTS = 16;

type MailedEvent = Scope & {
  readonly id: string;
  readonly event_name: string;
  readonly entity_id: string;
  readonly sequence: string;
  readonly has_clock?: boolean;
};

/** Enqueues the mail in the transaction that dispatches the event, so that each event is mailed once. */
export async function mailLater(transaction: Transaction, event: MailedEvent): Promise<void> {
  const kind = findEmailKind(event.event_name as SystemEventName);
  if (kind === null || event.has_clock || (await isResent(transaction, event))) return;
  const { tenant_id, environment_id, id: event_id, entity_id: invoice_id } = event;
  await addJob(transaction, {
    task: MAIL_TASK,
    payload: { tenant_id, environment_id, event_id, invoice_id, kind },
    key: `${MAIL_TASK}:${event_id}`,
    queue: `${MAIL_TASK}:${environment_id}`,
    max_attempts: ATTEMPTS,
  });
}

/**
 * Whether the event repeats an earlier `invoice.finalized`, which was mailed then. Events with other names are never repeats: each is a
 * request for a mail.
 */
async function isResent(transaction: Transaction, event: MailedEvent): Promise<boolean> {
  const { event_name, entity_id, sequence } = event;
  if (event_name !== 'invoice.finalized') return false;
  const [before] = await SystemEventModel.in(event, transaction)
    .where({ event_name, entity_id })
    .where('sequence', '<', sequence)
    .limit(1)
    .select('id');
  return before !== undefined;
}

/** Result of a mail. `none` means that no mail is due or the customer has no address. */
export type MailOutcome = { readonly outcome: 'sent' | 'none' | 'refused'; readonly detail?: string };

type Mailing = {
  readonly invoice_id: string;
  readonly event_id: string;
  readonly kind: InvoiceEmailKind;
  readonly fonts: string | null;
  readonly now: Date;
};

export async function mailInvoice(
  stores: Stores,
  scope: Scope,
  { invoice_id, event_id, kind, fonts, now, mailer }: Mailing & { mailer: Mailer },
): Promise<MailOutcome> {
  const database = stores.postgres;
  const invoice = await InvoiceModel.fetch(scope, invoice_id, { database });
  const config = await loadSetting(scope, 'invoice_mail_config', database);
  if (!isEmailDue(invoice, kind) || !config[kind === 'new' ? 'invoices' : 'reminders']) return { outcome: 'none' };
  const { email } = await CustomerModel.fetch(scope, invoice.customer_id, { database });
  if (!email) return { outcome: 'none' };
  const settings = await loadSetting(scope, 'invoice_pdf_config', database);
  const seller = await loadSeller(settings, { tenant_id: scope.tenant_id, database });
  const { name, bytes } = await loadInvoicePdf(stores, scope, { id: invoice.id, fonts, now });
  return mailer.send({
    to: email,
    reply_to: config.reply_to,
    bcc: config.bcc,
    ...composeInvoiceEmail(invoice, {
      kind,
      language: settings.language,
      timezone: await loadInvoiceTimezone(invoice, scope, database),
      seller: seller.name,
      notes: [settings.payment_instructions].flatMap((note) => note || []),
    }),
    attachment: { name, type: 'application/pdf', bytes },
    message_id: `<${event_id}@farthing>`,
  });
}
