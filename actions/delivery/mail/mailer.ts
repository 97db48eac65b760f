import { createSelected, listCapable } from '../../../integrations/find-capability.ts';
import type { Mailer } from '../../../integrations/mailer.ts';
import type { MailSettings } from '../../../integrations/provider.ts';

export type { Mailer } from '../../../integrations/mailer.ts';

/** Creates the selected mailer; null if the settings select none. */
export function createMailer(settings: MailSettings): Mailer | null {
  return createSelected(listCapable('mail'), settings);
}
