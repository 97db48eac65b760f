import type { Provider } from '../provider.ts';
import { createSmtpMailer } from './mail.ts';

export const smtp: Provider = {
  mail: { create: ({ SMTP_URL: url, MAIL_FROM: from }) => (url && from ? createSmtpMailer({ url, from }) : null) },
};
