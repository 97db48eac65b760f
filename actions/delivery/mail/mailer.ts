import { createSmtpMailer, type Mailer } from '../../../integrations/mail/smtp.ts';

export type { Mailer } from '../../../integrations/mail/smtp.ts';

export function createMailer({
  SMTP_URL: url,
  MAIL_FROM: from,
}: {
  SMTP_URL?: string;
  MAIL_FROM?: string;
}): Mailer | null {
  return url && from ? createSmtpMailer({ url, from }) : null;
}
